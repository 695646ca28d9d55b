"""A tensor split into views: `split`, `chunk`, `tensor_split`, `unbind`, `hsplit`, ..."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from typing import Any

import torch

from weft.api.fast_path import Parts
from weft.api.table import public
from weft.autograd.call import edge
from weft.autograd.freshness import views_at
from weft.autograd.function import Context, CustomNode, Function
from weft.autograd.node import Slot
from weft.core.dispatch import here
from weft.core.errors import ArgumentError, ShapeError
from weft.functional.shape.joining import stack
from weft.ops import OPS, Op, ops
from weft.ops.shape.views import dim_of
from weft.tensor.tensor import Tensor

MOST_PARTS = 1 << 20  # views of one tensor: more would be a mistake, and take minutes


@public("flow tensor", "split unsafe_split unsafe_split_with_sizes")
def split(x: Tensor, split_size_or_sections: int | Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
    """Views of parts along a dimension: of one size, the last one smaller if need be; or of these sizes.

    >>> [p.tolist() for p in flow.arange(5).split(2)]
    [[0, 1], [2, 3], [4]]
    """
    size = split_size_or_sections
    d = dim_of(dim, x.ndim)
    whole = x.shape[d]
    if isinstance(size, int):
        if size <= 0 and (size or whole):
            raise ArgumentError(f"split(): parts of size {size}; a size is at least 1")
        sizes = [min(size, whole - at) for at in range(0, whole, size or 1)] or [0]
    else:
        sizes = list(size)
        if not sizes and not whole:
            return ()
        if sum(sizes) != whole:
            raise ShapeError(
                f"split_with_sizes expects split_sizes to sum exactly to {whole} (input tensor's size at dimension "
                f"{d}), but got split_sizes={sizes}, which make {sum(sizes)}: split() of {list(x.shape)}"
            )
    places = [(d, end - size, size, 1) for size, end in zip(sizes, itertools.accumulate(sizes), strict=True)]
    data = x.blob.now
    if data is not None and here.plain:
        return _views(x, OPS["narrow"], places, torch.split_with_sizes(data, sizes, d), _Cut)
    if len(places) > 1 and here.grad and x.requires_grad:
        return _Cut.apply(x, OPS["narrow"], places)
    return tuple(ops.narrow(x, *place) for place in places)


class _Cut(Function):
    """Views that together are all of x: their gradients are concatenated once."""

    join = ops.cat
    makes_views = True

    @staticmethod
    def forward(ctx: Any, *args: Any) -> tuple[Tensor, ...]:
        x, op, places = args
        _remember(ctx, x, op, places)
        return tuple(op(x, *place) for place in places)

    @classmethod
    def backward(cls, ctx: Any, *gradients: Any) -> tuple[Any, ...]:
        missing = {p[2:]: p for g, p in zip(gradients, ctx.places, strict=True) if g is None}  # one of each size
        zeros = {size: ops.zeros_like(ctx.op(ctx.whole, *place), None) for size, place in missing.items()}
        every = [zeros[p[2:]] if g is None else g for g, p in zip(gradients, ctx.places, strict=True)]
        return cls.join(every, ctx.places[0][0]), None, None


class _Slices(_Cut):
    """`_Cut` for views without the dimension, of `unbind`."""

    @staticmethod
    def join(gradients: Sequence[Tensor], dim: int) -> Tensor:
        return stack(gradients, dim)


def _remember(ctx: Any, x: Tensor, op: Op, places: Sequence[tuple[int, ...]]) -> None:
    ctx.whole, ctx.op, ctx.places = x.detach(), op, places
    ctx.set_materialize_grads(False)


def _views(
    x: Tensor, op: Op, places: Sequence[tuple[int, ...]], parts: Sequence[torch.Tensor], function: type[_Cut]
) -> tuple[Tensor, ...]:
    """Views of local memory at hand, recorded on the tape as one call if there are several."""
    if not (x._requires_grad and here.grad):
        return views_at(x, op, places, parts)
    if len(parts) == 1:
        return (op(x, *places[0]),)
    found, context = views_at(x, op, places, parts), Context()
    _remember(context, x, op, places)
    node: Any = CustomNode(function, context, (edge(x), None, None), found)
    for i, y in enumerate(found):
        y.node, y._requires_grad = Slot(node, i), True
    return found


def _chunked(x: Tensor, parts: Sequence[torch.Tensor], dim: int) -> tuple[Tensor, ...] | None:
    whole = x.blob.data.shape[dim]  # type: ignore[union-attr]  # it is at hand
    return _views(x, OPS["narrow"], _spans(dim, whole, len(parts)), parts, _Cut) if whole else None


@functools.lru_cache(1024)
def _spans(dim: int, whole: int, count: int) -> tuple[tuple[int, ...], ...]:
    """The attributes of `narrow` for parts of one size, but for the last."""
    size = -(-whole // count)
    return tuple((dim, at, min(size, whole - at), 1) for at in range(0, whole, size))


@functools.lru_cache(1024)
def _indices(dim: int, count: int) -> tuple[tuple[int, ...], ...]:
    return tuple((dim, i) for i in range(count))


def _unbound(x: Tensor, parts: Sequence[torch.Tensor], dim: int) -> tuple[Tensor, ...] | None:
    return _views(x, OPS["select"], _indices(dim, len(parts)), parts, _Slices) if parts else None


_CHUNKS = Parts(f"d0.chunk(chunks, dim) if chunks <= {MOST_PARTS} else ()", _chunked)


@public("flow tensor", "chunk unsafe_chunk", _CHUNKS)
def chunk(x: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """Views of at most `chunks` equal parts along a dimension, the last one smaller if need be.

    >>> [p.tolist() for p in flow.arange(5).chunk(3)]
    [[0, 1], [2, 3], [4]]
    """
    _check_parts("chunk", chunks)
    size = x.shape[dim_of(dim, x.ndim)]
    if size == 0:
        return split(x, [0] * chunks, dim)
    return split(x, -(-size // chunks), dim)


def _check_parts(name: str, count: int) -> None:
    if not 1 <= count <= MOST_PARTS:
        raise ArgumentError(f"{name}(): {count} parts; there are at least one and at most {MOST_PARTS}")


@public("flow tensor")
def tensor_split(x: Tensor, indices_or_sections: int | Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
    """Views of parts along a dimension: a number of balanced ones, or split at these indices."""
    n = x.shape[dim_of(dim, x.ndim)]
    if isinstance(indices_or_sections, int):
        _check_parts("tensor_split", indices_or_sections)
        base, longer = divmod(n, indices_or_sections)
        return split(x, [base + (i < longer) for i in range(indices_or_sections)], dim)
    if isinstance(indices_or_sections, Tensor):
        return tensor_split(x, indices_or_sections.tolist(), dim)
    cuts = [0, *(min(i if i >= 0 else max(n + i, 0), n) for i in indices_or_sections), n]
    return tuple(ops.narrow(x, dim, a, max(b - a, 0)) for a, b in itertools.pairwise(cuts))


@public("flow tensor", short=Parts("d0.unbind(dim)", _unbound))
def unbind(x: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    """Views of every slice along a dimension, which is removed.

    >>> [row.tolist() for row in flow.tensor([[1, 2], [3, 4]]).unbind()]
    [[1, 2], [3, 4]]
    """
    d = dim_of(dim, x.ndim)
    places = _indices(d, x.shape[d])
    if len(places) > 1 and here.grad and x.requires_grad:
        return _Slices.apply(x, OPS["select"], places)
    return tuple(ops.select(x, *place) for place in places)


@public("flow tensor")
def split_with_sizes(x: Tensor, split_sizes: Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
    """Views of parts of these sizes along a dimension."""
    return split(x, list(split_sizes), dim)


def _even(name: str, x: Tensor, cut: int | Sequence[int], dim: int, least: int) -> tuple[Tensor, ...]:
    """A split into equal parts, or at given indices."""
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
    """Views split along the second dimension, of a vector along its only one."""
    return _even("hsplit", x, indices_or_sections, 0 if x.ndim == 1 else 1, 1)


@public("flow tensor")
def vsplit(x: Tensor, indices_or_sections: int | Sequence[int]) -> tuple[Tensor, ...]:
    """Views split along the first dimension."""
    return _even("vsplit", x, indices_or_sections, 0, 2)


@public("flow tensor")
def dsplit(x: Tensor, indices_or_sections: int | Sequence[int]) -> tuple[Tensor, ...]:
    """Views split along the third dimension."""
    return _even("dsplit", x, indices_or_sections, 2, 3)
