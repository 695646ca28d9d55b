"""Strided views, and sliding windows along a dimension."""

from __future__ import annotations

import torch
from torch import Tensor

from weft.ops.declaration import Size, op
from weft.ops.form import Form
from weft.ops.kernels import aten
from weft.ops.shape.views import axes_at


@op(linear="x", view=True)
def unfold_tensor(x: Tensor, dimension: int, size: int, step: int) -> Tensor:
    """The sliding windows of this size and step along a dimension, as a new last dimension.

    >>> flow.arange(4).unfold(0, 2, 1).tolist()
    [[0, 1], [1, 2], [2, 3]]
    """
    return x.unfold(dimension, size, step)


unfold_tensor.layout(lambda x, dimension, size, step: axes_at("<!> -> <n!> k!", len(x), dimension))
unfold_tensor.grad(lambda dy, x_shape, dimension, size, step: fold_tensor(dy, tuple(x_shape), dimension, size, step))
unfold_tensor.samples(lambda rand: [(rand(4, 7), 1, 3, 2), (rand(6, 2), 0, 2, 1)])


@op(linear="y", returns="x", shape_of="shape")
def fold_tensor(y: Tensor, shape: Size, dimension: int, size: int, step: int) -> Tensor:
    """Windows added back to the positions that unfold_tensor reads."""
    return aten.unfold_backward(y, tuple(shape), dimension, size, step)


fold_tensor.layout(lambda y, shape, dimension, size, step: axes_at("<n!> k! -> <!>", len(shape), dimension))
fold_tensor.grad(lambda dx, dimension, size, step: unfold_tensor(dx, dimension, size, step))
fold_tensor.samples(lambda rand: [(rand(4, 3, 3), (4, 7), 1, 3, 2)])


@op(view=True)
def as_strided(x: Tensor, size: Size, stride: Size, storage_offset: int = 0) -> Tensor:
    """A view of x's memory with these sizes and strides, from an offset; x must be dense.

    >>> flow.as_strided(flow.arange(6), (2, 2), (3, 1)).tolist()
    [[0, 1], [3, 4]]
    """
    if not x.is_contiguous():
        raise RuntimeError("as_strided shape: x must be contiguous, so that its gradient is known; x.contiguous()")
    return x.as_strided(tuple(size), tuple(stride), x.storage_offset() + storage_offset)


@as_strided.grad
def _(dy, x_shape, size, stride, storage_offset):
    return as_strided_zeros(dy, tuple(x_shape), size, stride, storage_offset)


as_strided.form(lambda x, size, stride, storage_offset=0: Form(tuple(size), x.dtype))
as_strided.samples(lambda rand: [(rand(4, 6), (2, 3), (6, 2), 1), (rand(6), (3, 3), (1, 1))])


@op(shape_of="shape")
def as_strided_zeros(part: Tensor, shape: Size, size: Size, stride: Size, storage_offset: int) -> Tensor:
    """Zeros of this shape with the part added at the positions that as_strided reads."""
    x = part.new_zeros(tuple(shape))
    places = torch.arange(x.numel(), device=part.device).as_strided(tuple(size), tuple(stride), storage_offset)
    x.view(-1).index_add_(0, places.reshape(-1), part.reshape(-1))
    return x


@as_strided_zeros.grad
def _(dy, size, stride, storage_offset):
    return as_strided(dy.contiguous(), size, stride, storage_offset)


as_strided_zeros.samples(lambda rand: [(rand(3, 3), (6,), (3, 3), (1, 1), 0)])
