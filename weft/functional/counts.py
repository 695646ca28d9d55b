"""Counts and moments beyond the daily ones, composed of ops: `count_nonzero`, `cov`, `var_mean`, `diff`, ..."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch

from weft.core import dtype as dtypes
from weft.core.errors import ArgumentError, ShapeError
from weft.functional import creation, reduction
from weft.functional.conversion import cast
from weft.functional.info import promote_types
from weft.functional.likeness import beside
from weft.functional.ranked import Ranked
from weft.functional.table import calling, public
from weft.ops import OPS
from weft.ops.shape import dim_of
from weft.tensor.tensor import Tensor

_sum, _mean, _amax, _amin, _where, _narrow = map(calling, ("sum", "mean", "amax", "amin", "where", "narrow"))


@public("flow tensor")
def count_nonzero(x: Tensor, dim: Any = None) -> Tensor:
    """How many elements aren't zero, over some dimensions or all.

    >>> flow.count_nonzero(flow.tensor([0, 2, 3])).item()
    2
    """
    return _sum(cast(OPS["ne"](x, 0), dtypes.int64), dim)


@public("flow tensor")
def aminmax(x: Tensor, *, dim: int | None = None, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """The smallest and the largest element, over a dimension or all."""
    return _amin(x, dim, keepdim), _amax(x, dim, keepdim)


@public("flow")
def var_mean(
    x: Tensor, dim: Any = None, unbiased: bool = True, keepdim: bool = False, *, correction: Any = None
) -> Any:
    """The variance and the mean."""
    if isinstance(dim, bool):  # PyTorch's short form
        dim, unbiased = None, dim
    return reduction.var(x, dim, unbiased, keepdim, correction=correction), _mean(x, dim, keepdim)


@public("flow")
def std_mean(
    x: Tensor, dim: Any = None, unbiased: bool = True, keepdim: bool = False, *, correction: Any = None
) -> Any:
    """The standard deviation and the mean."""
    if isinstance(dim, bool):
        dim, unbiased = None, dim
    return reduction.std(x, dim, unbiased, keepdim, correction=correction), _mean(x, dim, keepdim)


@public("flow tensor")
def nanmean(x: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """The mean of the elements that are numbers.

    >>> flow.nanmean(flow.tensor([1.0, float("nan"), 3.0])).item()
    2.0
    """
    x = x if dtype is None else cast(x, dtype)
    there = OPS["logical_not"](OPS["isnan"](x))
    return _sum(_where(there, x, 0.0), dim, keepdim) / _sum(cast(there, x.dtype), dim, keepdim)


@public("flow tensor")
def bucketize(x: Any, boundaries: Tensor, *, out_int32: bool = False, right: bool = False) -> Tensor:
    """Between which boundaries, in rising order, each element lies.

    >>> flow.bucketize(flow.tensor([0.5, 2.0]), flow.tensor([0.0, 1.0])).tolist()
    [1, 2]
    """
    if boundaries.ndim != 1:
        raise ShapeError(f"bucketize(): boundaries tensor must be 1 dimension, but got dim({boundaries.ndim})")
    values = x if isinstance(x, Tensor) else creation.tensor(x, **beside(boundaries))
    found = OPS["searchsorted"](boundaries, values, right)
    return cast(found, dtypes.int32) if out_int32 else found


@public("flow")
def searchsorted(
    sorted_sequence: Tensor, values: Any, out_int32: bool = False, right: bool = False, *, side: str | None = None,
    sorter: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """Where values would go in a sequence in rising order: before its equals, or with `right` behind them.

    >>> flow.searchsorted(flow.tensor([1., 3., 5.]), flow.tensor([3., 4.]), side="right").tolist()
    [2, 2]
    """
    if side not in (None, "left", "right") or (side == "left" and right):
        raise ArgumentError(f'searchsorted(): side is "left" or "right"; got {side!r} with right={right}')
    if sorter is not None:
        sorted_sequence = OPS["gather"](sorted_sequence, -1, sorter)
    given = values if isinstance(values, Tensor) else creation.tensor(values, **beside(sorted_sequence))
    found = OPS["searchsorted"](sorted_sequence, given, right or side == "right")
    return cast(found, dtypes.int32) if out_int32 else found


@public("flow tensor")
def isin(elements: Any, test_elements: Any, *, assume_unique: bool = False, invert: bool = False) -> Tensor:
    """Whether each element is among others.

    >>> flow.isin(flow.tensor([1, 2, 3]), flow.tensor([3, 1])).tolist()
    [True, False, True]
    """
    like = elements if isinstance(elements, Tensor) else test_elements
    x, others = (v if isinstance(v, Tensor) else creation.tensor(v, **beside(like)) for v in (elements, test_elements))
    same = OPS["eq"](OPS["unsqueeze"](x, -1), OPS["reshape"](others, (-1,)))
    found = OPS["any"](same, -1) if others.numel() else OPS["ne"](x, x)
    return OPS["logical_not"](found) if invert else found


@public("flow tensor")
def diff(x: Tensor, n: int = 1, dim: int = -1, prepend: Tensor | None = None, append: Tensor | None = None) -> Tensor:
    """Each element less the one before it along a dimension, n times over.

    >>> flow.diff(flow.tensor([1, 4, 9])).tolist()
    [3, 5]
    """
    if n < 0:
        raise ShapeError(f"diff(): order must be non-negative but got {n}")
    d = dim_of(dim, x.ndim)
    if n == 0:
        return x
    parts = [p for p in (prepend, x, append) if p is not None]
    y = OPS["cat"](parts, d) if len(parts) > 1 else x
    for _ in range(min(n, y.shape[d] + 1)):  # nothing less nothing stays nothing
        size = max(y.shape[d] - 1, 0)
        change = OPS["ne"] if y.dtype is dtypes.bool_ else OPS["sub"]
        y = change(_narrow(y, d, y.shape[d] - size, size), _narrow(y, d, 0, size))
    return y


@public("flow", "trapezoid trapz")
def trapezoid(y: Any, x: Any = None, *, dx: float = 1.0, dim: int = -1) -> Any:
    """The integral of y over x, or over steps of dx, by trapezoids.

    >>> flow.trapezoid(flow.tensor([1.0, 3.0])).item()
    2.0
    """
    d, n = dim_of(dim, y.ndim), y.shape[dim]
    between = (_narrow(y, d, 1, n - 1) + _narrow(y, d, 0, n - 1)) / 2
    if x is None:
        return _sum(between, d) * dx
    steps = diff(x, dim=d if x.ndim == y.ndim else -1)
    if x.ndim == 1:
        steps = OPS["reshape"](steps, (-1, *(1,) * (y.ndim - d - 1)))
    return _sum(between * steps, d)


@public("flow tensor")
def cov(x: Any, *, correction: int = 1, fweights: Any = None, aweights: Any = None) -> Any:
    """How variables, a row each, vary together; observations may be repeated (fweights) or weighed (aweights).

    >>> flow.cov(flow.tensor([[0.0, 2.0], [2.0, 0.0]])).tolist()
    [[2.0, -2.0], [-2.0, 2.0]]
    """
    rows = OPS["reshape"](x, (1, -1)) if x.ndim < 2 else x
    kinds = [t.dtype for t in (rows, aweights) if t is not None and t.dtype.differentiable]
    kind = promote_types(kinds[0], kinds[-1]) if kinds else creation.get_default_dtype()
    rows = rows if rows.dtype is kind else cast(rows, kind)
    weights = [w for w in (fweights, aweights) if w is not None]
    if not weights:
        off = rows - _mean(rows, 1, True)
        found = off @ off.mH / float(max(rows.shape[1] - correction, 0))
    else:
        weight = cast(weights[0], rows.dtype)
        weight = weight * weights[1] if len(weights) == 2 else weight
        whole = _sum(weight)
        off = rows - _sum(rows * weight, 1, True) / whole
        if aweights is None:
            less = whole - correction
        else:
            less = whole - correction * _sum(weight * aweights) / whole
        found = (off * weight) @ off.mH / OPS["clamp"](less, 0.0)
    return found.squeeze() if found.numel() == 1 else found


@public("flow tensor")
def corrcoef(x: Any) -> Any:
    """How variables, a row each, go along with each other, from -1 to 1."""
    together = cov(x)
    if together.ndim == 0:
        return together / together
    width = OPS["sqrt"](OPS["diagonal"](together, 0, 0, 1))
    return OPS["clamp"](together / OPS["unsqueeze"](width, 1) / OPS["unsqueeze"](width, 0), -1.0, 1.0)


@public("flow tensor")
def histc(x: Any, bins: int = 100, min: float = 0, max: float = 0) -> Any:
    """How many elements lie in each of so many equal parts of [min, max]; of their own range, if both are equal.

    >>> flow.histc(flow.tensor([1.0, 2.0, 1.0]), bins=2, min=0, max=4).tolist()
    [2.0, 1.0]
    """
    if bins < 1:
        raise ShapeError(f"histc(): bins must be > 0, but got {bins}")
    if min > max:
        raise ArgumentError(f"histc(): max is at least min; got {min} and {max}")
    flat = OPS["reshape"](x, (-1,))
    low, high = (min, max) if min != max else (_amin(flat).item(), _amax(flat).item())
    low, high = (low, high) if low != high else (low - 1, high + 1)
    inside = OPS["logical_and"](flat >= low, flat <= high)
    part = OPS["clamp"](OPS["floor"]((flat - low) * (bins / (high - low))), 0, bins - 1)
    part = cast(_where(inside, part, float(bins)), dtypes.int64)
    counts = OPS["index_put_zeros"](OPS["ones_like"](flat), [part], (bins + 1,))
    return _narrow(counts, 0, 0, bins)


class Histogram(NamedTuple):
    """What `histogram` gives."""

    hist: Any
    bin_edges: Any


@public("flow tensor")
def histogram(
    x: Any, bins: Any, *, range: Sequence[float] | None = None, weight: Any = None, density: bool = False
) -> Histogram:
    """How many elements lie between each two edges: of so many equal parts of a range, by default x's own, or of these.
    With weights, their sums; as a `density`, whose integral is 1.

    >>> [part.tolist() for part in flow.histogram(flow.tensor([1.0, 2.0, 1.0]), bins=2, range=(0.0, 4.0))]
    [[2.0, 1.0], [0.0, 2.0, 4.0]]
    """
    flat = OPS["reshape"](x, (-1,))
    if isinstance(bins, Tensor):
        edges: Any = bins
    else:
        low, high = (_amin(flat).item(), _amax(flat).item()) if range is None else map(float, range)
        low, high = (low, high) if low != high else (low - 0.5, high + 0.5)
        edges = creation.linspace(low, high, bins + 1, dtype=x.dtype, **beside(x))
    n = edges.shape[0] - 1
    part = OPS["searchsorted"](edges, flat, True) - 1
    part = _where(flat == OPS["select"](edges, 0, n), n - 1, part)  # the last edge belongs to the last part
    inside = OPS["logical_and"](part >= 0, part < n)
    each = OPS["ones_like"](flat.detach()) if weight is None else OPS["reshape"](weight, (-1,))
    hist = OPS["index_put_zeros"](each, [cast(_where(inside, part, n), dtypes.int64)], (n + 1,))
    hist = _narrow(hist, 0, 0, n)
    if density:
        wide = _narrow(edges, 0, 1, n) - _narrow(edges, 0, 0, n)
        hist = hist / (OPS["sum"](hist) * wide)
    return Histogram(hist, edges)


@public("flow tensor")
def unique_consecutive(
    x: Any, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:
    """The elements, each run of equals once.

    >>> flow.unique_consecutive(flow.tensor([1, 1, 2, 1])).tolist()
    [1, 2, 1]
    """
    rows = OPS["reshape"](x, (-1,)) if dim is None else OPS["transpose"](x, 0, dim)
    n = rows.shape[0]
    flat = OPS["reshape"](rows, (n, -1))
    changes = OPS["any"](OPS["ne"](_narrow(flat, 0, 1, n - 1), _narrow(flat, 0, 0, n - 1)), 1)
    starts = OPS["cat"]([creation.ones(1, dtype=dtypes.bool_, **beside(x)), changes], 0)
    at = OPS["select"](OPS["nonzero"](starts), 1, 0)
    kept = OPS["index_select"](rows, 0, at)
    found = [kept if dim is None else OPS["transpose"](kept, 0, dim)]
    if return_inverse:
        inverse = OPS["cumsum"](cast(starts, dtypes.int64), 0) - 1
        found.append(OPS["reshape"](inverse, tuple(x.shape)) if dim is None else inverse)
    if return_counts:
        found.append(diff(OPS["cat"]([at, creation.tensor([n], **beside(x))], 0)))
    return tuple(found) if len(found) > 1 else found[0]


@public("flow tensor")
def nanmedian(x: Any, dim: int | None = None, keepdim: bool = False) -> Any:
    """The middle of the elements that are numbers: of all, or along a dimension, with where it stands."""
    rows = OPS["reshape"](x, (-1,)) if dim is None else x
    d = dim_of(0 if dim is None else dim, rows.ndim)
    there = OPS["logical_not"](OPS["isnan"](rows))
    ordered, places = OPS["sort"](_where(there, rows, math.inf) if x.dtype.is_floating_point else rows, d)
    middle = OPS["clamp"]((_sum(cast(there, dtypes.int64), d, True) - 1) // 2, 0)
    value, place = OPS["gather"](ordered, d, middle), OPS["gather"](places, d, middle)
    if x.dtype.is_floating_point:
        value = _where(OPS["any"](there, d, True), value, math.nan)
    if dim is None:
        return OPS["reshape"](value, ())
    return Ranked(value, place) if keepdim else Ranked(OPS["squeeze"](value, d), OPS["squeeze"](place, d))


@public("flow")
def roc_auc_score(label: Tensor, pred: Tensor) -> Tensor:
    """The probability that something labelled 1 is predicted higher than something labelled 0; of equals, half.

    >>> flow.roc_auc_score(flow.tensor([0, 1, 1]), flow.tensor([0.2, 0.1, 0.9])).tolist()
    [0.5]
    """
    return OPS["roc_auc"](OPS["reshape"](label, (-1,)), OPS["reshape"](pred, (-1,)))


@public("flow")
def tril_indices(row: int, col: int, offset: int = 0, *, dtype: Any = None, device: Any = None) -> Tensor:
    """The places of a lower triangle, rows above columns.

    >>> flow.tril_indices(2, 2).tolist()
    [[0, 1, 1], [0, 0, 1]]
    """
    return _places("tril_indices", torch.tril_indices, row, col, offset, dtype, device)


@public("flow")
def triu_indices(row: int, col: int, offset: int = 0, *, dtype: Any = None, device: Any = None) -> Tensor:
    """The places of an upper triangle, rows above columns."""
    return _places("triu_indices", torch.triu_indices, row, col, offset, dtype, device)


def _places(name: str, make: Any, row: int, col: int, offset: int, dtype: Any, device: Any) -> Tensor:
    kind = dtypes.int64 if dtype is None else dtypes.of(dtype)
    return creation.placed(name, make(row, col, offset, dtype=kind.torch), device, None, None, False)
