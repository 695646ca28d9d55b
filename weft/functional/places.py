"""Elements by lists of places, OneFlow's and PyTorch's ways: `gather_nd`, `slice_update`, `repeat_interleave`, ..."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

from weft.core.dispatch import here, tracing
from weft.core.errors import ArgumentError, IndexingError, OptionError, ShapeError
from weft.core.idle import idle
from weft.functional import indexing
from weft.functional.overwrite import into, number_like
from weft.functional.parts import tensor_split
from weft.functional.table import calling, overwriting, public
from weft.ops import OPS
from weft.ops.shape import dim_of
from weft.tensor.tensor import Tensor

_select, _index_put, _reshape, _expand, _unsqueeze, _index_select, _gather = map(
    calling, ("select", "index_put", "reshape", "expand", "unsqueeze", "index_select", "gather")
)
_scatter_to = overwriting(OPS["scatter"])


def _by_last(index: Tensor) -> list[Tensor]:
    """The places along each leading dimension, from an index whose last dimension lists them."""
    return [_select(index, -1, k) for k in range(index.shape[-1])]


@public("flow")
def gather_nd(input: Tensor, index: Tensor) -> Tensor:
    """The elements or slices that the index's last dimension places.

    >>> flow.gather_nd(flow.tensor([[1, 2], [3, 4]]), flow.tensor([[0, 1], [1, 0]])).tolist()
    [2, 3]
    """
    return OPS["index"](input, _by_last(index))


@public("flow", "scatter_nd scatternd")
def scatter_nd(index: Tensor, update: Tensor, shape: Sequence[int]) -> Tensor:
    """Zeros of this shape with the update added at the places of the index's last dimension.

    >>> flow.scatter_nd(flow.tensor([[1], [1]]), flow.tensor([2., 3.]), [3]).tolist()
    [0.0, 5.0, 0.0]
    """
    return OPS["index_put_zeros"](update, _by_last(index), tuple(shape))


@public("flow")
def tensor_scatter_nd_update(tensor: Tensor, indices: Tensor, updates: Tensor) -> Tensor:
    """The tensor with the updates at the places of the indices' last dimension.

    >>> flow.tensor_scatter_nd_update(flow.zeros(3), flow.tensor([[1]]), flow.tensor([5.])).tolist()
    [0.0, 5.0, 0.0]
    """
    return _index_put(tensor, _by_last(indices), updates)


@public("flow tensor")
def gather(x: Tensor, dim: int, index: Tensor, *, sparse_grad: bool = False) -> Tensor:
    """The elements of x at the positions along a dimension that the index tells.

    >>> flow.gather(flow.tensor([[1, 2], [3, 4]]), 1, flow.tensor([[1], [0]])).tolist()
    [[2], [3]]
    """
    idle("gather(sparse_grad)", sparse_grad)
    return _gather(x, dim, index)


@public("flow tensor")
def scatter(x: Tensor, dim: int, index: Tensor, src: Any, *, reduce: str | None = None) -> Tensor:
    """x with src at the positions along a dimension that the index tells; or added to what is there, or multiplied.

    >>> flow.scatter(flow.ones(3), 0, flow.tensor([2]), 7., reduce="add").tolist()
    [1.0, 1.0, 8.0]
    """
    if reduce is None:
        return OPS["scatter"](x, dim, index, src)
    if reduce not in ("add", "multiply"):
        raise ArgumentError(f'scatter(): reduce is "add" or "multiply"; got {reduce!r}')
    given = _expand(number_like(x, src), tuple(index.shape)) if not isinstance(src, Tensor) else src
    if reduce == "add":
        return OPS["scatter_add"](x, dim, index, given)
    return OPS["scatter_reduced"](x, dim, index, given, "prod")


@public("tensor")
def scatter_(x: Tensor, dim: int, index: Tensor, src: Any, *, reduce: str | None = None) -> Tensor:
    """`scatter`, into x's memory."""
    if reduce is None:
        return _scatter_to(x, dim, index, src)
    return into(x, scatter, dim, index, src, reduce=reduce)


@public("flow")
def batch_gather(input: Tensor, indices: Tensor) -> Tensor:
    """Per leading place, the slices that the indices' last dimension names.

    >>> flow.batch_gather(flow.tensor([[1, 2], [3, 4]]), flow.tensor([[1], [0]])).tolist()
    [[2], [3]]
    """
    d = indices.ndim - 1
    if tuple(input.shape)[:d] != tuple(indices.shape)[:d]:
        raise ShapeError(
            f"batch_gather(): indices of shape {list(indices.shape)} for an input of shape {list(input.shape)}: "
            "all dimensions but the indices' last must agree"
        )
    tail = tuple(input.shape)[d + 1 :]
    places = _reshape(indices, (*tuple(indices.shape), *(1,) * len(tail)))
    return _gather(input, d, _expand(places, (*tuple(indices.shape), *tail)))


def _key(x: Tensor, slices: Sequence[Sequence[int | None]]) -> tuple[builtins.slice, ...]:
    if len(slices) > x.ndim:
        raise ShapeError(f"{len(slices)} slices for a tensor of {x.ndim} dimensions, of shape {list(x.shape)}")
    for s in slices:
        if len(s) != 3:
            raise ArgumentError(f"a slice here is (start, stop, step), with None for what is left out; got {s}")
    return tuple(builtins.slice(*s) for s in slices)


@public("flow")
def slice(x: Tensor, slice_tup_list: Sequence[Sequence[int | None]]) -> Tensor:
    """x[start:stop:step, ...], from (start, stop, step) of each leading dimension.

    >>> flow.slice(flow.arange(6), [[1, 6, 2]]).tolist()
    [1, 3, 5]
    """
    return indexing.getitem(x, _key(x, slice_tup_list))


@public("flow")
def slice_update(x: Tensor, update: Tensor, slice_tup_list: Sequence[Sequence[int | None]]) -> Tensor:
    """Overwrites x[start:stop:step, ...] with the update; gives x.

    >>> flow.slice_update(flow.zeros(4), flow.ones(2), [[0, 4, 2]]).tolist()
    [1.0, 0.0, 1.0, 0.0]
    """
    indexing.setitem(x, _key(x, slice_tup_list), update)
    return x


@public("flow")
def broadcast_like(x: Tensor, like_tensor: Tensor, broadcast_axes: Sequence[int] | None = None) -> Tensor:
    """x seen in the other's shape; `broadcast_axes` are the other's dimensions that x lacks or has one of.

    >>> flow.broadcast_like(flow.ones(2), flow.zeros(3, 2)).shape
    torch.Size([3, 2])
    """
    shape = tuple(like_tensor.shape)
    if broadcast_axes and x.ndim < len(shape):
        for d in sorted(dim_of(d, len(shape)) for d in broadcast_axes):
            x = _unsqueeze(x, d)
    return _expand(x, shape)


@public("flow tensor")
def in_top_k(targets: Tensor, predictions: Tensor, k: int) -> Tensor:
    """Whether each target is among the k largest predictions of its row.

    >>> flow.in_top_k(flow.tensor([1, 0]), flow.tensor([[0.1, 0.9], [0.2, 0.8]]), 1).tolist()
    [True, False]
    """
    own = _gather(predictions, 1, _unsqueeze(targets, 1))
    higher = OPS["sum"](OPS["cast"](OPS["gt"](predictions, own), targets.dtype), 1)
    return OPS["lt"](higher, k)


@public("flow tensor")
def repeat_interleave(
    x: Tensor, repeats: int | Tensor, dim: int | None = None, *, output_size: int | None = None
) -> Tensor:
    """Every element, or slice along a dimension, so many times in a row.

    >>> flow.repeat_interleave(flow.tensor([1, 2]), 2).tolist()
    [1, 1, 2, 2]
    """
    if dim is None:
        x, dim = _reshape(x, (-1,)), 0
    d, shape = dim_of(dim, x.ndim), tuple(x.shape)
    if isinstance(repeats, int):
        if repeats < 0:
            raise OptionError(f"repeat_interleave(): Repeats must be non-negative; got {repeats}")
        wide = _expand(_unsqueeze(x, d + 1), (*shape[: d + 1], repeats, *shape[d + 1 :]))
        return _reshape(OPS["clone"](wide), (*shape[:d], shape[d] * repeats, *shape[d + 1 :]))  # a view won't do
    known = here.trace is not None and not repeats.is_lazy  # then the shape that comes of them is known in build, too
    with tracing(None) if known else nullcontext():
        if repeats.numel() != shape[d]:
            repeats = _expand(repeats, (shape[d],))
        places = OPS["repeat_places"](repeats)
    return _index_select(x, d, places)


@public("flow")
def meshgrid(*tensors: Any, indexing: str = "ij") -> tuple[Tensor, ...]:
    """The coordinates of a grid: of each vector, a copy along every other one's dimension.

    >>> flow.meshgrid(flow.arange(2), flow.arange(3))[0].tolist()
    [[0, 0, 0], [1, 1, 1]]
    """
    given = list(tensors[0]) if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)) else list(tensors)
    if indexing not in ("ij", "xy"):
        raise ArgumentError(f'meshgrid(): indexing is "ij" or "xy"; got {indexing!r}')
    if not given or any(x.dtype is not given[0].dtype or x.ndim > 1 for x in given):
        told = ", ".join(f"{x.dtype} {list(x.shape)}" for x in given) or "nothing"
        raise ShapeError(
            f"meshgrid expects a non-empty TensorList, and all tensors to have the same dtype and at most one "
            f"dimension; got {told}"
        )
    exchanged = indexing == "xy" and len(given) > 1
    if exchanged:
        given[:2] = given[1::-1]
    shape = tuple(x.numel() for x in given)
    made = [_expand(_reshape(x, (1,) * i + (-1,) + (1,) * (len(given) - 1 - i)), shape) for i, x in enumerate(given)]
    if exchanged:
        made[:2] = made[1::-1]
    return tuple(made)


def _even(name: str, x: Tensor, cut: int | Sequence[int], dim: int, least: int) -> tuple[Tensor, ...]:
    """A split that leaves no part longer than another, unless it is cut at given places."""
    if x.ndim < least:
        raise ShapeError(
            f"torch.{name} requires a tensor with at least {least} dimension{'s' * (least > 1)}, but got a tensor with "
            f"{x.ndim} dimensions: {list(x.shape)}"
        )
    if isinstance(cut, Tensor):
        cut = cut.tolist()
    if isinstance(cut, int) and (cut <= 0 or x.shape[dim] % cut):
        raise ShapeError(
            f"torch.{name} attempted to split along dimension {dim}, but the size of the dimension {x.shape[dim]} "
            f"is not divisible by the split_size {cut}! x.tensor_split({cut}, {dim}) makes parts of different sizes"
        )
    return tensor_split(x, cut, dim)


@public("flow tensor")
def hsplit(x: Tensor, indices_or_sections: int | Sequence[int]) -> tuple[Tensor, ...]:
    """Parts side by side: along the second dimension, of a vector along its only one."""
    return _even("hsplit", x, indices_or_sections, 0 if x.ndim == 1 else 1, 1)


@public("flow tensor")
def vsplit(x: Tensor, indices_or_sections: int | Sequence[int]) -> tuple[Tensor, ...]:
    """Parts one below the other, along the first dimension."""
    return _even("vsplit", x, indices_or_sections, 0, 2)


@public("flow tensor")
def dsplit(x: Tensor, indices_or_sections: int | Sequence[int]) -> tuple[Tensor, ...]:
    """Parts one behind the other, along the third dimension."""
    return _even("dsplit", x, indices_or_sections, 2, 3)


@public("flow tensor")
def diag(x: Tensor, diagonal: int = 0) -> Tensor:
    """The matrix with this diagonal, or the diagonal of a matrix.

    >>> flow.diag(flow.tensor([1, 2])).tolist()
    [[1, 0], [0, 2]]
    """
    if x.ndim == 2:
        return OPS["diagonal"](x, diagonal, 0, 1)
    if x.ndim != 1:
        raise ShapeError(f"diag(): a vector or a matrix; this has shape {list(x.shape)}")
    n = x.shape[0] + abs(diagonal)
    return OPS["diagonal_zeros"](x, (n, n), diagonal, 0, 1)


@public("flow tensor")
def as_strided(x: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None) -> Tensor:
    """A view of x's memory with these sizes and strides, from an offset; x must be contiguous.

    >>> flow.as_strided(flow.arange(6), (2, 2), (3, 1)).tolist()
    [[0, 1], [3, 4]]
    """
    at = 0 if storage_offset is None else storage_offset - x.storage_offset()
    return OPS["as_strided"](x, tuple(size), tuple(stride), at)


@public("tensor")
def unfold(x: Tensor, dimension: int, size: int, step: int) -> Tensor:
    """Every window of this size along a dimension, as a view."""
    return OPS["unfold_tensor"](x, dimension, size, step)


@public("flow")
def unsorted_segment_sum(x: Tensor, segment_ids: Tensor, num_segments: int, axis: int = 0) -> Tensor:
    """The sums of the slices along an axis that have the same segment.

    >>> flow._C.unsorted_segment_sum(flow.ones(3), flow.tensor([0, 2, 0]), 3).tolist()
    [2.0, 0.0, 1.0]
    """
    d, shape = dim_of(axis, x.ndim), tuple(x.shape)
    places = [*[None] * d, segment_ids]
    return OPS["index_put_zeros"](x, places, (*shape[:d], num_segments, *shape[d + 1 :]))


@public("flow tensor")
def select_scatter(x: Tensor, src: Tensor, dim: int, index: int) -> Tensor:
    """x with another slice in a place along a dimension."""
    dim = dim_of(dim, x.ndim)
    if not -x.shape[dim] <= index < x.shape[dim]:
        raise IndexingError(
            f"select(): index {index} out of range for tensor of size {list(x.shape)} at dimension {dim}"
        )
    _same("select_scatter", src, (*x.shape[:dim], *x.shape[dim + 1 :]))
    return OPS["narrow_scatter"](x, OPS["unsqueeze"](src, dim), dim, index % x.shape[dim], 1)


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
    """x with other elements from start to end along a dimension."""
    dim = dim_of(dim, x.ndim)
    first, last, step = builtins.slice(start, end, step).indices(x.shape[dim])
    length = max(0, -(-(last - first) // step))
    _same("slice_scatter", src, (*x.shape[:dim], length, *x.shape[dim + 1 :]))
    return OPS["narrow_scatter"](x, src, dim, first, length, step)


@public("flow tensor")
def diagonal_scatter(x: Tensor, src: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """x with another diagonal of two dimensions."""
    d1, d2 = dim_of(dim1, x.ndim), dim_of(dim2, x.ndim)
    _same("diagonal_scatter", src, OPS["diagonal"](x, offset, d1, d2).shape)
    return OPS["diagonal_put"](x, src, offset, d1, d2)
