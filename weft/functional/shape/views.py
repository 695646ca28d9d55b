"""Shape functions with Python's call forms: `view(2, 3)` and `view((2, 3))`, `flatten`, `movedim`, ..."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from weft.api.fast_path import Short, shortened
from weft.api.table import public
from weft.core.dispatch import here
from weft.core.dtype import DType
from weft.core.errors import IndexingError, ShapeError
from weft.functional.create.creation import Sizes, size_of
from weft.functional.tensor.memory_format import contiguous
from weft.ops import ops
from weft.ops.pointwise.arithmetic import conjugated
from weft.ops.shape.views import dim_of, resolve
from weft.tensor.tensor import Tensor


@public("flow tensor", short=Short("reshape", "d0.reshape(*shape)"))
def reshape(x: Tensor, *shape: Sizes) -> Tensor:
    return ops.reshape(x, size_of("reshape", shape))


@public("flow tensor", short=Short("view", "d0.view(*shape)"))
def view(x: Tensor, *shape: Sizes) -> Tensor:
    """x with another shape, sharing memory; -1 is inferred. Given a dtype, x's memory reinterpreted.

    >>> flow.arange(6).view(2, 3).tolist()
    [[0, 1, 2], [3, 4, 5]]
    """
    if len(shape) == 1 and isinstance(shape[0], DType):
        return ops.reinterpret(x, shape[0])
    return _viewed(x, size_of("view", shape))


def _viewed(x: Tensor, shape: tuple[int, ...]) -> Tensor:
    """A global tensor has no strides, as in OneFlow: this rank's shard can be viewed however a kernel laid it out."""
    return ops.view(x, shape) if x.spec is None else ops.reshape(x, shape)


@public("tensor")
def reshape_as(x: Tensor, other: Tensor) -> Tensor:
    """x with the other's shape."""
    return ops.reshape(x, tuple(other.shape))


@public("tensor")
def view_as(x: Tensor, other: Tensor) -> Tensor:
    """x with the other's shape, sharing memory."""
    return _viewed(x, tuple(other.shape))


@public("flow tensor", short=Short("permute", "d0.permute(*dims)"))
def permute(x: Tensor, *dims: Sizes) -> Tensor:
    order = size_of("permute", dims)
    n = x.ndim
    if sorted(d % n if -n <= d < n else d for d in order) != list(range(n)):
        for d in order:
            dim_of(d, n)
        wrong = "duplicate dims are not allowed"
        if len(order) != n:
            wrong = "number of dimensions in the tensor input does not match the length of the desired ordering of "
            wrong += "dimensions"
        raise IndexingError(f"permute(): {wrong}: {list(order)} must name each of the {n} dimensions once")
    return ops.permute(x, order)


@public("flow tensor", short=Short("expand", "d0.expand(*shape)"))
def expand(x: Tensor, *shape: Sizes) -> Tensor:
    return _expanded(x, size_of("expand", shape))


def _expanded(x: Tensor, shape: tuple[int, ...]) -> Tensor:
    if min(shape[: max(len(shape) - x.ndim, 0)], default=0) < 0:  # the kernel accepts it for empty tensors
        raise ShapeError(f"expand(): {list(x.shape)} to {list(shape)}: -1 is not allowed for a new dimension")
    return ops.expand(x, shape)


def _merged(data: Any, start_dim: int, end_dim: int) -> Any:
    """The kernel of flatten, or None where nothing is merged: the result is the tensor itself then."""
    flat = data.flatten(start_dim, end_dim)
    return None if flat is data else flat


@public("flow tensor", short=Short("reshape", "merged(d0, start_dim, end_dim)", names={"merged": _merged}))
def flatten(x: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """x with a range of dimensions merged into one.

    >>> flow.ones(2, 3, 4).flatten(1).shape
    torch.Size([2, 12])
    """
    shape = tuple(x.shape)
    first, last = dim_of(start_dim, len(shape)), dim_of(end_dim, len(shape))
    if not shape:
        return ops.reshape(x, (1,))
    if first == last:
        return x
    if first > last:
        raise ShapeError(f"flatten(): start_dim={start_dim} comes after end_dim={end_dim} in shape {list(shape)}")
    return ops.reshape(x, (*shape[:first], math.prod(shape[first : last + 1]), *shape[last + 1 :]))


@public("flow tensor")
def unflatten(x: Tensor, dim: int, sizes: Sequence[int]) -> Tensor:
    """x with a dimension split into several; one of their sizes may be -1."""
    shape, d = tuple(x.shape), dim_of(dim, x.ndim)
    if not sizes or list(sizes).count(-1) > 1 or (-1 not in sizes and math.prod(sizes) != shape[d]):
        raise ShapeError(
            f"unflatten: Provided sizes {list(sizes)} don't multiply up to the size of dim {d} ({shape[d]}) in the "
            f"input tensor, of shape {list(shape)}"
        )
    return ops.reshape(x, (*shape[:d], *resolve((shape[d],), tuple(sizes)), *shape[d + 1 :]))


_MATRIX = Short("transpose", "d0.t() if d0.ndim == 2 else None", "dim0, dim1 = 0, 1")


@public("flow tensor", short=_MATRIX)
def t(x: Tensor) -> Tensor:
    """The transpose of a matrix; a view of a vector."""
    if x.ndim > 2:
        raise ShapeError(f"t() transposes matrices, and this has shape {list(x.shape)}: write x.transpose(-2, -1)")
    return _reversed(x)


def _reversed(x: Tensor) -> Tensor:
    """x with its dimensions reversed."""
    return ops.permute(x, tuple(reversed(range(x.ndim))))


transposed = shortened(_reversed, _reversed, _MATRIX)


def matrix_transposed(x: Tensor) -> Tensor:
    """x with its last two dimensions swapped."""
    if x.ndim < 2:
        raise ShapeError(f"mT swaps the last two dimensions; this tensor has shape {list(x.shape)}")
    return ops.transpose(x, -2, -1)


@public("flow")
def transpose(x: Tensor, dim0: Any = None, dim1: int | None = None, *, perm: Sequence[int] | None = None) -> Tensor:
    """A view of x with two dimensions swapped; or, as in OneFlow, with all of them permuted.

    >>> flow.transpose(flow.ones(2, 3), 0, 1).shape
    torch.Size([3, 2])
    """
    order = dim0 if perm is None and dim1 is None and isinstance(dim0, (tuple, list)) else perm
    return ops.transpose(x, dim0, dim1) if order is None else ops.permute(x, tuple(order))


@public("flow tensor")
def movedim(x: Tensor, source: int | Sequence[int], destination: int | Sequence[int]) -> Tensor:
    """x with some dimensions moved, the others in order."""
    n = x.ndim
    src = [dim_of(d, n) for d in ([source] if isinstance(source, int) else source)]
    dst = [dim_of(d, n) for d in ([destination] if isinstance(destination, int) else destination)]
    if len(src) != len(dst) or len(set(src)) != len(src) or len(set(dst)) != len(dst):
        raise IndexingError(f"movedim(): {source} to {destination}: give as many, and each dimension once")
    rest = iter(d for d in range(n) if d not in src)
    return ops.permute(x, tuple(src[dst.index(i)] if i in dst else next(rest) for i in range(n)))


@public("flow tensor")
def ravel(x: Tensor) -> Tensor:
    """x flattened; a copy, unless x is contiguous."""
    return ops.reshape(contiguous(x), (-1,))


@public("flow tensor")
def adjoint(x: Tensor) -> Tensor:
    """The conjugate transpose."""
    return conjugated(ops.transpose(x, -2, -1))


@public("flow tensor")
def as_strided(x: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None) -> Tensor:
    at = 0 if storage_offset is None else storage_offset - x.storage_offset()
    last = at + sum((n - 1) * step for n, step in zip(size, stride, strict=False))
    if here.trace is not None and 0 not in size and not 0 <= at <= last < x.numel():
        raise ShapeError(
            f"as_strided(): sizes {list(size)} and strides {list(stride)} from {at} are out of bounds for storage of "
            f"{x.numel()} elements: in a graph each tensor has its own"
        )
    if x.spec is None and not x.is_contiguous():  # in the order of its memory it may be
        steps = x.stride()
        x = ops.permute(x, tuple(sorted(range(x.ndim), key=lambda d: (-steps[d], d))))
        if not x.is_contiguous():
            raise ShapeError("as_strided(): x has gaps in memory, so that its gradient isn't known; x.contiguous()")
    elif x.spec is not None:  # it has no strides, and is taken to be contiguous: else this is of a copy, as a reshape
        x = contiguous(x)
    return ops.as_strided(x, tuple(size), tuple(stride), at)


@public("tensor")
def unfold(x: Tensor, dimension: int, size: int, step: int) -> Tensor:
    """The sliding windows of this size and step along a dimension, as a view."""
    return ops.unfold_tensor(x, dimension, size, step)
