"""`make zoo`: train each model two steps in four ways, compare the losses with torch's, and write docs/models.md.

python -m tests.zoo                    all of them
python -m tests.zoo GPT-2 resnet18     some of them, printed and not written
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parents[2]
PAGE: Final = ROOT / "docs" / "models.md"
COLUMNS: Final = {"eager": 1, "graph": 1, "data": 2, "tensor": 2}  # and on how many ranks
HEAD: Final = """\
# Models of other libraries

What `make zoo` saw: each model, unmodified, in a tiny configuration with random weights, was taken by `flow.from_torch`
and trained two steps, in training mode with its dropout. A yes says that both losses were torch's, to float tolerance.

- **eager**: on one rank, and the gradients of the first step were torch's, too;
- **graph**: the same steps as a `nn.Graph` with its optimizer;
- **data**: on two ranks, the batch split;
- **tensor**: on two ranks, the weights split by the model's own `base_model_tp_plan`, or where it has none, every
  weight along its first dimension.

[from-pytorch.md](from-pytorch.md) says how it is done. Where a cell names an error, it is the first line of what the
user reads.
"""


def rows(names: list[str]) -> Iterator[tuple[str, dict[str, str]]]:
    """What became of each model, by column."""
    found: dict[str, dict[str, str]] = {}
    for ranks in (1, 2):
        wanted = [c for c, n in COLUMNS.items() if n == ranks]
        command = [sys.executable, "-m", "weft.launch", "--nproc_per_node", str(ranks), "tests/zoo/train.py"]
        ran = subprocess.Popen(
            [*command, ",".join(wanted), *names], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            text=True, env={**os.environ, "PYTHONPATH": str(ROOT), "HF_HUB_OFFLINE": "1"},
        )  # fmt: skip
        assert ran.stdout is not None
        for line in ran.stdout:
            _, at, text = line.partition("{")
            if at:
                told: dict[str, Any] = json.loads(at + text)
                found.setdefault(told["model"], {})[told["column"]] = told["result"]
                print(f"{told['model']:24} {told['column']:8} {told['result']}", flush=True)
        ran.wait()
    yield from found.items()


def table(found: dict[str, dict[str, str]], libraries: dict[str, list[str]], versions: dict[str, str]) -> str:
    lines = [HEAD]
    for library, models in libraries.items():
        lines += ["", f"## {library} {versions[library]}", "", f"| model | {' | '.join(COLUMNS)} |", "|---" * 5 + "|"]
        for model in models:
            cells = [found.get(model, {}).get(c, "not run").replace("|", "/") for c in COLUMNS]
            lines.append(f"| {model} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def main(names: list[str]) -> int:
    found = dict(rows(names))
    good = [r == "yes" for columns in found.values() for r in columns.values()]
    print(f"{sum(good)} of {len(good)} cells are torch's")
    if not names:
        told = subprocess.run([sys.executable, "tests/zoo/train.py", "--list"], cwd=ROOT, capture_output=True,
                              text=True, env={**os.environ, "PYTHONPATH": str(ROOT)}, check=True)  # fmt: skip
        PAGE.write_text(table(found, *json.loads(told.stdout.splitlines()[-1])))
        print(f"wrote {PAGE.relative_to(ROOT)}")
    return 0 if all(good) and good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
