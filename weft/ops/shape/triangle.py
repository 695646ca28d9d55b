"""Triangles of matrices, and the causal mask."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from weft.ops.declaration import Op, op
from weft.ops.form import alike
from weft.ops.shape.views import axes


def _matrices(x: tuple[int, ...]) -> str:
    names = axes(len(x))
    term = " ".join([*names[:-2], *(f"{a}!" for a in names[-2:])])
    return f"{term} -> {term}"


def _triangle(name: str, kernel: Callable[..., Any], into: Callable[..., Any], which: str, shown: str) -> Op:
    def body(x: Tensor, diagonal: int = 0) -> Tensor:
        return kernel(x, diagonal)

    body.__name__ = name
    body.__doc__ = f"""The {which} triangle of every matrix, from a diagonal on; zeros elsewhere.

    >>> flow.{name}(flow.ones(2, 2)).tolist()
    {shown}
    """
    declared = op(linear="x")(body)
    declared.layout(lambda x, diagonal: _matrices(x))
    declared.form(lambda x, diagonal: x if len(x.shape) > 1 else None)
    declared.out(lambda y, x, diagonal: kernel(x, diagonal, out=y))
    declared.inplace(lambda x, diagonal: into(x, diagonal))
    declared.samples(lambda rand: [(rand(4, 6),), (rand(3, 4, 4), 1), (rand(4, 6), -1)])
    declared.grad(lambda dy, diagonal: declared(dy, diagonal))

    return declared


tril = _triangle("tril", torch.tril, Tensor.tril_, "lower", "[[1.0, 0.0], [1.0, 1.0]]")
triu = _triangle("triu", torch.triu, Tensor.triu_, "upper", "[[1.0, 1.0], [0.0, 1.0]]")


@op()
def hide_future(scores: Tensor) -> Tensor:
    """Scores of (..., query, key) with a causal mask: minus infinity where the key comes after the query.

    >>> flow._C.hide_future(flow.zeros(2, 2)).tolist()
    [[0.0, -inf], [0.0, 0.0]]
    """
    future = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).triu_(1)
    return scores.masked_fill(future, -torch.inf)


hide_future.layout(_matrices)
hide_future.form(lambda scores: scores if len(scores.shape) > 1 and alike(scores) else None)
hide_future.grad(lambda dy: tril(dy))
hide_future.samples(lambda rand: [rand(3, 4, 6)])
