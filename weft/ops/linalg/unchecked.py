"""Factorizations that return an error code instead of raising; 0 is success."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from weft.ops.declaration import Op, op
from weft.ops.linalg import decompositions, solving


@op("... i! j! -> ... i! j!, ...", returns="y info*", memory_order="meta")
def cholesky_ex(x: Tensor) -> Any:
    """`cholesky`, and the order of the first leading minor that isn't positive definite, or 0.

    >>> flow.linalg.cholesky_ex(flow.tensor([[1., 0.], [0., -1.]])).info.item()
    2
    """
    return tuple(torch.linalg.cholesky_ex(x))


@op("... i! j! -> ... j! i!, ...", returns="y info*", memory_order="meta")
def inv_ex(x: Tensor) -> Any:
    """`inv`, and the index (from 1) of a zero pivot, or 0.

    >>> flow.linalg.inv_ex(flow.zeros(2, 2)).info.item()
    1
    """
    return tuple(torch.linalg.inv_ex(x))


@op("... i! j!, ... j! k! -> ... i! k!, ...", returns="y info*", memory_order="meta")
def solve_ex(a: Tensor, b: Tensor) -> Any:
    """`solve`, and the index (from 1) of a zero pivot, or 0.

    >>> flow.linalg.solve_ex(flow.eye(2), flow.eye(2)).info.item()
    0
    """
    y, info = torch.linalg.solve_ex(a, b)
    return y, info.expand(y.shape[:-2])


@op("... i! j! -> ... i! j!, ... k!, ...", returns="lu pivots* info*", memory_order="meta")
def lu_factor_ex(x: Tensor) -> Any:
    """`lu_factor`, and the index (from 1) of a zero pivot, or 0.

    >>> flow.linalg.lu_factor_ex(flow.eye(2)).info.item()
    0
    """
    return tuple(torch.linalg.lu_factor_ex(x))


def _as(plain: Op, ex: Op) -> None:
    """Give an `_ex` op the gradient and the samples of its plain op."""
    assert plain.vjp is not None and plain.sample_function is not None
    ex.grad(plain.vjp)
    ex.samples(plain.sample_function)


_as(decompositions.cholesky, cholesky_ex)
_as(solving.inv, inv_ex)
_as(solving.solve, solve_ex)
_as(decompositions.lu_factor, lu_factor_ex)
