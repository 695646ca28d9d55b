"""Sampling of images at given positions: `grid_sample`, `affine_grid`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft.api.table import public
from weft.core.errors import ShapeError
from weft.functional.create import creation
from weft.functional.create.likeness import device_of
from weft.ops import ops
from weft.tensor.tensor import Tensor


@public("neural")
def grid_sample(
    input: Tensor, grid: Tensor, mode: str = "bilinear", padding_mode: str = "zeros", align_corners: bool | None = None
) -> Tensor:
    """The input sampled at the positions of a grid, from -1 to 1.

    >>> flow.nn.functional.grid_sample(flow.tensor([[[[1., 3.]]]]), flow.zeros(1, 1, 1, 2)).item()
    2.0
    """
    return ops.grid_sample(input, grid, mode, padding_mode, bool(align_corners))


@public("neural")
def affine_grid(theta: Tensor, size: Sequence[int], align_corners: bool | None = None) -> Tensor:
    """The grid of positions of affine maps, for an image of this size, for `grid_sample`.

    >>> flow.nn.functional.affine_grid(flow.ones(1, 2, 3), (1, 1, 1, 1)).tolist()
    [[[[1.0, 1.0]]]]
    """
    dims = len(size) - 2
    if dims not in (2, 3) or tuple(theta.shape) != (size[0], dims, dims + 1):
        raise ShapeError(
            f"affine_grid() takes theta of (n, 2, 3) for a size (n, c, h, w), or (n, 3, 4) for (n, c, d, h, w); "
            f"got {list(theta.shape)} and {list(size)}"
        )
    options = {"dtype": theta.dtype, **device_of(theta)}
    tail = tuple(size[2:])
    lines: list[Any] = []
    for d in reversed(range(dims)):
        n = tail[d]
        # rounded as torch rounds: the gradient of grid_sample jumps at pixels, where the identity has all positions
        line = creation.linspace(-1, 1, n, **options) if n > 1 else creation.zeros(1, **options)
        if not align_corners:
            line = ops.div(ops.mul(line, n - 1), n)
        line = ops.reshape(line, (*(1,) * d, n, *(1,) * (dims - 1 - d), 1))
        lines.append(ops.expand(line, (*tail, 1)))
    base = ops.reshape(ops.cat([*lines, creation.ones((*tail, 1), **options)], dims), (1, -1, dims + 1))
    return ops.reshape(ops.matmul(base, ops.transpose(theta, 1, 2)), (size[0], *tail, dims))
