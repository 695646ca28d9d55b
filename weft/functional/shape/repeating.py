"""Repetition: `repeat`, `tile`, `repeat_interleave`."""

from __future__ import annotations

from contextlib import nullcontext

from weft.api.table import public
from weft.core.dispatch import here, tracing
from weft.core.errors import OptionError, ShapeError
from weft.functional.create import creation
from weft.functional.create.creation import Sizes, size_of
from weft.functional.create.likeness import device_of
from weft.ops import ops
from weft.ops.shape.views import dim_of
from weft.tensor.tensor import Tensor


@public("flow tensor")
def repeat(x: Tensor, *sizes: Sizes) -> Tensor:
    """Copies of x, so many along each dimension.

    >>> flow.tensor([1, 2]).repeat(2, 2).tolist()
    [[1, 2, 1, 2], [1, 2, 1, 2]]
    """
    counts = size_of("repeat", sizes)
    shape = (1,) * (len(counts) - x.ndim) + tuple(x.shape)
    if len(counts) < x.ndim:
        raise ShapeError(
            "repeat(): Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor: "
            f"{list(counts)} for {list(x.shape)}; give a count for each dimension; more go in front"
        )
    if any(n < 0 for n in counts):
        raise ShapeError(f"repeat{counts}: Trying to create tensor with negative dimension: copies of {list(x.shape)}")
    y = ops.reshape(x, tuple(n for pair in zip((1,) * len(shape), shape, strict=True) for n in pair))
    y = ops.expand(y, tuple(n for pair in zip(counts, shape, strict=True) for n in pair))
    return ops.reshape(ops.contiguous(y), tuple(c * n for c, n in zip(counts, shape, strict=True)))  # no view


@public("flow tensor")
def tile(x: Tensor, *dims: Sizes) -> Tensor:
    """`repeat`, with missing leading counts taken as one."""
    counts = size_of("tile", dims)
    if any(n < 0 for n in counts):
        raise ShapeError(
            f"tile(): Trying to create tensor with negative dimension: {list(counts)} copies of {list(x.shape)}"
        )
    return repeat(x, (1,) * (x.ndim - len(counts)) + counts)


@public("flow tensor")
def repeat_interleave(
    x: Tensor, repeats: int | Tensor | None = None, dim: int | None = None, *, output_size: int | None = None
) -> Tensor:
    """Every element, or slice along a dimension, repeated so many times; of repeats alone, their numbers: 0, 1, ...

    >>> flow.repeat_interleave(flow.tensor([1, 2]), 2).tolist()
    [1, 1, 2, 2]
    """
    if repeats is None:
        x, repeats = creation.arange(x.numel(), dtype=x.dtype, **device_of(x)), x
    if dim is None:
        x, dim = ops.reshape(x, (-1,)), 0
    d, shape = dim_of(dim, x.ndim), tuple(x.shape)
    if isinstance(repeats, int):
        if repeats < 0:
            raise OptionError(f"repeat_interleave(): Repeats must be non-negative; got {repeats}")
        _check_size(output_size, shape[d] * repeats)
        wide = ops.expand(ops.unsqueeze(x, d + 1), (*shape[: d + 1], repeats, *shape[d + 1 :]))
        return ops.reshape(ops.contiguous(wide), (*shape[:d], shape[d] * repeats, *shape[d + 1 :]))  # not a view
    known = here.trace is not None and not repeats.is_lazy  # then the result's shape is known while tracing, too
    with tracing(None) if known else nullcontext():
        if tuple(repeats.shape) != (shape[d],):
            repeats = ops.expand(repeats, (shape[d],))
        if here.trace is not None and output_size is not None:  # a launch checks it
            places = ops.repeat_places_in(repeats, output_size)
        else:
            places = ops.repeat_places(repeats)
    _check_size(output_size, places.shape[0])
    return ops.index_select(x, d, places)


def _check_size(given: int | None, size: int) -> None:
    if given not in (None, size):
        raise OptionError(f"repeat_interleave: Invalid output_size, expected {size} but got {given}")
