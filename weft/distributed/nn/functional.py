"""Differentiable collectives: functions of tensors, whose backward is the transposed collective.

Every rank of the group must run the backward, as every rank made the call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from weft.autograd import Function
from weft.core.errors import ArgumentError
from weft.distributed import collectives
from weft.distributed.collectives import ReduceOp
from weft.distributed.groups import get_rank, get_world_size
from weft.tensor.tensor import Tensor


def all_reduce(tensor: Tensor, op: str = ReduceOp.SUM, group: Any = None) -> Tensor:
    """The sum of all ranks' tensors, on each rank."""
    _check_linear("all_reduce", op)
    return _copied(collectives.all_reduce, (op, group), lambda dy: all_reduce(dy, op, group), tensor)


def all_gather(tensor: Tensor, group: Any = None) -> tuple[Tensor, ...]:
    """Every rank's tensor, in rank order."""

    def gather(x: Tensor) -> tuple[Tensor, ...]:
        found = tuple(x.new_empty(x.shape) for _ in range(get_world_size(group)))
        collectives.all_gather(found, x.contiguous(), group)
        return found

    return _Linear.apply(gather, lambda *dys: reduce_scatter(dys[get_rank(group)], dys, ReduceOp.SUM, group), tensor)


def broadcast(tensor: Tensor, src: int, group: Any = None) -> Tensor:
    """The tensor of rank `src`, on every rank."""

    def back(dy: Tensor) -> Tensor:
        total = reduce(dy, src, ReduceOp.SUM, group)
        return total if get_rank() == src else dy.new_zeros(dy.shape)

    return _copied(collectives.broadcast, (src, group), back, tensor)


def reduce(tensor: Tensor, dst: int, op: str = ReduceOp.SUM, group: Any = None) -> Tensor:
    """The sum of all ranks' tensors on rank `dst`; other ranks get their own tensor."""
    share = _check_linear("reduce", op, group)
    return _copied(collectives.reduce, (dst, op, group), lambda dy: share(broadcast(dy, dst, group)), tensor)


def reduce_scatter(output: Tensor, input_list: Sequence[Tensor], op: str = ReduceOp.SUM, group: Any = None) -> Tensor:
    """The sum over all ranks of the tensors at this rank's index; `output` gives its shape and dtype."""
    share = _check_linear("reduce_scatter", op, group)

    def scatter(*xs: Tensor) -> Tensor:
        y = xs[get_rank(group)].new_empty(xs[get_rank(group)].shape)
        collectives.reduce_scatter(y, [x.contiguous() for x in xs], op, group)
        return y

    return _Linear.apply(scatter, lambda dy: tuple(map(share, all_gather(dy, group))), *input_list)


def all_to_all(
    output_tensor_list: Sequence[Tensor], input_tensor_list: Sequence[Tensor], group: Any = None
) -> tuple[Tensor, ...]:
    """The tensor that each rank has for this one; the list of outputs gives their shapes and dtypes."""
    return _exchanged([tuple(t.shape) for t in output_tensor_list], input_tensor_list, group)


def _exchanged(shapes: list[tuple[int, ...]], xs: Sequence[Tensor], group: Any) -> tuple[Tensor, ...]:
    given = [tuple(x.shape) for x in xs]

    def exchange(*xs: Tensor) -> tuple[Tensor, ...]:
        found = tuple(xs[0].new_empty(shape) for shape in shapes)
        collectives.all_to_all(found, [x.contiguous() for x in xs], group)
        return found

    return _Linear.apply(exchange, lambda *dys: _exchanged(given, dys, group), *xs)


def all_to_all_single(
    output: Tensor, input: Tensor, output_split_sizes: Sequence[int] | None = None,
    input_split_sizes: Sequence[int] | None = None, group: Any = None,
) -> Tensor:  # fmt: skip
    """A slice of the input to each rank, and one from each; `output` gives the shape and dtype."""
    return _exchanged_slices(tuple(output.shape), input, (output_split_sizes, input_split_sizes), group)


def _exchanged_slices(shape: tuple[int, ...], x: Tensor, splits: tuple[Any, Any], group: Any) -> Tensor:
    given = tuple(x.shape)

    def exchange(x: Tensor) -> Tensor:
        y = x.new_empty(shape)
        collectives.all_to_all_single(y, x.contiguous(), *splits, group)
        return y

    return _Linear.apply(exchange, lambda dy: _exchanged_slices(given, dy, splits[::-1], group), x)


class _Linear(Function):
    """A linear collective and its transpose, another collective."""

    @staticmethod
    def forward(ctx: Any, there: Callable[..., Any], back: Callable[..., Any], *xs: Tensor) -> Any:
        ctx.back = back
        return there(*xs)

    @staticmethod
    def backward(ctx: Any, *dys: Tensor) -> Any:
        found = ctx.back(*dys)
        return None, None, *(found if isinstance(found, tuple) else (found,))


def _copied(collective: Callable[..., Any], args: tuple[Any, ...], back: Callable[[Tensor], Tensor], x: Tensor) -> Any:
    """A collective that overwrites its tensor, run on a copy."""

    def there(x: Tensor) -> Tensor:
        y = x.contiguous().clone()
        collective(y, *args)
        return y

    return _Linear.apply(there, back, x)


def _check_linear(what: str, op: str, group: Any = None) -> Callable[[Tensor], Tensor]:
    """Refuse other reductions than sums and means; returns a rank's share of the result's gradient."""
    if op not in (ReduceOp.SUM, ReduceOp.AVG):
        raise ArgumentError(f"{what}(): only sums and means have gradients; for {op!r} call flow.distributed.{what}")
    return (lambda g: g / get_world_size(group)) if op == ReduceOp.AVG else (lambda g: g)
