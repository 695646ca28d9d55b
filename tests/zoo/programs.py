"""Programs written for OneFlow, unmodified: runs libai's models in every layout and flowvision's classification models.

    python -m tests.zoo.programs            # all, and write the counts into docs/from-oneflow.md: `make zoo`
    python -m tests.zoo.programs gpt vit    # some of libai's; nothing is written

They need what the extra `zoo` names, and libai and flowvision themselves, which `make zoo` installs.
"""

from __future__ import annotations

import itertools
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs" / "from-oneflow.md"
MARK = re.compile(r"(<!-- written by `make zoo` -->\n).*?(<!-- until here -->)", re.DOTALL)
MODELS = ("gpt", "bert", "t5", "vit")
LAYOUTS = {  # sizes as libai's configurations name them; data parallelism is what is left of the ranks
    "data": ["tensor=1"],
    "tensor": ["tensor=4"],
    "data and tensor": ["tensor=2"],
    "pipeline": ["pipeline=2", "accumulate=2", "dropout=0"],  # micro-batches are cut out of each rank's part
    "pipeline and tensor": ["pipeline=2", "tensor=2", "accumulate=2"],
    "ZeRO": ["zero=2"],
    "recomputing": ["checkpointing=1"],
}
EAGER = ("data", "tensor", "data and tensor")  # stages, micro-batches, ZeRO and recomputing are a graph's in libai
LIMIT = 300.0  # seconds for a program
TOLERANCE = 2e-4


@dataclass(frozen=True)
class Outcome:
    model: str
    mode: str
    layout: str
    fault: str


def losses(model: str, mode: str, ranks: int, sizes: list[str], again: bool = True) -> tuple[list[float], str]:
    """The losses of a program, or how it failed."""
    with tempfile.TemporaryDirectory() as folder:
        command = [
            sys.executable,
            "-m",
            "weft.oneflow",
            "-m",
            "oneflow.distributed.launch",
            f"--nproc_per_node={ranks}",
        ]
        command += [str(HERE / "libai_train.py"), model, mode, folder, *sizes, *(["--again", "1"] if again else [])]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT)
        except subprocess.TimeoutExpired:
            return [], f"not done after {LIMIT:g} s"
        if done.returncode:
            return [], " | ".join(done.stderr.strip().splitlines()[-3:])
        lines = (Path(folder) / "losses.txt").read_text().splitlines()
    return [float(line.split()[1]) for line in lines], ""


def of_libai(models: tuple[str, ...]) -> Iterator[Outcome]:
    """Each model in each layout on four ranks: the losses of one rank, and after a resume the same once more."""
    for model in models:
        told: dict[tuple[str, ...], list[float]] = {}
        for (layout, sizes), mode in itertools.product(LAYOUTS.items(), ("eager", "graph")):
            if mode == "eager" and layout not in EAGER:
                continue
            micro = tuple(
                s for s in sizes if s.startswith(("accumulate", "dropout"))
            )  # dropout draws anew for each micro-batch
            if micro not in told:
                told[micro], fault = losses(model, "graph", 1, list(micro), again=False)
                if fault:
                    yield Outcome(model, "graph", "one rank", fault)
                    continue
            got, fault = losses(model, mode, 4, sizes)
            wanted = told[micro] + told[micro][2:]
            near = len(got) == len(wanted) and all(abs(a - b) < TOLERANCE for a, b in zip(got, wanted, strict=True))
            yield Outcome(model, mode, layout, fault or ("" if near else f"{got} instead of {wanted}"))


def main(argv: list[str]) -> int:
    failed: list[Outcome] = []
    counts = dict.fromkeys(LAYOUTS, 0)
    models = tuple(argv) or MODELS
    rows = []
    for one in of_libai(models):
        print(f"{one.model} {one.mode} {one.layout}: {one.fault or 'as on one rank'}", flush=True)
        rows.append(one)
    failed = [one for one in rows if one.fault]
    return bool(failed)


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.exit(main(sys.argv[1:]))
