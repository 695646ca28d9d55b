"""Functions that give several tensors, under the names that PyTorch gives these: `x.sort().values`."""

from __future__ import annotations

from typing import NamedTuple

from weft.functional.table import calling, public
from weft.tensor.tensor import Tensor

_sort, _topk, _kthvalue, _mode, _cummax, _cummin = map(
    calling, ("sort", "topk", "kthvalue", "mode", "cummax", "cummin")
)


class Ranked(NamedTuple):
    """Elements, and where they stood."""

    values: Tensor
    indices: Tensor


@public("flow tensor")
def sort(x: Tensor, dim: int = -1, descending: bool = False, stable: bool = False) -> Ranked:
    """The elements in rising order along a dimension, and where each of them stood.

    >>> flow.sort(flow.tensor([3, 1, 2])).indices.tolist()
    [1, 2, 0]
    """
    return Ranked(*_sort(x, dim, descending, stable))


@public("flow tensor")
def topk(x: Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Ranked:
    """The k largest elements along a dimension, or the smallest, and where they stand.

    >>> flow.topk(flow.tensor([3, 1, 2]), 2).values.tolist()
    [3, 2]
    """
    return Ranked(*_topk(x, k, dim, largest, sorted))


@public("flow tensor")
def kthvalue(x: Tensor, k: int, dim: int = -1, keepdim: bool = False) -> Ranked:
    """The k-th smallest element along a dimension, and where it stands."""
    return Ranked(*_kthvalue(x, k, dim, keepdim))


@public("flow tensor")
def mode(x: Tensor, dim: int = -1, keepdim: bool = False) -> Ranked:
    """The most frequent element along a dimension, and where it stands."""
    return Ranked(*_mode(x, dim, keepdim))


@public("flow tensor")
def cummax(x: Tensor, dim: int) -> Ranked:
    """The largest of each element and all before it along a dimension, and where it stands."""
    return Ranked(*_cummax(x, dim))


@public("flow tensor")
def cummin(x: Tensor, dim: int) -> Ranked:
    """The smallest of each element and all before it along a dimension, and where it stands."""
    return Ranked(*_cummin(x, dim))
