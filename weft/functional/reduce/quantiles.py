"""Medians and quantiles."""

from __future__ import annotations

import math
from typing import Any

from weft.api.signature import overloaded
from weft.api.table import public
from weft.core import dtype as dtypes
from weft.core.errors import ArgumentError, OptionError, ShapeError
from weft.functional.create import creation
from weft.functional.create.likeness import device_of
from weft.functional.results import Ranked, result
from weft.functional.shape.views import movedim
from weft.functional.tensor.conversion import cast
from weft.ops import ops
from weft.ops.shape.views import dim_of
from weft.tensor.tensor import Tensor

WAYS = ("linear", "lower", "higher", "nearest", "midpoint")  # of interpolation between two elements


def _median_of_all(x: Tensor) -> Tensor:
    """The median; with `dim`, that of each slice and its index. Of two middle elements, the lower one.

    >>> flow.median(flow.tensor([3., 1., 2.])).item()
    2.0
    """
    if not x.numel() and x.dtype.is_floating_point:
        return ops.full_like(ops.sum(x.detach()), math.nan, None)
    return _shared(x, ops.median(ops.reshape(x, (-1,)), 0)[0])


def _shared(x: Any, value: Any) -> Any:
    """A value of x, whose gradient goes to all elements that equal it in equal parts, as that of `amax`."""
    if not x.requires_grad:
        return value
    value = value.detach()
    return ops.amax(ops.where(ops.logical_and(ops.ne(x, value), ops.eq(value, value)), -math.inf, x))


def _median_along(x: Tensor, dim: int, keepdim: bool = False) -> Ranked:
    return result("median", *ops.median(x, dim, keepdim))


median = public("flow tensor", "median")(overloaded("median", _median_of_all, _median_along))


def _share(name: str, q: Any) -> Any:
    """q, a number or a vector, in [0, 1]."""
    if isinstance(q, Tensor):
        if q.ndim > 1:
            raise ShapeError(f"{name}(): quantile() q must be a scalar or 1D tensor; got {list(q.shape)}")
        within = ops.logical_and(ops.ge(q, 0), ops.le(q, 1))
        return ops.require(q, within, f"{name}(): quantile() q values must be in the range [0, 1]")
    if not isinstance(q, (list, tuple)) and not 0 <= q <= 1:
        raise OptionError(f"{name}(): quantile() q must be in the range [0, 1] but got {q}")
    return q


def _quantile(name: str, x: Tensor, q: Any, dim: int | None, keepdim: bool, interpolation: str) -> Tensor:
    if interpolation not in WAYS:
        raise ArgumentError(f"{name}(): interpolation is one of {', '.join(WAYS)}; got {interpolation!r}")
    q = _share(name, q)
    d = None if dim is None else dim_of(dim, x.ndim)
    rows = ops.reshape(x, (-1,)) if d is None or not x.ndim else movedim(x, d, -1)
    ordered = ops.sort(rows, -1)[0]  # NaN comes last
    shares = q if isinstance(q, Tensor) else creation.tensor(q, dtype=x.dtype, **device_of(x))
    each, missing = ops.reshape(shares, (-1,)), ops.isnan(rows)
    if name == "nanquantile":
        count = ops.sum(cast(ops.logical_not(missing), x.dtype), -1, True)
        place = ops.clamp(ops.mul(ops.sub(count, 1.0), each), 0.0)
    else:
        last = float(ordered.shape[-1] - 1)
        place = ops.where(ops.any(missing, -1, True), last, ops.mul(each, last))
    place = {"nearest": ops.round, "lower": ops.floor, "higher": ops.ceil}.get(interpolation, lambda p: p)(place)
    low, high = ops.floor(place), ops.ceil(place)
    first, second = (ops.gather(ordered, -1, cast(p, dtypes.int64)) for p in (low, high))
    y = ops.lerp(first, second, ops.full_like(place, 0.5) if interpolation == "midpoint" else ops.sub(place, low))
    y = movedim(y, -1, 0) if shares.ndim else ops.select(y, -1, 0)
    kept = [1 if d in (None, i) else n for i, n in enumerate(x.shape)]
    return ops.reshape(y, (*shares.shape, *kept)) if keepdim else y


@public("flow tensor")
def quantile(
    x: Tensor, q: float | Tensor, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "linear"
) -> Tensor:
    """The q-th quantile of the elements, or NaN if one of them is; a vector q gives a new first dimension.

    >>> flow.quantile(flow.tensor([0., 1., 2.]), 0.25).item()
    0.5
    """
    return _quantile("quantile", x, q, dim, keepdim, interpolation)


@public("flow tensor")
def nanquantile(
    x: Tensor, q: float | Tensor, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "linear"
) -> Tensor:
    """`quantile`, ignoring NaN.

    >>> flow.nanquantile(flow.tensor([0., float("nan"), 2.]), 0.25).item()
    0.5
    """
    return _quantile("nanquantile", x, q, dim, keepdim, interpolation)


@public("flow tensor")
def nanmedian(x: Any, dim: int | None = None, keepdim: bool = False) -> Any:
    """`median`, ignoring NaN."""
    if not x.numel():
        return _median_of_all(x) if dim is None else _median_along(x, dim, keepdim)
    rows = ops.reshape(x, (-1,)) if dim is None else x
    d = dim_of(0 if dim is None else dim, rows.ndim)
    there = ops.logical_not(ops.isnan(rows))
    ordered, places = ops.sort(ops.where(there, rows, math.inf) if x.dtype.is_floating_point else rows, d)
    middle = ops.clamp((ops.sum(cast(there, dtypes.int64), d, True) - 1) // 2, 0)
    value, place = ops.gather(ordered, d, middle), ops.gather(places, d, middle)
    if x.dtype.is_floating_point:
        value = ops.where(ops.any(there, d, True), value, math.nan)
    if dim is None:
        return _shared(x, ops.reshape(value, ()))
    found = (value, place) if keepdim else (ops.squeeze(value, d), ops.squeeze(place, d))
    return result("nanmedian", *found)
