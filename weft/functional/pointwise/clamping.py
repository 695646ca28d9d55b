"""clamp: limits elements to bounds."""

from __future__ import annotations

from typing import Any

import torch

from weft.api.fast_path import in_one, shortened
from weft.api.table import public
from weft.functional.create.creation import get_default_dtype
from weft.functional.pointwise.arithmetic import _clamp_
from weft.functional.tensor.in_place import into, number_like
from weft.ops import OPS, ops
from weft.ops.pointwise.ties import part_of_first
from weft.tensor.tensor import Tensor


@public("flow tensor")
def clamp_min(x: Tensor, min: Any) -> Tensor:
    """x limited to at least min."""
    return clamp(x, min)


@public("flow tensor")
def clamp_max(x: Tensor, max: Any) -> Tensor:
    """x limited to at most max."""
    return clamp(x, None, max)


@public("flow tensor", "clamp_min_")
def clamp_min_(x: Tensor, min: Any) -> Tensor:
    """In-place `clamp_min`."""
    return clamp_(x, min)


@public("flow tensor", "clamp_max_")
def clamp_max_(x: Tensor, max: Any) -> Tensor:
    """In-place `clamp_max`."""
    return clamp_(x, None, max)


@public("flow tensor", "clamp clip")
def clamp(x: Tensor, min: Any = None, max: Any = None) -> Tensor:
    """x limited to [min, max]: numbers, tensors that broadcast, or None.

    >>> flow.clamp(flow.tensor([-2.0, 0.5, 3.0]), min=-1, max=1).tolist()
    [-1.0, 0.5, 1.0]
    """
    if isinstance(min, Tensor) or isinstance(max, Tensor):
        return _between(x, min, max)
    return ops.clamp(x, min, max)


@in_one(torch.clamp, derived=True)
def _limited(x: Tensor, min: Any, max: Any) -> Tensor:
    """x limited by tensors."""
    if (isinstance(min, float) or isinstance(max, float)) and not x.dtype.differentiable:
        x = ops.cast(x, get_default_dtype())
    low = x if min is None else _bounded("lt", "maximum", x, number_like(x, min))
    return low if max is None else _bounded("gt", "minimum", low, number_like(x, max))


@in_one(torch.Tensor.clamp_, writes=True)
def _limited_in_place(x: Tensor, min: Any, max: Any) -> Tensor:
    return into(x, clamp, min, max)


_between, _between_ = shortened(_limited, _limited), shortened(_limited_in_place, _limited_in_place)


@public("flow tensor", "clamp_ clip_")
def clamp_(x: Tensor, min: Any = None, max: Any = None) -> Tensor:
    """In-place `clamp`."""
    if isinstance(min, Tensor) or isinstance(max, Tensor):
        return _between_(x, min, max)
    return _clamp_(x, min, max)


def _bounded(beyond: str, sharing: str, x: Tensor, limit: Tensor) -> Tensor:
    """x limited by a tensor, also by its NaN; where they are equal, the gradient is x's, or both have a part of it."""
    if part_of_first("clamp") < 1:
        return OPS[sharing](x, limit)
    outside = OPS[beyond](x, limit)
    if limit.dtype.is_floating_point:
        outside = ops.logical_or(outside, ops.isnan(limit))
    return ops.where(outside, limit, x)
