"""`make zoo`: train each model two steps in four ways, compare with torch, and write docs/models.md.

python -m tests.zoo                    all of them
python -m tests.zoo GPT-2 resnet18     some of them, printed and not written
"""

from __future__ import annotations

import importlib.metadata
import sys
import time
from pathlib import Path
from typing import Final

import torch

from tests.zoo.models import LEFT_OUT, MODELS
from tests.zoo.train import COLUMNS, LOOSE, TIGHT, row

PAGE: Final = Path(__file__).parents[2] / "docs" / "models.md"
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

A yes says that no tensor differed by {TIGHT:.0e} or more. A number is the largest difference, where it was more, below
{LOOSE:.0e}: parts of these models compute in float32 whatever they are given. What is nothing but rounding (the
gradient of a bias before a normalization, say) was measured by a millionth of the largest tensor of its kind.
Everything else is told in words; an error by the first line of what the user reads.

[from-pytorch.md](from-pytorch.md) says how it is done.
"""


def main(names: list[str]) -> int:
    torch.set_num_threads(1)
    begun, lines, good, cells = time.monotonic(), [HEAD], 0, 0
    for library, models in MODELS.items():
        lines += ["", f"## {library} {importlib.metadata.version(library)}", ""]
        lines += [f"| model | {' | '.join(COLUMNS)} |", "|---" * (len(COLUMNS) + 1) + "|"]
        for name, make in models.items():
            if names and name not in names:
                continue
            found, seconds = row(make)
            lines.append("| " + " | ".join([name, *(found[c].replace("|", "/") for c in COLUMNS)]) + " |")
            print(f"{time.monotonic() - begun:6.0f} s {seconds:5.1f} {lines[-1]}", flush=True)
            good += sum(r == "yes" or r[0].isdigit() for r in found.values())
            cells += len(found)
        lines += ["", *(f"Not run: {name}, {why}." for name, why in LEFT_OUT.get(library, {}).items())]
    print(f"{good} of {cells} cells are torch's")
    if not names:
        PAGE.write_text("\n".join(lines).rstrip() + "\n")
        print(f"wrote {PAGE}")
    return 0 if good == cells and good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
