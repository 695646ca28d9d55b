"""flip and roll."""

from __future__ import annotations

import torch
from torch import Tensor

from weft.ops.declaration import Size, op
from weft.ops.reduce.sums import dims_of
from weft.ops.shape.views import axes_at


def _in_order(shape: tuple[int, ...], dims: Size) -> str:
    """The notation of an op along unsplit dimensions that keeps the shape."""
    return axes_at("<!> -> <!>", len(shape), dims_of(dims, len(shape)) if dims else range(len(shape)))


@op(linear="x", memory_order="first")
def flip(x: Tensor, dims: Size) -> Tensor:
    """x with the order of elements reversed along some dimensions.

    >>> flow.flip(flow.arange(3), (0,)).tolist()
    [2, 1, 0]
    """
    return torch.flip(x, tuple(dims))


flip.layout(lambda x, dims: _in_order(x, dims))
flip.grad(lambda dy, dims: flip(dy, dims))
flip.samples(lambda rand: [(rand(4, 6), (1,)), (rand(2, 4, 6), (0, -1))])


@op(linear="x", memory_order="channels_last of all")
def roll(x: Tensor, shifts: int | Size, dims: int | Size | None = ()) -> Tensor:
    """x rotated along some dimensions; without dims, as if it were flat.

    >>> flow.roll(flow.arange(4), 1, 0).tolist()
    [3, 0, 1, 2]
    """
    return torch.roll(x, shifts, () if dims is None else dims)


roll.layout(lambda x, shifts, dims: _in_order(x, (dims,) if isinstance(dims, int) else dims))
roll.grad(lambda dy, shifts, dims: roll(dy, -shifts if isinstance(shifts, int) else tuple(-s for s in shifts), dims))
roll.samples(lambda rand: [(rand(4, 6), 2, 1), (rand(4, 6), (1, -2), (0, 1)), (rand(4, 6), 3), (rand(4, 6), 3, None)])
