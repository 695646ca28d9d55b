"""The cases that the generic tests run an op on: the samples of its declaration."""

from __future__ import annotations

from typing import Any

import torch

from weft.ops.declaration import Op
from weft.testing.layouts import Args, replaced, tensors


class Skipped(Exception):
    """A check that doesn't apply to this op, with the reason."""


class Passing:
    """An interceptor that changes nothing: calls under it take the general path."""

    def intercept(self, op: Op, args: tuple[Any, ...], go_on: Any) -> Any:
        return go_on(op, args)


def rand(*shape: int) -> torch.Tensor:
    """A random float64 sample, repeatable within a case."""
    return torch.randn(shape, dtype=torch.float64)


def cases(op: Op) -> list[Args]:
    """The op's samples as complete arguments."""
    if op.sample_function is None:
        return []
    torch.default_generator.manual_seed(len(op.name))  # torch.manual_seed formats the stack three times
    rows = []
    for row in op.sample_function(rand):
        row = row if isinstance(row, tuple) else (row,)
        keyed = len(row) == 2 and isinstance(row[0], tuple) and isinstance(row[1], dict)
        rows.append(op.bind(*row) if keyed else op.bind(row, {}))
    return rows


def shown(op: Op, args: Args) -> str:
    return ", ".join(
        f"{n}={list(a.shape) if isinstance(a, torch.Tensor) else type(a).__name__ if isinstance(a, list) else a}"
        for n, a in zip(op.names, args, strict=True)
    )


def copied(op: Op, args: Args) -> Args:
    return replaced(op, args, [t.detach().clone() for t in tensors(op, args)])
