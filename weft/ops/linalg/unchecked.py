"""Matrices taken apart without a complaint where that cannot be: beside the result, how far it went; 0 is all of it."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from weft.ops.declaration import Op, op
from weft.ops.linalg import decompositions, factors


@op("... i! j! -> ... i! j!, ...", returns="y info*")
def cholesky_ex(x: Tensor) -> Any:
    """`cholesky`, and which leading part of each matrix is the first that isn't positive definite, or 0.

    >>> flow.linalg.cholesky_ex(flow.tensor([[1., 0.], [0., -1.]])).info.item()
    2
    """
    return tuple(torch.linalg.cholesky_ex(x))


@op("... i! j! -> ... j! i!, ...", returns="y info*")
def inv_ex(x: Tensor) -> Any:
    """`inv`, and which number of a diagonal was zero, or 0.

    >>> flow.linalg.inv_ex(flow.zeros(2, 2)).info.item()
    1
    """
    return tuple(torch.linalg.inv_ex(x))


@op("... i! j!, ... j! k! -> ... i! k!, ...", returns="y info*")
def solve_ex(a: Tensor, b: Tensor) -> Any:
    """`solve`, and which number of a diagonal was zero, or 0.

    >>> flow.linalg.solve_ex(flow.eye(2), flow.eye(2)).info.item()
    0
    """
    y, info = torch.linalg.solve_ex(a, b)
    return y, info.expand(y.shape[:-2])


@op("... i! j! -> ... i! j!, ... k!, ...", returns="lu pivots* info*")
def lu_factor_ex(x: Tensor) -> Any:
    """`lu_factor`, and which number of the upper triangle's diagonal is zero, or 0.

    >>> flow.linalg.lu_factor_ex(flow.eye(2)).info.item()
    0
    """
    return tuple(torch.linalg.lu_factor_ex(x))


def _as(plain: Op, ex: Op) -> None:
    """The same gradient, on the same samples."""
    assert plain.vjp is not None and plain.sample_function is not None
    ex.grad(plain.vjp)
    ex.samples(plain.sample_function)


_as(decompositions.cholesky, cholesky_ex)
_as(decompositions.inv, inv_ex)
_as(decompositions.solve, solve_ex)
_as(factors.lu_factor, lu_factor_ex)
