"""Parameters of 16 bits move as torch's do, few and many: kernels take those that fill a vector in another way."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import weft as flow

OPTIMIZERS: list[tuple[str, dict[str, Any]]] = [
    ("SGD", {}), ("SGD", {"momentum": 0.9}), ("SGD", {"momentum": 0.9, "nesterov": True, "weight_decay": 0.1}),
    ("SGD", {"momentum": 0.9, "dampening": 0.1, "maximize": True}), ("Adam", {"weight_decay": 0.1}), ("AdamW", {}),
    ("AdamW", {"amsgrad": True, "maximize": True}), ("Adagrad", {"lr_decay": 0.1}), ("RMSprop", {"momentum": 0.9}),
    ("RMSprop", {"centered": True}), ("Adadelta", {}), ("Adamax", {}), ("NAdam", {}), ("RAdam", {}), ("ASGD", {}),
    ("Rprop", {}),
]  # fmt: skip


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize(("name", "options"), OPTIMIZERS, ids=lambda v: v if isinstance(v, str) else "-".join(v))
def test_it_steps_as_in_torch(name: str, options: dict[str, Any], dtype: str) -> None:
    torch.manual_seed(0)
    shapes = ((3,), (50,), (8, 16))
    theirs = [torch.nn.Parameter(torch.randn(s).to(getattr(torch, dtype))) for s in shapes]
    before = [p.detach().clone() for p in theirs]
    mine = [flow.nn.Parameter(flow.from_torch(p.detach().clone())) for p in theirs]
    options = {"lr": 1.0 if name == "Adadelta" else 0.1, **options}
    a, b = getattr(torch.optim, name)(theirs, **options), getattr(flow.optim, name)(mine, **options)
    for _ in range(3):
        for p, q in zip(theirs, mine, strict=True):
            p.grad = torch.randn(p.shape).to(p.dtype)
            q.grad = flow.from_torch(p.grad.clone())
        a.step()
        b.step()
    for p, q, was in zip(theirs, mine, before, strict=True):
        off, moved = (q.detach().to_torch() - p.detach()).float().norm(), (p.detach() - was).float().norm()
        assert moved > 0 and off < 0.1 * moved
