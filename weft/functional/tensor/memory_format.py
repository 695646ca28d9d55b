"""Memory formats: `channels_last` lays out images with their channels innermost, which kernels of convolutions and
norms read faster."""

from __future__ import annotations

from typing import Any

import torch

from weft.api.table import public
from weft.autograd.freshness import fresh, is_contiguous
from weft.core.dispatch import here
from weft.core.errors import ArgumentError, ShapeError
from weft.ops.create import move
from weft.ops.kernels import FORMATS, is_channels_last
from weft.tensor.tensor import Tensor, of_value, still_part


@public("flow tensor")
def contiguous(x: Tensor, memory_format: Any = None) -> Tensor:
    """x, or a contiguous copy of it: in the order of its dimensions, or with `channels_last` in that of NHWC."""
    if asks_channels_last(x, memory_format):
        return x if fresh(x).is_contiguous(memory_format) else still_part(move.contiguous(x, True), x)
    if x.value is not None and here.trace is not None and x.spec is None:
        here.trace.order.settled(fresh(x).value)
    if is_contiguous(x):
        return x
    if x.value is None:
        return still_part(move.contiguous(x), x)
    alone = of_value(fresh(x).value, x.spec)  # a symbol is never overwritten, so it needs no copy
    alone.node, alone._requires_grad = x.node, x._requires_grad
    return alone


def formatted(x: Tensor, memory_format: Any, loosely: bool = False) -> Tensor:
    """x in a memory format, or as it lies where that is None or `preserve_format`. Strides of one channel or pixel fit
    several formats; a copy has those by which kernels know this one. `loosely`, as `to` does, what has its channels
    innermost is in that format, and all else in the other, with whatever strides."""
    check(memory_format)
    if memory_format in (None, torch.preserve_format):
        return x
    wanted = asks_channels_last(x, memory_format)
    if wanted == is_channels_last(fresh(x)._meta):
        return x if loosely else contiguous(x, memory_format)
    return still_part(move.contiguous(x, wanted), x)


def check(memory_format: Any) -> None:
    if not isinstance(memory_format, (torch.memory_format, type(None))):
        kind = type(memory_format).__name__
        raise ArgumentError(f"argument 'memory_format' must be torch.memory_format, not {kind}")


def asks_channels_last(x: Tensor, memory_format: Any) -> bool:
    """Whether a format has x's channels innermost."""
    check(memory_format)
    rank = next((n for n, kept in FORMATS.items() if kept is memory_format), None)
    if rank not in (None, len(x.shape)):
        name = str(memory_format).rpartition(".")[2]
        raise ShapeError(f"required rank {rank} tensor to use {name} format; got shape {list(x.shape)}")
    return rank is not None
