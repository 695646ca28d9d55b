"""Differentiable collectives: functions of tensors, whose backward is the transposed collective.

Every rank of the group must run the backward, as every rank made the call.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft.autograd import Function
from weft.core.errors import ArgumentError
from weft.distributed import collectives
from weft.distributed.collectives import ReduceOp
from weft.distributed.groups import get_rank, get_world_size
from weft.tensor.tensor import Tensor


def all_reduce(tensor: Tensor, op: str = ReduceOp.SUM, group: Any = None) -> Tensor:
    """The sum of all ranks' tensors, on each rank."""
    return _AllReduce.apply(tensor, _linear("all_reduce", op), group)


def all_gather(tensor: Tensor, group: Any = None) -> tuple[Tensor, ...]:
    """Every rank's tensor, in rank order."""
    return _AllGather.apply(tensor, group)


def broadcast(tensor: Tensor, src: int, group: Any = None) -> Tensor:
    """The tensor of rank `src`, on every rank."""
    return _Broadcast.apply(tensor, src, group)


def reduce(tensor: Tensor, dst: int, op: str = ReduceOp.SUM, group: Any = None) -> Tensor:
    """The sum of all ranks' tensors on rank `dst`; other ranks get their own tensor."""
    return _Reduce.apply(tensor, dst, _linear("reduce", op), group)


def reduce_scatter(
    output: Tensor, input_list: Sequence[Tensor], op: str = ReduceOp.SUM, group: Any = None
) -> Tensor:  # fmt: skip
    """The sum over all ranks of the tensors at this rank's index; `output` gives its shape and dtype."""
    return _ReduceScatter.apply(_linear("reduce_scatter", op), group, *input_list)


def all_to_all(
    output_tensor_list: Sequence[Tensor], input_tensor_list: Sequence[Tensor], group: Any = None
) -> tuple[Tensor, ...]:
    """The tensor that each rank has for this one; the list of outputs gives their shapes and dtypes."""
    return _AllToAll.apply(group, [tuple(t.shape) for t in output_tensor_list], *input_tensor_list)


def all_to_all_single(
    output: Tensor, input: Tensor, output_split_sizes: Sequence[int] | None = None,
    input_split_sizes: Sequence[int] | None = None, group: Any = None,
) -> Tensor:  # fmt: skip
    """A slice of the input to each rank, and one from each; `output` gives the shape and dtype."""
    splits = output_split_sizes, input_split_sizes
    return _AllToAllSingle.apply(input, tuple(output.shape), splits, group)


def _linear(what: str, op: str) -> str:
    if op not in (ReduceOp.SUM, ReduceOp.AVG):
        raise ArgumentError(f"{what}(): only sums and means have gradients; for {op!r} call flow.distributed.{what}")
    return op


class _AllReduce(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, op: str, group: Any) -> Any:
        ctx.op, ctx.group = op, group
        y = x.contiguous().clone()
        collectives.all_reduce(y, op, group)
        return y

    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> Any:
        return all_reduce(dy, ctx.op, ctx.group), None, None


class _AllGather(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, group: Any) -> Any:
        ctx.group = group
        found = [x.new_empty(x.shape) for _ in range(get_world_size(group))]
        collectives.all_gather(found, x.contiguous(), group)
        return tuple(found)

    @staticmethod
    def backward(ctx: Any, *dys: Tensor) -> Any:
        return reduce_scatter(dys[get_rank(ctx.group)], dys, ReduceOp.SUM, ctx.group), None


class _ReduceScatter(Function):
    @staticmethod
    def forward(ctx: Any, op: str, group: Any, *xs: Tensor) -> Any:
        ctx.op, ctx.group = op, group
        y = xs[get_rank(group)].new_empty(xs[get_rank(group)].shape)
        collectives.reduce_scatter(y, [x.contiguous() for x in xs], op, group)
        return y

    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> Any:
        size = get_world_size(ctx.group)
        return None, None, *(g / size if ctx.op == ReduceOp.AVG else g for g in all_gather(dy, ctx.group))


class _Broadcast(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, src: int, group: Any) -> Any:
        ctx.src, ctx.group = src, group
        y = x.contiguous().clone()
        collectives.broadcast(y, src, group)
        return y

    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> Any:
        total = reduce(dy, ctx.src, ReduceOp.SUM, ctx.group)
        return total if get_rank() == ctx.src else dy.new_zeros(dy.shape), None, None


class _Reduce(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, dst: int, op: str, group: Any) -> Any:
        ctx.dst, ctx.op, ctx.group = dst, op, group
        y = x.contiguous().clone()
        collectives.reduce(y, dst, op, group)
        return y

    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> Any:
        g = broadcast(dy, ctx.dst, ctx.group)
        return g / get_world_size(ctx.group) if ctx.op == ReduceOp.AVG else g, None, None, None


class _AllToAll(Function):
    @staticmethod
    def forward(ctx: Any, group: Any, shapes: list[tuple[int, ...]], *xs: Tensor) -> Any:
        ctx.group, ctx.shapes = group, [tuple(x.shape) for x in xs]
        found = [xs[0].new_empty(shape) for shape in shapes]
        collectives.all_to_all(found, [x.contiguous() for x in xs], group)
        return tuple(found)

    @staticmethod
    def backward(ctx: Any, *dys: Tensor) -> Any:
        return None, None, *_AllToAll.apply(ctx.group, ctx.shapes, *dys)


class _AllToAllSingle(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, shape: tuple[int, ...], splits: tuple[Any, Any], group: Any) -> Any:
        ctx.shape, ctx.splits, ctx.group = tuple(x.shape), splits, group
        y = x.new_empty(shape)
        collectives.all_to_all_single(y, x.contiguous(), *splits, group)
        return y

    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> Any:
        return _AllToAllSingle.apply(dy, ctx.shape, ctx.splits[::-1], ctx.group), None, None, None
