"""Strided views: as_strided, unfold."""

from __future__ import annotations

from collections.abc import Sequence

from weft.api.table import public
from weft.ops import ops
from weft.tensor.tensor import Tensor


@public("flow tensor")
def as_strided(x: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None) -> Tensor:
    """A view of x's memory with these sizes and strides, from an offset; x must be contiguous.

    >>> flow.as_strided(flow.arange(6), (2, 2), (3, 1)).tolist()
    [[0, 1], [3, 4]]
    """
    at = 0 if storage_offset is None else storage_offset - x.storage_offset()
    return ops.as_strided(x, tuple(size), tuple(stride), at)


@public("tensor")
def unfold(x: Tensor, dimension: int, size: int, step: int) -> Tensor:
    """The sliding windows of this size and step along a dimension, as a view."""
    return ops.unfold_tensor(x, dimension, size, step)
