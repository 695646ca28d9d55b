"""Histograms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from weft.api.fast_path import in_one
from weft.api.table import public
from weft.core import dtype as dtypes
from weft.core.errors import ArgumentError, ShapeError
from weft.functional.create import creation
from weft.functional.create.likeness import device_of
from weft.functional.results import Histogram, result
from weft.functional.tensor.conversion import cast
from weft.ops import ops
from weft.tensor.tensor import Tensor


def _histc(x: torch.Tensor, *args: Any) -> torch.Tensor | None:
    return torch.histc(x, *args) if x.dtype.itemsize >= 4 else None  # halves can't count


@public("flow tensor")
@in_one(_histc)
def histc(x: Any, bins: int = 100, min: float = 0, max: float = 0) -> Any:
    """A histogram with equal bins over [min, max], or over x's range if both are equal.

    >>> flow.histc(flow.tensor([1.0, 2.0, 1.0]), bins=2, min=0, max=4).tolist()
    [2.0, 1.0]
    """
    if bins < 1:
        raise ShapeError(f"histc(): bins must be > 0, but got {bins}")
    if min > max:
        raise ArgumentError(f"histc(): max is at least min; got {min} and {max}")
    flat = ops.reshape(x, (-1,))
    if flat.dtype.itemsize < 4 and flat.dtype.is_floating_point:
        flat = cast(flat, dtypes.float32)  # halves can't count
    low, high = (min, max) if min != max or not x.numel() else (ops.amin(flat).item(), ops.amax(flat).item())
    low, high = (low, high) if low != high else (low - 1, high + 1)
    inside = ops.logical_and(flat >= low, flat <= high)
    part = ops.clamp(ops.floor((flat - low) * (bins / (high - low))), 0, bins - 1)
    part = cast(ops.where(inside, part, float(bins)), dtypes.int64)
    counts = ops.index_put_zeros(ops.ones_like(flat), [part], (bins + 1,))
    return cast(ops.narrow(counts, 0, 0, bins), x.dtype)


@public("flow tensor")
def histogram(
    x: Any, bins: Any, *, range: Sequence[float] | None = None, weight: Any = None, density: bool = False
) -> Histogram:
    """A histogram by edges: a number of equal bins over a range, by default x's own, or the given edges. Optionally
    weighted, or as a `density`, whose integral is 1.

    >>> [part.tolist() for part in flow.histogram(flow.tensor([1.0, 2.0, 1.0]), bins=2, range=(0.0, 4.0))]
    [[2.0, 1.0], [0.0, 2.0, 4.0]]
    """
    if isinstance(bins, int) and bins < 1:
        raise ShapeError(f"histogram(): bins must be > 0, but got {bins}")
    flat = ops.reshape(x, (-1,))
    if isinstance(bins, Tensor):
        edges: Any = ops.clone(bins)
    else:
        taken = range is None and x.numel()
        low, high = (ops.amin(flat).item(), ops.amax(flat).item()) if taken else map(float, range or (0.0, 1.0))
        low, high = (low, high) if low != high else (low - 0.5, high + 0.5)
        edges = creation.linspace(low, high, bins + 1, dtype=x.dtype, **device_of(x))
    n = edges.shape[0] - 1
    part = ops.searchsorted(edges, flat, True) - 1
    part = ops.where(flat == ops.select(edges, 0, n), n - 1, part)  # the last bin includes its right edge
    inside = ops.logical_and(part >= 0, part < n)
    each = ops.ones_like(flat.detach()) if weight is None else ops.reshape(weight, (-1,))
    hist = ops.index_put_zeros(each, [cast(ops.where(inside, part, n), dtypes.int64)], (n + 1,))
    hist = ops.narrow(hist, 0, 0, n)
    if density:
        wide = ops.narrow(edges, 0, 1, n) - ops.narrow(edges, 0, 0, n)
        hist = hist / (ops.sum(hist) * wide)
    return result("histogram", hist, edges)
