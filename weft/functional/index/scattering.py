"""gather and scatter along a dimension; put and masked_scatter."""

from __future__ import annotations

import builtins
import math
from collections.abc import Sequence
from typing import Any

import torch

from weft.api.fast_path import in_one
from weft.api.table import overwriting, public
from weft.core import dtype as dtypes
from weft.core.errors import ArgumentError, IndexingError, ShapeError
from weft.core.idle import idle
from weft.functional.create import creation
from weft.functional.create.likeness import device_of
from weft.functional.index import indexing
from weft.functional.shape.broadcasting import broadcast_shapes
from weft.functional.shape.views import movedim
from weft.functional.tensor.conversion import cast
from weft.functional.tensor.in_place import filling, into, number_like, with_in_place
from weft.functional.tensor.memory_format import contiguous
from weft.ops import OPS, ops
from weft.ops.index.indexing import check_places, check_range
from weft.ops.shape.views import dim_of
from weft.tensor.tensor import Tensor

_scatter_to = overwriting(OPS["scatter"])


@public("flow tensor")
def gather(x: Tensor, dim: int, index: Tensor, sparse_grad: bool = False) -> Tensor:
    idle("gather(sparse_grad)", sparse_grad)
    return ops.gather(x, dim, index)


@public("flow tensor")
def scatter(x: Tensor, dim: int, index: Tensor, src: Any, *, reduce: str | None = None) -> Tensor:
    """x with src written at an index along a dimension; or added (reduce="add"), or multiplied ("multiply").

    >>> flow.scatter(flow.ones(3), 0, flow.tensor([2]), 7., reduce="add").tolist()
    [1.0, 1.0, 8.0]
    """
    if reduce is None:
        return ops.scatter(x, dim, index, src)
    if reduce not in ("add", "multiply"):
        raise ArgumentError(f'scatter(): reduce is "add" or "multiply"; got {reduce!r}')
    given = ops.expand(number_like(x, src), tuple(index.shape)) if not isinstance(src, Tensor) else src
    if reduce == "add":
        return ops.scatter_add(x, dim, index, given)
    return ops.scatter_reduced(x, dim, index, given, "prod")


@public("tensor")
def scatter_(x: Tensor, dim: int, index: Tensor, src: Any, *, reduce: str | None = None) -> Tensor:
    """In-place `scatter`."""
    if reduce is None:
        return _scatter_to(x, dim, index, src)
    return into(x, scatter, dim, index, src, reduce=reduce)


scatter.overwriting = scatter_  # type: ignore[attr-defined]


@public("flow tensor")
@in_one(torch.select_scatter)
def select_scatter(x: Tensor, src: Tensor, dim: int, index: int) -> Tensor:
    """x with one slice along a dimension replaced."""
    dim = dim_of(dim, x.ndim)
    if not -x.shape[dim] <= index < x.shape[dim]:
        raise IndexingError(
            f"select(): index {index} out of range for tensor of size {list(x.shape)} at dimension {dim}"
        )
    _same("select_scatter", src, (*x.shape[:dim], *x.shape[dim + 1 :]))
    return ops.narrow_scatter(x, ops.unsqueeze(src, dim), dim, index % x.shape[dim], 1)


def _same(name: str, src: Tensor, shape: Sequence[int]) -> None:
    if tuple(src.shape) != tuple(shape):
        raise ShapeError(
            f"{name}(): expected src to have a size equal to the slice of self. src size = {list(src.shape)}, "
            f"slice size = {list(shape)}"
        )


@public("flow tensor")
def slice_scatter(
    x: Tensor, src: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Tensor:
    """x with the slice from start to end along a dimension replaced."""
    dim = dim_of(dim, x.ndim)
    first, last, step = builtins.slice(start, end, step).indices(x.shape[dim])
    length = max(0, -(-(last - first) // step))
    _same("slice_scatter", src, (*x.shape[:dim], length, *x.shape[dim + 1 :]))
    return ops.narrow_scatter(x, src, dim, first, length, step)


# Kernels of torch's that write, after it is known that they won't stop half way.


def _copy_(x: Any, dim: int, index: Any, source: Any) -> Any:
    check_places(index, dim, x)
    return x.index_copy_(dim, index, source)


def _fill_(x: Any, dim: int, index: Any, value: Any) -> Any:
    check_places(index, dim, x, negative=True)
    return x.index_fill_(dim, index, value)


def _reduce_(x: Any, dim: int, index: Any, src: Any, reduce: str, include_self: bool) -> Any:
    check_places(index, dim, x)
    return x.scatter_reduce_(dim, index, src, reduce, include_self=include_self)


def _put_(x: Any, index: Any, source: Any, accumulate: bool) -> Any:
    check_range(index, x.numel(), negative=True)
    return x.put_(index, source, accumulate)


def _masked_(x: Any, mask: Any, source: Any) -> Any:
    if source.numel() < x.numel() and int(mask.expand_as(x).count_nonzero()) > source.numel():
        raise IndexError("the mask has more true elements than the source has elements")
    return x.masked_scatter_(mask, source)


@with_in_place
@in_one(torch.index_copy, derived=True, over=_copy_)
def index_copy(x: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    """x with the slices at these indices along a dimension replaced.

    >>> flow.index_copy(flow.zeros(3), 0, flow.tensor([2]), flow.ones(1)).tolist()
    [0.0, 0.0, 1.0]
    """
    if not x.ndim:  # as a vector of one element
        return ops.reshape(index_copy(ops.reshape(x, (1,)), 0, index, ops.reshape(source, (-1,))), ())
    d, index = dim_of(dim, x.ndim), _places("index_copy", index)
    wanted = (*x.shape[:d], index.numel(), *x.shape[d + 1 :])
    if tuple(source.shape) != wanted and (source.ndim or math.prod(wanted) != 1):
        raise IndexingError(
            f"index_copy_(): Number of indices ({index.numel()}) should be equal to source.size(dim), and the slices "
            f"those of x: source must have shape {list(wanted)}; got {list(source.shape)}"
        )
    moved = source if not source.ndim else movedim(source, d, 0)
    y = ops.index_put(movedim(x, d, 0), [index], moved)
    return contiguous(movedim(y, 0, d))


def _places(name: str, index: Tensor) -> Tensor:
    """Indices as a vector of int64: as bytes they would be a mask."""
    if index.ndim > 1:
        raise IndexingError(f"{name}(): Index has to be a vector/scalar; got shape {list(index.shape)}")
    if index.dtype.differentiable:
        raise IndexingError(f"{name}(): Expected dtype int32/int64 for index; got {index.dtype}")
    return cast(ops.reshape(index, (-1,)), dtypes.int64)


@with_in_place
@in_one(torch.index_fill, derived=True, over=_fill_)
def index_fill(x: Tensor, dim: int, index: Tensor, value: Any) -> Tensor:
    """x with the slices at these indices along a dimension filled with one value.

    >>> flow.index_fill(flow.zeros(3), 0, flow.tensor([0, 2]), 5).tolist()
    [5.0, 0.0, 5.0]
    """
    index = _places("index_fill", index)
    if not x.ndim:
        return ops.reshape(index_fill(ops.reshape(x, (1,)), dim, index, value), ())
    d = dim_of(dim, x.ndim)
    if isinstance(value, Tensor) and value.requires_grad:  # a duplicate index is filled once
        named = ops.index_put(
            creation.zeros(x.shape[d], dtype="bool", **device_of(x)),
            [index],
            creation.tensor(True, **device_of(x)),
        )
        named = ops.reshape(named, (-1, *(1,) * (x.ndim - d - 1)))
        return ops.where(named, cast(value, x.dtype), x)
    filled = value if isinstance(value, Tensor) else filling(x, value)
    filled = filled if filled.dtype.is_complex else cast(filled, x.dtype)
    return ops.index_put(x, [*[None] * d, index], filled)


@with_in_place
@in_one(torch.scatter_reduce, derived=True, over=_reduce_)
def scatter_reduce(x: Tensor, dim: int, index: Tensor, src: Any, reduce: str, *, include_self: bool = True) -> Tensor:
    """x with src scattered along a dimension at the index; duplicates are reduced: "sum", "prod", "mean", "amax" or
    "amin". `include_self`: together with x's own elements.

    >>> flow.scatter_reduce(flow.ones(2), 0, flow.tensor([1, 1]), flow.tensor([2., 3.]), "sum").tolist()
    [1.0, 6.0]
    """
    if reduce not in ("sum", "prod", "mean", "amax", "amin"):
        raise ArgumentError(f'scatter_reduce(): reduce is "sum", "prod", "mean", "amax" or "amin"; got {reduce!r}')
    if tuple(src.shape) != tuple(index.shape):  # the index determines which part of src is used
        src = indexing.getitem(src, tuple(slice(0, n) for n in index.shape))
    if reduce not in ("sum", "mean"):
        return ops.scatter_reduced(x, dim, index, src, reduce, include_self)
    ones = ops.ones_like(src.detach())
    count: Any = ops.scatter_add(ops.zeros_like(x.detach()), dim, index, ones)
    base = x if include_self else ops.masked_fill(x, count > 0, 0)
    whole = ops.scatter_add(base, dim, index, src)
    if reduce == "sum":
        return whole
    each: Any = count + 1 if include_self else ops.clamp(count, 1)
    return ops.div(whole, each) if x.dtype.differentiable else ops.floor_divide(whole, each)


@with_in_place
def index_reduce(
    x: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """x with the source's slices scattered along a dimension at the indices; duplicates are reduced: "prod", "mean",
    "amax" or "amin".

    >>> flow.index_reduce(flow.ones(2), 0, flow.tensor([1, 1]), flow.tensor([2., 3.]), "prod").tolist()
    [1.0, 6.0]
    """
    d = dim_of(dim, x.ndim)
    places = ops.reshape(index, [-1 if i == d else 1 for i in builtins.range(x.ndim)])
    places = ops.expand(places, tuple(source.shape))
    return scatter_reduce(x, d, places, source, reduce, include_self=include_self)


@with_in_place
@in_one(torch.put, derived=True, over=_put_)
def put(x: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    """x with the elements at these indices of the flattened x replaced or added to."""
    flat = ops.index_put(ops.reshape(x, (-1,)), [index], ops.reshape(source, tuple(index.shape)), accumulate)
    return ops.reshape(flat, tuple(x.shape))


@with_in_place
@in_one(torch.masked_scatter, derived=True, over=_masked_)
def masked_scatter(x: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """x with the source's elements, in order, where the mask is true.

    >>> flow.masked_scatter(flow.zeros(3), flow.tensor([True, False, True]), flow.tensor([1., 2., 3.])).tolist()
    [1.0, 0.0, 2.0]
    """
    shape = tuple(broadcast_shapes(tuple(x.shape), tuple(mask.shape)))
    x = x if tuple(x.shape) == shape else ops.expand(x, shape)
    flat = ops.reshape(ops.expand(mask, shape), (-1,))
    into, values = ops.reshape(x, (-1,)), ops.reshape(source, (-1,))
    at: Any = cast(flat, dtypes.int64)
    if source.numel() or not x.numel():
        at = ops.clamp(ops.cumsum(at, 0) - 1, 0)
    else:  # one element, to be read where the mask isn't true
        values = ops.cat([values, ops.narrow(into, 0, 0, 1)], 0)
    return ops.reshape(ops.where(flat, ops.index(values, [at]), into), tuple(x.shape))
