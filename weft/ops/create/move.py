"""Copies to elsewhere: another device, memory laid out afresh."""

from __future__ import annotations

import functools

import torch
from torch import Tensor

from weft.core.device import Device
from weft.ops.declaration import op


@op("... -> ...", linear="x")
def to_device(x: Tensor, device: Device, source: Device, wait: bool = True) -> Tensor:
    """x on another device; `source` is where it comes from, and where its gradient goes. Without `wait`, page-locked
    memory may still be read when the call returns.

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
    """The queue of a device for copies from and to the host. Kernels have another, so that both go on at once."""
    return torch.cuda.Stream(device)


def _to_cuda(x: Tensor, device: torch.device, wait: bool) -> Tensor:
    """Kernels that are queued already don't hold it up; those that come later wait for it."""
    copies, kernels = _copies(device), torch.cuda.current_stream(device)
    with torch.cuda.stream(copies):
        y = x.to(device, non_blocking=True)  # pageable memory has been read when this returns
    y.record_stream(kernels)  # its memory, of the queue of copies, is not given away before they are done with it
    kernels.wait_stream(copies)
    if wait and x.is_pinned():
        copies.synchronize()  # the caller may write x at once
    return y


def _from_cuda(x: Tensor) -> Tensor:
    """Once the kernels that make x are done; those that are queued later don't hold it up."""
    copies = _copies(x.device)
    copies.wait_stream(torch.cuda.current_stream(x.device))
    with torch.cuda.stream(copies):
        return x.to("cpu")


@to_device.grad
def _(dy, device, source):
    return to_device(dy, source, device, True)


@to_device.samples
def _(rand):
    yield rand(4, 6), Device("cpu"), Device("cpu")


@op("... -> ...", linear="x")
def contiguous(x: Tensor) -> Tensor:
    """A copy of x whose elements lie in order; the public `x.contiguous()` gives x itself where they do already.

    >>> flow._C.contiguous(flow.ones(2, 3).t()).is_contiguous()
    True
    """
    return x.clone(memory_format=torch.contiguous_format)


@contiguous.out
def _(y, x):
    y.copy_(x)


@contiguous.grad
def _(dy):
    return dy


@contiguous.samples
def _(rand):
    yield (rand(4, 6),)
