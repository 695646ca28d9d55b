"""Programs written for OneFlow, unmodified: runs libai's models in every layout and flowvision's classification models.

    python -m tests.zoo.programs                  # all: `make zoo`, which installs them before
    python -m tests.zoo.programs gpt flowvision   # some
    python -m tests.zoo.programs gpt flowvision rest   # of these, what isn't known yet
    python -m tests.zoo.programs nothing          # none

What was found is kept below build/ as it comes, and the counts of all that is known are written into
docs/from-oneflow.md.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs" / "from-oneflow.md"
FOUND = HERE.parents[1] / "build" / "zoo-oneflow.json"
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


def of_libai(models: tuple[str, ...], known: Collection[str]) -> Iterator[Outcome]:
    """Each model in each layout on four ranks: the losses of one rank, and after a resume the same once more. But for
    what is known."""
    for model in models:
        alone: dict[tuple[str, ...], list[float]] = {}
        for (layout, sizes), mode in itertools.product(LAYOUTS.items(), ("eager", "graph")):
            if (mode == "eager" and layout not in EAGER) or f"{model} {mode} {layout}" in known:
                continue
            # dropout draws anew for each micro-batch
            micro = tuple(s for s in sizes if s.startswith(("accumulate", "dropout")))
            if micro not in alone:
                alone[micro], fault = losses(model, "graph", 1, list(micro), again=False)
                if fault:
                    yield Outcome(model, "graph", "one rank", fault)
                    continue
            got, fault = losses(model, mode, 4, sizes)
            wanted = alone[micro] + alone[micro][2:]
            near = len(got) == len(wanted) and all(abs(a - b) < TOLERANCE for a, b in zip(got, wanted, strict=True))
            yield Outcome(model, mode, layout, fault or ("" if near else f"{got} instead of {wanted}"))


def of_flowvision(known: Collection[str]) -> Iterator[tuple[str, str]]:
    command = [sys.executable, "-m", "weft.oneflow", str(HERE / "flowvision_models.py"), "but", *known]
    running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert running.stdout is not None
    lines = 0
    for lines, line in enumerate(running.stdout, 1):  # noqa: B007
        name, _, words = line.strip().partition(": ")
        yield name, words
    if running.wait() and not lines:
        raise RuntimeError(f"{' '.join(command[1:4])} told nothing, and ended with {running.returncode}: run it alone")


def told(found: dict[str, str], images: dict[str, str]) -> str:
    """What is known, as the page has it."""
    lines = ["| libai | eager | graph |", "|---|---|---|"]
    for model in MODELS:
        row = [model]
        for mode in ("eager", "graph"):
            mine = [v for k, v in found.items() if k.startswith(f"{model} {mode} ")]
            row.append(f"{mine.count('')} of {len(mine)} layouts" if mine else "not run")
        lines.append(f"| {' | '.join(row)} |")
    faults = [f"- {k}: {v[:160]}" for k, v in found.items() if v]
    lines += ["", *faults, *([""] if faults else [])]
    trained, over, failed, same = (
        sum(word in v for v in images.values()) for word in ("trained", "over", "failed", ", as torchvision")
    )
    lines.append(
        f"Of flowvision's classification models {len(images)} were tried: {trained} trained a step on "
        f"the smallest images that they take, {over} needed more memory or time than a model is given, and {failed} "
        f"failed; {same} gave torchvision's outputs for its weights."
    )
    lines += ["", *(f"- {k}: {v[:160]}" for k, v in images.items() if "trained" not in v)]
    return "\n".join(lines).rstrip() + "\n"


def keep(known: dict[str, dict[str, str]]) -> None:
    FOUND.parent.mkdir(parents=True, exist_ok=True)
    FOUND.write_text(json.dumps(known, indent=1))
    text = told(known["libai"], known["flowvision"])
    PAGE.write_text(MARK.sub(lambda m: f"{m[1]}{text}{m[2]}", PAGE.read_text()))


def main(argv: list[str]) -> int:
    known = json.loads(FOUND.read_text()) if FOUND.exists() else {"libai": {}, "flowvision": {}}
    rest, argv = "rest" in argv, [a for a in argv if a != "rest"]
    old = {kind: tuple(found) if rest else () for kind, found in known.items()}
    for one in of_libai(tuple(m for m in argv if m in MODELS) or (() if argv else MODELS), old["libai"]):
        print(f"{one.model} {one.mode} {one.layout}: {one.fault or 'as on one rank'}", flush=True)
        known["libai"][f"{one.model} {one.mode} {one.layout}"] = one.fault
        keep(known)
    for name, words in of_flowvision(old["flowvision"]) if not argv or "flowvision" in argv else ():
        print(f"{name}: {words}", flush=True)
        known["flowvision"][name] = words
        keep(known)
    keep(known)
    return any(known["libai"].values()) or any("failed" in v for v in known["flowvision"].values())


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.exit(main(sys.argv[1:]))
