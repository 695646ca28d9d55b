"""Softmax and log_softmax."""

from __future__ import annotations

from typing import Any

from weft.api.table import public
from weft.functional.tensor.conversion import cast
from weft.ops import ops
from weft.tensor.tensor import Tensor


@public("neural flow tensor")
def softmax(x: Tensor, dim: int | None = None, dtype: Any = None) -> Tensor:
    """exp(x), normalized to sum to one along a dimension.

    >>> flow.softmax(flow.zeros(2), 0).tolist()
    [0.5, 0.5]
    """
    return ops.softmax(x if dtype is None else cast(x, dtype), _usual(x) if dim is None else dim)


@public("neural flow tensor")
def log_softmax(x: Tensor, dim: int | None = None, dtype: Any = None) -> Tensor:
    """log(softmax(x)), numerically stable."""
    return ops.log_softmax(x if dtype is None else cast(x, dtype), _usual(x) if dim is None else dim)


@public("neural")
def softmin(input: Tensor, dim: int | None = None, dtype: Any = None) -> Tensor:
    """softmax(-x)."""
    return softmax(ops.neg(input if dtype is None else cast(input, dtype)), dim)


def _usual(x: Tensor) -> int:
    """The dimension if none is named, in PyTorch and OneFlow."""
    return 0 if x.ndim in (0, 1, 3) else 1
