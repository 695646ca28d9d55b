"""Broadcasting of shapes and tensors, and sums that undo it."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Size

from weft.api.table import public
from weft.autograd.plain import plain
from weft.core.errors import ShapeError
from weft.functional.create import creation
from weft.functional.create.creation import size_of
from weft.functional.shape.views import _expanded
from weft.ops import ops
from weft.ops.shape.views import dim_of, together
from weft.tensor.tensor import Tensor


@public("tensor")
def sum_to_size(x: Tensor, *size: creation.Sizes) -> Tensor:
    """x summed to a size that broadcasts to x's."""
    shape = size_of("sum_to_size", size)
    if not shape:  # a sum: of bools an integer, and never x itself
        return ops.sum(x)
    return x if shape == tuple(x.shape) else ops.sum_to(x, shape)


@public("flow tensor")
def broadcast_to(x: Tensor, *shape: creation.Sizes) -> Tensor:
    """x broadcast to a larger shape, as a view."""
    return _expanded(x, size_of("broadcast_to", shape))


@public("tensor")
def expand_as(x: Tensor, other: Tensor) -> Tensor:
    """x expanded to the other's shape, as a view."""
    return ops.expand(x, tuple(other.shape))


@public("flow")
def broadcast_shapes(*shapes: Sequence[int] | int) -> Size:
    """The shape that these shapes broadcast to.

    >>> flow.broadcast_shapes((2, 1), (3,))
    torch.Size([2, 3])
    """
    given = [(shape,) if isinstance(shape, int) else shape for shape in shapes]
    if any(n < 0 for shape in given for n in shape):
        raise ShapeError(
            f"Attempting to broadcast a dimension with negative length! {', '.join(map(str, map(list, given)))}"
        )
    return Size(together(*given))


@public("flow")
def broadcast_tensors(*tensors: Tensor) -> list[Tensor]:
    """The tensors, broadcast to their common shape as views; those that have it, themselves."""
    given = plain(tuple(tensors[0]) if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)) else tensors)
    shape = broadcast_shapes(*(tuple(t.shape) for t in given))
    return [t if t.shape == shape else ops.expand(t, tuple(shape)) for t in given]


@public("flow")
def broadcast_like(x: Tensor, like_tensor: Tensor, broadcast_axes: Sequence[int] | None = None) -> Tensor:
    """x broadcast to the other's shape; `broadcast_axes` are the other's dimensions that x lacks or has with size one.

    >>> flow.broadcast_like(flow.ones(2), flow.zeros(3, 2)).shape
    torch.Size([3, 2])
    """
    shape = tuple(like_tensor.shape)
    if broadcast_axes and x.ndim < len(shape):
        for d in sorted(dim_of(d, len(shape)) for d in broadcast_axes):
            x = ops.unsqueeze(x, d)
    return ops.expand(x, shape)
