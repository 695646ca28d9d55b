"""A tensor cut into parts, and parts put together: `split`, `chunk`, `unbind`, `stack`, `hstack`, ..."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from typing import Any

import torch

from weft.autograd.call import edge, looking_each
from weft.autograd.function import Context, CustomNode, Function
from weft.autograd.node import Slot
from weft.core.dispatch import here
from weft.core.errors import ArgumentError, ShapeError
from weft.functional.short import Parts, Short
from weft.functional.table import calling, public
from weft.ops import OPS, Op
from weft.ops.shape import dim_of
from weft.tensor.tensor import Tensor

_reshape, _narrow, _select, _unsqueeze, _cat, _stack, _zeros_like = map(
    calling, ["reshape", "narrow", "select", "unsqueeze", "cat", "stack", "zeros_like"]
)
_NARROW, _SELECT = OPS["narrow"], OPS["select"]
MOST_PARTS = 1 << 20  # of one tensor: what is asked for beyond is a slip, and would take minutes


@public("flow tensor")
def split(x: Tensor, split_size_or_sections: int | Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
    """Views of parts along a dimension: of this size, the last one smaller if need be; or of these sizes.

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
        return _views(x, _NARROW, places, torch.split_with_sizes(data, sizes, d), _Cut)
    if len(places) > 1 and here.grad and x.requires_grad:
        return _Cut.apply(x, _NARROW, places)
    return tuple(_narrow(x, *place) for place in places)


class _Cut(Function):
    """Views that together are all of x: their gradients lie side by side, and are put together once."""

    join = _cat

    @staticmethod
    def forward(ctx: Any, *args: Any) -> tuple[Tensor, ...]:
        x, op, places = args
        _remember(ctx, x, op, places)
        return tuple(op(x, *place) for place in places)

    @classmethod
    def backward(cls, ctx: Any, *gradients: Any) -> tuple[Any, ...]:
        pairs = zip(gradients, ctx.places, strict=True)
        every = [_zeros_like(ctx.op(ctx.whole, *place), None) if g is None else g for g, place in pairs]
        return cls.join(every, ctx.places[0][0]), None, None


class _Slices(_Cut):
    """Likewise, of views that lack the dimension."""

    @staticmethod
    def join(gradients: Sequence[Tensor], dim: int) -> Tensor:
        return stack(gradients, dim)


def _remember(ctx: Any, x: Tensor, op: Op, places: Sequence[tuple[int, ...]]) -> None:
    ctx.whole, ctx.op, ctx.places = x.detach(), op, places
    ctx.set_materialize_grads(False)


def _views(
    x: Tensor, op: Op, places: Sequence[tuple[int, ...]], parts: Sequence[torch.Tensor], function: type[_Cut]
) -> tuple[Tensor, ...]:
    """Views of local memory at hand, on the tape as one call if there are several."""
    if not (x._requires_grad and here.grad):
        return looking_each(x, op, places, parts)
    if len(parts) == 1:
        return (op(x, *places[0]),)
    found, context = looking_each(x, op, places, parts), Context()
    _remember(context, x, op, places)
    node: Any = CustomNode(function, context, (edge(x), None, None), found)
    for i, y in enumerate(found):
        y.node, y._requires_grad = Slot(node, i), True
    return found


def _chunked(x: Tensor, parts: Sequence[torch.Tensor], dim: int) -> tuple[Tensor, ...] | None:
    size = parts[0].shape[dim]
    return _views(x, _NARROW, _spans(dim, size, len(parts), parts[-1].shape[dim]), parts, _Cut) if size else None


@functools.lru_cache(1024)
def _spans(dim: int, size: int, count: int, last: int) -> tuple[tuple[int, ...], ...]:
    """The attributes of `narrow` for parts of this size, the last of which has another."""
    return tuple((dim, i * size, size if i < count - 1 else last, 1) for i in range(count))


@functools.lru_cache(1024)
def _indices(dim: int, count: int) -> tuple[tuple[int, ...], ...]:
    return tuple((dim, i) for i in range(count))


def _unbound(x: Tensor, parts: Sequence[torch.Tensor], dim: int) -> tuple[Tensor, ...] | None:
    return _views(x, _SELECT, _indices(dim, len(parts)), parts, _Slices) if parts else None


@public("flow tensor", short=Parts(f"d0.chunk(chunks, dim) if chunks <= {MOST_PARTS} else ()", _chunked))
def chunk(x: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """Views of at most so many parts along a dimension, all of one size but the last.

    >>> [p.tolist() for p in flow.arange(5).chunk(3)]
    [[0, 1], [2, 3], [4]]
    """
    _check_parts("chunk", chunks)
    size = x.shape[dim_of(dim, x.ndim)]
    if size == 0:
        return (x,) * chunks
    return split(x, -(-size // chunks), dim)


def _check_parts(name: str, count: int) -> None:
    if not 1 <= count <= MOST_PARTS:
        raise ArgumentError(f"{name}(): {count} parts; there are at least one and at most {MOST_PARTS}")


@public("flow tensor")
def tensor_split(x: Tensor, indices_or_sections: int | Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
    """Views of parts along a dimension: so many balanced ones, or cut at these places."""
    n = x.shape[dim_of(dim, x.ndim)]
    if isinstance(indices_or_sections, int):
        _check_parts("tensor_split", indices_or_sections)
        base, longer = divmod(n, indices_or_sections)
        return split(x, [base + (i < longer) for i in range(indices_or_sections)], dim)
    if isinstance(indices_or_sections, Tensor):
        found = indices_or_sections.tolist()
        return tensor_split(x, found, dim)
    cuts = [0, *(min(i if i >= 0 else max(n + i, 0), n) for i in indices_or_sections), n]
    return tuple(_narrow(x, dim, a, max(b - a, 0)) for a, b in itertools.pairwise(cuts))


@public("flow tensor", short=Parts("d0.unbind(dim)", _unbound))
def unbind(x: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    """Views of every slice along a dimension, which goes away.

    >>> [row.tolist() for row in flow.tensor([[1, 2], [3, 4]]).unbind()]
    [[1, 2], [3, 4]]
    """
    d = dim_of(dim, x.ndim)
    places = _indices(d, x.shape[d])
    if len(places) > 1 and here.grad and x.requires_grad:
        return _Slices.apply(x, _SELECT, places)
    return tuple(_select(x, *place) for place in places)


@public("flow", short=Short("stack"))
def stack(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """The tensors side by side along a new dimension.

    >>> flow.stack([flow.ones(2), flow.zeros(2)]).tolist()
    [[1.0, 1.0], [0.0, 0.0]]
    """
    if not tensors:
        raise ArgumentError("stack expects a non-empty TensorList; got none")
    if here.trace is None:
        try:
            return _stack(tensors, dim)
        except ShapeError:
            _same_shapes(tensors)
            raise
    _same_shapes(tensors)
    d = dim_of(dim, tensors[0].ndim + 1)
    return _cat([_unsqueeze(x, d) for x in tensors], d)  # which a graph lays in place


def _same_shapes(tensors: Sequence[Tensor]) -> None:
    other = next((i for i, x in enumerate(tensors) if x.shape != tensors[0].shape), None)
    if other is not None:
        raise ShapeError(
            f"stack expects each tensor to be equal size, but got {list(tensors[0].shape)} at entry 0 and "
            f"{list(tensors[other].shape)} at entry {other}. cat() joins tensors that differ in one dimension"
        )


def _at_least(ndim: int) -> Any:
    def raised(*tensors: Any) -> Any:
        given = tensors[0] if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)) else tensors
        shaped = tuple(x if x.ndim >= ndim else _reshape(x, _LIFTED[ndim](tuple(x.shape))) for x in given)
        return shaped[0] if len(tensors) == 1 and isinstance(tensors[0], Tensor) else shaped

    raised.__name__ = raised.__qualname__ = f"atleast_{ndim}d"
    raised.__doc__ = f"The tensors with at least {ndim} dimension{'s' * (ndim > 1)}."
    return public("flow")(raised)


_LIFTED: dict[int, Any] = {
    1: lambda s: s or (1,),
    2: lambda s: (1,) * (2 - len(s)) + s,
    3: lambda s: (1, 1, 1) if not s else (1, s[0], 1) if len(s) == 1 else (*s, 1),
}
atleast_1d, atleast_2d, atleast_3d = _at_least(1), _at_least(2), _at_least(3)


@public("flow")
def hstack(tensors: Sequence[Tensor]) -> Tensor:
    """The tensors side by side: along the second dimension, vectors along their only one."""
    lifted = [atleast_1d(x) for x in tensors]
    return _cat(lifted, 0 if lifted[0].ndim == 1 else 1)


@public("flow")
def vstack(tensors: Sequence[Tensor]) -> Tensor:
    """The tensors one below the other."""
    return _cat([atleast_2d(x) for x in tensors], 0)


@public("flow")
def dstack(tensors: Sequence[Tensor]) -> Tensor:
    """The tensors one behind the other, along the third dimension."""
    return _cat([atleast_3d(x) for x in tensors], 2)


@public("flow")
def column_stack(tensors: Sequence[Tensor]) -> Tensor:
    """The tensors side by side, vectors as columns."""
    return _cat([_reshape(x, (-1, 1)) if x.ndim <= 1 else x for x in tensors], 1)
