"""Copies to another device or memory layout."""

from __future__ import annotations

import functools

import torch
from torch import Tensor

from weft.core.device import Device
from weft.ops.declaration import op
from weft.ops.kernels import FORMATS


@op("... -> ...", linear="x")
def to_device(x: Tensor, device: Device, source: Device, wait: bool = True) -> Tensor:
    """x on another device; `source` is its device, for the gradient. Without `wait`, pinned memory may still be read
    after the call returns.

    >>> flow._C.to_device(flow.ones(2), flow.device("cpu"), flow.device("cpu")).device
    device(type='cpu', index=0)
    """
    if device.type == "cuda" and x.device.type == "cpu":
        return _to_cuda(x, device.torch, wait)
    if device.type == "cpu" and x.device.type == "cuda":
        return _from_cuda(x)
    return x.to(device.torch)


@functools.cache
def _copies(device: torch.device) -> torch.cuda.Stream:
    """A device's stream for copies from and to the host, concurrent with the kernels' stream."""
    return torch.cuda.Stream(device)


def _to_cuda(x: Tensor, device: torch.device, wait: bool) -> Tensor:
    """Copy to the device, concurrently with queued kernels; later kernels wait for it."""
    copies, kernels = _copies(device), torch.cuda.current_stream(device)
    with torch.cuda.stream(copies):
        y = x.to(device, non_blocking=True)  # pageable memory has been read when this returns
    y.record_stream(kernels)  # its memory belongs to the copies' stream: not reused before the kernels are done
    kernels.wait_stream(copies)
    if wait and x.is_pinned():
        copies.synchronize()  # the caller may write x at once
    return y


def _from_cuda(x: Tensor) -> Tensor:
    """Copy to the host after the kernels that make x, concurrently with later ones."""
    copies = _copies(x.device)
    copies.wait_stream(torch.cuda.current_stream(x.device))
    with torch.cuda.stream(copies):
        return x.to("cpu")


@to_device.out
def _(y, x, device, source, wait=True):
    y.copy_(x)


to_device.grad(lambda dy, device, source: to_device(dy, source, device, True))
to_device.samples(lambda rand: [(rand(4, 6), Device("cpu"), Device("cpu"))])


@op("... -> ...", linear="x", memory_order="contiguous")
def contiguous(x: Tensor, channels_last: bool = False) -> Tensor:
    """A contiguous copy of x, or one with channels innermost in memory; the public `x.contiguous()` returns x itself if
    it lies so.

    >>> flow._C.contiguous(flow.ones(2, 3).t()).is_contiguous()
    True
    """
    return x.clone(memory_format=FORMATS[x.dim()] if channels_last else torch.contiguous_format)


@contiguous.out
def _(y, x, channels_last):
    y.copy_(x)


contiguous.grad(lambda dy: dy)
contiguous.samples(lambda rand: [(rand(4, 6),), (rand(2, 3, 4, 5), True)])


@op("... -> ...", linear="x", view=True, memory_order="contiguous")
def dense(x: Tensor) -> Tensor:
    """x, or a contiguous copy of it where it isn't so: a graph reads it before a view that needs its operand's strides.

    >>> flow._C.dense(flow.ones(2, 3).t()).is_contiguous()
    True
    """
    return x.contiguous()


dense.grad(lambda dy: dy)
dense.scattered(lambda base, part: part)
dense.samples(lambda rand: [(rand(4, 6),)])
