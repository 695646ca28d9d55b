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
from weft.functional.reduce.sorting import Ranked
from weft.functional.shape.joining import stack
from weft.functional.shape.splitting import unbind
from weft.functional.tensor.conversion import cast
from weft.ops import ops
from weft.ops.shape.views import dim_of
from weft.tensor.tensor import Tensor, at_hand

WAYS = ("linear", "lower", "higher", "nearest", "midpoint")  # of interpolation between two elements


def _median_of_all(x: Tensor) -> Tensor:
    """The median; with `dim`, that of each slice and its index. Of two middle elements, the lower one.

    >>> flow.median(flow.tensor([3., 1., 2.])).item()
    2.0
    """
    return ops.median(ops.reshape(x, (-1,)), 0)[0]


def _median_along(x: Tensor, dim: int, keepdim: bool = False) -> Ranked:
    return Ranked(*ops.median(x, dim, keepdim))


median = public("flow tensor", "median")(overloaded("median", _median_of_all, _median_along))


def _share(name: str, q: Any) -> None:
    """Raise unless q is in [0, 1], a number or a vector, as far as its data is known."""
    if isinstance(q, Tensor):
        if q.ndim > 1:
            raise ShapeError(f"{name}(): quantile() q must be a scalar or 1D tensor; got {list(q.shape)}")
        data = at_hand(q)
        if data is not None and not bool(((data >= 0) & (data <= 1)).all()):
            raise OptionError(f"{name}(): quantile() q values must be in the range [0, 1] but got {data.tolist()}")
    elif not isinstance(q, (list, tuple)) and not 0 <= q <= 1:
        raise OptionError(f"{name}(): quantile() q must be in the range [0, 1] but got {q}")


@public("flow tensor")
def quantile(
    x: Tensor, q: float | Tensor, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "linear"
) -> Tensor:
    """The q-th quantile of the elements; a vector q gives a new first dimension.

    >>> flow.quantile(flow.tensor([0., 1., 2.]), 0.25).item()
    0.5
    """
    if interpolation not in WAYS:
        raise ArgumentError(f"quantile(): interpolation is one of {', '.join(WAYS)}; got {interpolation!r}")
    _share("quantile", q)
    if dim is not None and not x.ndim:
        dim_of(dim, 0)
        dim = None
    shape = tuple(x.shape)
    rows = ops.reshape(x, (-1,)) if dim is None else ops.transpose(x, dim_of(dim, x.ndim), -1)
    ordered = ops.sort(rows, -1)[0]
    shares = q if isinstance(q, Tensor) else creation.tensor(q, dtype=x.dtype, **device_of(x))
    place = ops.reshape(ops.mul(shares, float(ordered.shape[-1] - 1)), (-1,))
    low, high = ops.floor(place), ops.ceil(place)
    if interpolation == "nearest":
        low = high = ops.round(place)
    elif interpolation == "lower":
        high = low
    elif interpolation == "higher":
        low = high
    weight = ops.full_like(place, 0.5) if interpolation == "midpoint" else ops.sub(place, low)
    first, second = (ops.index_select(ordered, -1, cast(p, dtypes.int64)) for p in (low, high))
    y = ops.permute(ops.lerp(first, second, weight), (first.ndim - 1, *range(first.ndim - 1)))
    if keepdim:
        kept = [1] * len(shape) if dim is None else [1 if i == dim_of(dim, x.ndim) else n for i, n in enumerate(shape)]
        y = ops.reshape(y if dim is None else _back(y, dim_of(dim, x.ndim), len(shape)), (place.shape[0], *kept))
    elif dim is not None:
        y = _back(y, dim_of(dim, x.ndim), len(shape))
    return y if shares.ndim else ops.select(y, 0, 0)


@public("flow tensor")
def nanquantile(
    x: Any, q: float | Tensor, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "linear"
) -> Tensor:
    """`quantile`, ignoring NaN.

    >>> flow.nanquantile(flow.tensor([0., float("nan"), 2.]), 0.25).item()
    0.5
    """
    _share("nanquantile", q)
    if isinstance(q, Tensor) and q.ndim:
        each = [nanquantile(x, s, dim, keepdim, interpolation=interpolation) for s in unbind(q)]
        return stack(each, 0)
    d = -1 if dim is None else dim_of(dim, x.ndim)
    rows = ops.reshape(x, (-1,)) if dim is None else x
    ordered = ops.sort(rows, d)[0]  # NaN comes last
    count = ops.sum(cast(ops.logical_not(ops.isnan(rows)), x.dtype), d, True)
    place = ops.clamp(ops.mul(ops.sub(count, 1.0), q), 0.0)
    low, high = ops.floor(place), ops.ceil(place)
    if interpolation in ("nearest", "lower", "higher"):
        low = high = {"nearest": ops.round(place), "lower": low, "higher": high}[interpolation]
    elif interpolation not in ("linear", "midpoint"):
        raise ArgumentError(f"nanquantile(): interpolation is one of {', '.join(WAYS)}; got {interpolation!r}")
    first, second = (ops.gather(ordered, d, cast(p, dtypes.int64)) for p in (low, high))
    y = ops.lerp(first, second, ops.full_like(place, 0.5) if interpolation == "midpoint" else ops.sub(place, low))
    if dim is None:
        return ops.reshape(y, (1,) * x.ndim if keepdim else ())
    return y if keepdim else ops.squeeze(y, d)


def _back(y: Tensor, d: int, ndim: int) -> Tensor:
    """Undo the move of `dim` to the end."""
    if d == ndim - 1:
        return y
    rest = list(range(1, ndim))
    moved = rest.pop(d)
    return ops.permute(y, (0, *rest, moved))


@public("flow tensor")
def nanmedian(x: Any, dim: int | None = None, keepdim: bool = False) -> Any:
    """`median`, ignoring NaN."""
    rows = ops.reshape(x, (-1,)) if dim is None else x
    d = dim_of(0 if dim is None else dim, rows.ndim)
    there = ops.logical_not(ops.isnan(rows))
    ordered, places = ops.sort(ops.where(there, rows, math.inf) if x.dtype.is_floating_point else rows, d)
    middle = ops.clamp((ops.sum(cast(there, dtypes.int64), d, True) - 1) // 2, 0)
    value, place = ops.gather(ordered, d, middle), ops.gather(places, d, middle)
    if x.dtype.is_floating_point:
        value = ops.where(ops.any(there, d, True), value, math.nan)
    if dim is None:
        return ops.reshape(value, ())
    return Ranked(value, place) if keepdim else Ranked(ops.squeeze(value, d), ops.squeeze(place, d))
