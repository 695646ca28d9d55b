"""Torch's kernels by the fastest Python call.

`torch.ops.aten` resolves the overload at every call; functions that torch binds for its own modules don't.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

FORMATS = {4: torch.channels_last, 5: torch.channels_last_3d}
_BOUND = [getattr(torch._C, name) for name in ("_nn", "_VariableFunctions")]


class Kernels:
    """`aten.silu(x)`, by the fastest binding. Unbound overloads (`aten.silu_backward.grad_input`) come from
    torch.ops."""

    def __getattr__(self, name: str) -> Any:
        found = next((getattr(space, name) for space in _BOUND if hasattr(space, name)), None)
        kernel = getattr(torch.ops.aten, name) if found is None else found
        setattr(self, name, kernel)
        return kernel


aten = Kernels()


def is_channels_last(x: torch.Tensor) -> bool:
    """Whether torch's kernels take a tensor, or a slice, for one with channels innermost."""
    if x.dim() not in FORMATS or not x.numel():
        return False
    least, first = 1, x.stride(1)
    for d in (1, *range(x.dim() - 1, 1, -1)):
        if x.stride(d) < least:
            return False
        least = x.stride(d) * x.shape[d]
    return x.stride(0) >= least != first  # alike where all but the batch is one element


def format_of(x: torch.Tensor) -> torch.memory_format:
    """The memory format in which a tensor lies."""
    return FORMATS[x.dim()] if is_channels_last(x) else torch.contiguous_format


def formatted_as(y: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """y in the memory format in which x lies."""
    kept = format_of(x)
    return y if format_of(y) is kept else y.clone(memory_format=kept)


def memory_format(x: torch.Tensor) -> torch.memory_format:
    """In which order torch's kernels for CPUs lay out their results on a tensor with channels."""
    return format_of(x) if x.is_cpu else torch.contiguous_format


def blank(like: torch.Tensor, shape: Sequence[int], channels_last: bool) -> torch.Tensor:
    """What stands for an operand of which a kernel reads the form alone."""
    order = FORMATS[len(shape)] if channels_last else torch.contiguous_format
    return torch.empty(tuple(shape), dtype=like.dtype, device=like.device, memory_format=order)
