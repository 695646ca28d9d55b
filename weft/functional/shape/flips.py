"""flip, fliplr, flipud and rot90."""

from __future__ import annotations

from collections.abc import Sequence

from weft.api.table import public
from weft.core.errors import ShapeError
from weft.functional.create.creation import Sizes, size_of
from weft.ops import ops
from weft.ops.shape.views import dim_of
from weft.tensor.tensor import Tensor


@public("flow tensor")
def fliplr(x: Tensor) -> Tensor:
    """x with its columns reversed."""
    return ops.flip(x, (1,))


@public("flow tensor")
def flipud(x: Tensor) -> Tensor:
    """x with its rows reversed."""
    if not x.ndim:
        raise ShapeError("flipud(): Input must be >= 1-d.")
    return ops.flip(x, (0,))


@public("flow tensor")
def rot90(x: Tensor, k: int = 1, dims: Sequence[int] = (0, 1)) -> Tensor:
    """x rotated k times by 90 degrees in the plane of two dimensions.

    >>> flow.rot90(flow.tensor([[1, 2], [3, 4]])).tolist()
    [[2, 4], [1, 3]]
    """
    if len(dims) != 2 or x.ndim < 2:
        raise ShapeError(
            f"rot90(): expected total dims >= 2 and two of them to turn in, but got {list(x.shape)} and dims "
            f"{list(dims)}"
        )
    a, b = dims
    if dim_of(a, x.ndim) == dim_of(b, x.ndim):
        raise ShapeError(f"rot90(): expected rotation dims to be different, but got dim0 = {a} and dim1 = {b}")
    if k % 4 == 0:
        return ops.clone(x)
    if k % 4 == 2:
        return ops.flip(x, (a, b))
    transposed = ops.transpose(x, a, b)
    return ops.flip(transposed, (a if k % 4 == 1 else b,))


@public("flow tensor")
def flip(x: Tensor, *dims: Sizes) -> Tensor:
    return ops.flip(x, size_of("flip", dims))
