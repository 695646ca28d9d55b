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
from weft.ops.kernels import FORMATS, lie_by_channels
from weft.tensor.blob import blob_of
from weft.tensor.tensor import Tensor, of_value


@public("flow tensor")
def contiguous(x: Tensor, memory_format: Any = None) -> Tensor:
    """x, or a contiguous copy of it: in the order of its dimensions, or with `channels_last` in that of NHWC."""
    if by_channels(x, memory_format):
        data = _data(x)
        lies = data is not None and data.is_contiguous(memory_format=memory_format)
        return x if lies else still(move.contiguous(x, True), x)
    if x.value is not None and here.trace is not None and x.spec is None:
        here.trace.order.settled(fresh(x).value)
    if is_contiguous(x):
        return x
    if x.value is None:
        return still(move.contiguous(x), x)
    alone = of_value(fresh(x).value, x.spec)  # a symbol is never overwritten, so it needs no copy
    alone.node, alone._requires_grad = x.node, x._requires_grad
    return alone


def formatted(x: Tensor, memory_format: Any) -> Tensor:
    """x in a memory format, or as it lies where that is None or `preserve_format`. Strides of one channel or pixel fit
    several formats; a copy has those by which kernels know this one."""
    check(memory_format)
    if memory_format in (None, torch.preserve_format):
        return x
    wanted, data = by_channels(x, memory_format), _data(x)
    if wanted == (data is not None and lie_by_channels(data)):
        return contiguous(x, memory_format)
    return still(move.contiguous(x, wanted), x)


def check(memory_format: Any) -> None:
    if not isinstance(memory_format, (torch.memory_format, type(None))):
        kind = type(memory_format).__name__
        raise ArgumentError(f"argument 'memory_format' must be torch.memory_format, not {kind}")


def by_channels(x: Tensor, memory_format: Any) -> bool:
    """Whether a format has x's channels innermost."""
    check(memory_format)
    rank = next((n for n, kept in FORMATS.items() if kept is memory_format), None)
    if rank not in (None, len(x.shape)):
        name = str(memory_format).rpartition(".")[2]
        raise ShapeError(f"required rank {rank} tensor to use {name} format; got shape {list(x.shape)}")
    return rank is not None


def _data(x: Tensor) -> torch.Tensor | None:
    """What lies as a local tensor, or this rank's part of a global one, does in the eager program, if that is known."""
    x = fresh(x)
    if here.trace is None or x.value is None:
        return blob_of(x).data
    if x.spec is not None:
        return None
    return torch.empty_strided(x.value.shape, here.trace.order.strides(x.value), device="meta")


def still(y: Tensor, x: Tensor) -> Tensor:
    """Mark y, which has x's value, as a shard of what x is a shard of."""
    if x.part_of is not None and y.is_local and y.value is None:
        y.part_of = x.part_of
    return y
