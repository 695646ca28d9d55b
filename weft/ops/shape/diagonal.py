"""Diagonals, as views."""

from __future__ import annotations

from torch import Tensor

from weft.ops.create.constructors import zeros_like
from weft.ops.declaration import Size, op
from weft.ops.shape.views import axes_at


@op(linear="x", view=True)
def diagonal(x: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """A diagonal of two dimensions, as a new last dimension.

    >>> flow.diagonal(flow.tensor([[1., 2.], [3., 4.]])).tolist()
    [1.0, 4.0]
    """
    return x.diagonal(offset, dim1, dim2)


diagonal.layout(lambda x, offset, *dims: axes_at("<!> -> <> d!", len(x), dims))
diagonal.grad(lambda dy, x_shape, offset, dim1, dim2: diagonal_zeros(dy, tuple(x_shape), offset, dim1, dim2))
diagonal.samples(lambda rand: [rand(4, 6), (rand(4, 3, 6), 1, -1, 0)])


@op(linear="x", shape_of="shape")
def diagonal_zeros(x: Tensor, shape: Size, offset: int, dim1: int, dim2: int) -> Tensor:
    """Zeros of this shape with x on a diagonal."""
    y = x.new_zeros(tuple(shape))
    y.diagonal(offset, dim1, dim2).copy_(x)
    return y


diagonal_zeros.layout(lambda x, shape, offset, *dims: axes_at("<> d! -> <!>", len(shape), dims))
diagonal_zeros.grad(lambda dy, offset, dim1, dim2: diagonal(dy, offset, dim1, dim2))
diagonal_zeros.samples(lambda rand: [(rand(3, 4), (4, 3, 6), 1, 0, 2)])


@op(linear="base+part", promotes=True, memory_order="first")
def diagonal_put(base: Tensor, part: Tensor, offset: int, dim1: int, dim2: int) -> Tensor:
    """The base with its diagonal replaced."""
    y = base.clone()
    y.diagonal(offset, dim1, dim2).copy_(part)
    return y


diagonal.scattered(diagonal_put)
diagonal_put.layout(lambda base, part, offset, *dims: axes_at("<!>, <> d! -> <!>", len(base), dims))


@diagonal_put.grad
def _(dy, offset, dim1, dim2, needs):
    line = diagonal(dy, offset, dim1, dim2)
    return diagonal_put(dy, zeros_like(line), offset, dim1, dim2) if needs[0] else None, line


diagonal_put.samples(lambda rand: [(rand(4, 6), rand(4), 0, 0, 1)])
