"""OneFlow's and TensorFlow's indexing functions: `gather_nd`, `slice_update`, ..."""

from __future__ import annotations

import builtins
from collections.abc import Sequence

from weft.api.table import public
from weft.core.errors import ArgumentError, ShapeError
from weft.functional.index import indexing
from weft.functional.tensor.in_place import into
from weft.ops import ops
from weft.ops.shape.views import dim_of
from weft.tensor.tensor import Tensor


def _by_last(index: Tensor) -> list[Tensor]:
    """The indices of each leading dimension, from an index whose last dimension lists them."""
    return [ops.select(index, -1, k) for k in range(index.shape[-1])]


@public("flow")
def gather_nd(input: Tensor, index: Tensor) -> Tensor:
    """The elements or slices at the index's last dimension.

    >>> flow.gather_nd(flow.tensor([[1, 2], [3, 4]]), flow.tensor([[0, 1], [1, 0]])).tolist()
    [2, 3]
    """
    return ops.index(input, _by_last(index))


@public("bound", "scatternd")
@public("flow")
def scatter_nd(index: Tensor, update: Tensor, shape: Sequence[int]) -> Tensor:
    """Zeros of this shape with the update added at the index's last dimension.

    >>> flow.scatter_nd(flow.tensor([[1], [1]]), flow.tensor([2., 3.]), [3]).tolist()
    [0.0, 5.0, 0.0]
    """
    return ops.index_put_zeros(update, _by_last(index), tuple(shape))


@public("flow")
def tensor_scatter_nd_update(tensor: Tensor, indices: Tensor, updates: Tensor) -> Tensor:
    """The tensor with the updates at the indices' last dimension.

    >>> flow.tensor_scatter_nd_update(flow.zeros(3), flow.tensor([[1]]), flow.tensor([5.])).tolist()
    [0.0, 5.0, 0.0]
    """
    return ops.index_put(tensor, _by_last(indices), updates)


tensor_scatter_nd_update.overwriting = (  # type: ignore[attr-defined]
    lambda tensor, indices, updates: into(tensor, tensor_scatter_nd_update, indices, updates)
)


@public("flow")
def batch_gather(input: Tensor, indices: Tensor) -> Tensor:
    """Per leading index, the slices at the indices' last dimension.

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
    places = ops.reshape(indices, (*tuple(indices.shape), *(1,) * len(tail)))
    return ops.gather(input, d, ops.expand(places, (*tuple(indices.shape), *tail)))


def _key(x: Tensor, slices: Sequence[Sequence[int | None]]) -> tuple[builtins.slice, ...]:
    if len(slices) > x.ndim:
        raise ShapeError(f"{len(slices)} slices for a tensor of {x.ndim} dimensions, of shape {list(x.shape)}")
    for s in slices:
        if len(s) != 3:
            raise ArgumentError(f"a slice is (start, stop, step), with None for defaults; got {s}")
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
    """Overwrite x[start:stop:step, ...] with the update; returns x.

    >>> flow.slice_update(flow.zeros(4), flow.ones(2), [[0, 4, 2]]).tolist()
    [1.0, 0.0, 1.0, 0.0]
    """
    indexing.setitem(x, _key(x, slice_tup_list), update)
    return x


@public("flow tensor")
def in_top_k(targets: Tensor, predictions: Tensor, k: int) -> Tensor:
    """Whether each target is among the k largest predictions of its row.

    >>> flow.in_top_k(flow.tensor([1, 0]), flow.tensor([[0.1, 0.9], [0.2, 0.8]]), 1).tolist()
    [True, False]
    """
    own = ops.gather(predictions, 1, ops.unsqueeze(targets, 1))
    higher = ops.sum(ops.cast(ops.gt(predictions, own), targets.dtype), 1)
    return ops.lt(higher, k)


@public("bound")
def unsorted_segment_sum(x: Tensor, segment_ids: Tensor, axis: int, num_segments: int) -> Tensor:
    """The sums of the slices along an axis with the same segment id.

    >>> flow._C.unsorted_segment_sum(flow.ones(3), flow.tensor([0, 2, 0]), 0, 3).tolist()
    [2.0, 0.0, 1.0]
    """
    d, shape = dim_of(axis, x.ndim), tuple(x.shape)
    places = [*[None] * d, segment_ids]
    return ops.index_put_zeros(x, places, (*shape[:d], num_segments, *shape[d + 1 :]))
