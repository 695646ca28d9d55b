"""`make zoo`: train each model two steps in four ways, compare with torch, and write docs/models.md.

python -m tests.zoo                    all of them
python -m tests.zoo GPT-2 resnet18     some of them
python -m tests.zoo rest               those of which nothing is known

What was found is kept below build/ as it comes, and the page has all that is known.
"""

from __future__ import annotations

import importlib.metadata
import json
import sys
import time
from pathlib import Path
from typing import Final

import torch

from tests.zoo.models import MODELS
from tests.zoo.train import COLUMNS, LOOSE, TIGHT, row

PAGE: Final = Path(__file__).parents[2] / "docs" / "models.md"
FOUND: Final = PAGE.parents[1] / "build" / "zoo-models.json"
HEAD: Final = f"""\
# Models of other libraries

What `python -m tests.zoo` wrote. Each model, unmodified, in a small configuration with random weights, was taken by
`flow.from_torch` and trained two steps of SGD in training mode, with its dropout and its buffers, in float64; torch
trained a copy beside it. Compared were both losses, all parameters and buffers after the steps, and, but for graphs,
all gradients of the first step: tensor by tensor, the norm of the difference over the norm of torch's.

- **eager**: on one rank;
- **graph**: the same steps as a `nn.Graph` with its optimizer;
- **data**: on two ranks (threads of one process), the batch split;
- **tensor**: on two ranks, the weights split by the model's own `base_model_tp_plan`, or where it has none, every
  weight along its first dimension.

On two ranks, dropout of a tensor that was transposed goes through it row by row, where torch goes in the order of
memory: such models were compared with torch's on contiguous tensors.

A yes says that no tensor differed by {TIGHT:.0e} or more. A number is the largest difference, where it was more, below
{LOOSE:.0e}: parts of these models compute in float32 whatever they are given. What is nothing but rounding (the
gradient of a bias before a normalization, say) was measured by a millionth of the largest tensor of its kind.
Everything else is told in words; an error by the first line of what the user reads. Those of the last run are values
that a graph's trace can't know: detectors draw the size of their images. `torch.export` refuses them, too.

[from-pytorch.md](from-pytorch.md) says how it is done.
"""


Rows = dict[str, dict[str, dict[str, str]]]  # by library and its version, model and column


def page(known: Rows) -> str:
    lines = [HEAD]
    for library, models in MODELS.items():
        found = known.get(titled(library), {})
        lines += ["", f"## {titled(library)}", ""]
        lines += [f"| model | {' | '.join(COLUMNS)} |", "|---" * (len(COLUMNS) + 1) + "|"]
        lines += [line(name, found.get(name, dict.fromkeys(COLUMNS, "not run"))) for name in models]
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def titled(library: str) -> str:
    return f"{library} {importlib.metadata.version(library)}"


def line(name: str, found: dict[str, str]) -> str:
    return "| " + " | ".join([name, *(found[c].replace("|", "/") for c in COLUMNS)]) + " |"


def main(names: list[str]) -> int:
    """Try models and write the page; fails if one failed in a way that the page didn't tell before."""
    torch.set_num_threads(1)
    known: Rows = json.loads(FOUND.read_text()) if names and FOUND.exists() else {}
    FOUND.parent.mkdir(exist_ok=True)
    before = PAGE.read_text() if PAGE.exists() else ""
    begun, good = time.monotonic(), True
    for library, models in MODELS.items():
        for name, make in models.items():
            found = known.setdefault(titled(library), {})
            if name not in names if names and names != ["rest"] else names and name in found:
                continue
            found[name], seconds = row(make)
            print(f"{time.monotonic() - begun:6.0f} s {seconds:5.1f} {line(name, found[name])}", flush=True)
            good = good and all(r == "yes" or r[0].isdigit() or r[:80] in before for r in found[name].values())
            FOUND.write_text(json.dumps(known, indent=1))
            PAGE.write_text(page(known))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
