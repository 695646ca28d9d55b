"""max and min: of all elements, along a dimension, of two tensors."""

from __future__ import annotations

import torch

from weft.api.fast_path import Short, in_one, shortened
from weft.api.signature import overloaded
from weft.api.table import public
from weft.functional.results import Extremes, Ranked, result
from weft.ops import ops
from weft.tensor.tensor import Tensor


@public("flow tensor")
@in_one(torch.aminmax)
def aminmax(x: Tensor, *, dim: int | None = None, keepdim: bool = False) -> Extremes:
    """The smallest and the largest element, over a dimension or all."""
    return result("aminmax", ops.amin(x, dim, keepdim), ops.amax(x, dim, keepdim))


def _max_of_all(x: Tensor) -> Tensor:
    """The maximum; with `dim`, that of each slice and its index; of two tensors, the element-wise maximum.

    >>> flow.max(flow.tensor([[1., 3.], [5., 2.]]), 1)[0].tolist()
    [3.0, 5.0]
    """
    return ops.amax(x)


def _max_along(x: Tensor, dim: int, keepdim: bool = False) -> Ranked:
    return result("max", *ops.max(x, dim, keepdim))


def _max_of_two(x: Tensor, other: Tensor) -> Tensor:
    return ops.maximum(x, other)


def _min_of_all(x: Tensor) -> Tensor:
    """The minimum; with `dim`, that of each slice and its index; of two tensors, the element-wise minimum."""
    return ops.amin(x)


def _min_along(x: Tensor, dim: int, keepdim: bool = False) -> Ranked:
    return result("min", *ops.min(x, dim, keepdim))


def _min_of_two(x: Tensor, other: Tensor) -> Tensor:
    return ops.minimum(x, other)


_OF_ALL = "kernel(d0, None, False)", "dim, keepdim = None, False"
_of_max = overloaded("max", _max_of_all, _max_along, _max_of_two)
_of_min = overloaded("min", _min_of_all, _min_along, _min_of_two)
max = public("flow tensor", "max")(shortened(_max_of_all, _of_max, Short("amax", *_OF_ALL)))
min = public("flow tensor", "min")(shortened(_min_of_all, _of_min, Short("amin", *_OF_ALL)))
