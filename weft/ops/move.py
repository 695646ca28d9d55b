"""Copies to elsewhere: another device, memory laid out afresh."""

from __future__ import annotations

import torch
from torch import Tensor

from weft.core.device import Device
from weft.ops.declaration import op


@op("... -> ...", linear="x")
def to_device(x: Tensor, device: Device, source: Device) -> Tensor:
    """x on another device; `source` is where it comes from, and where its gradient goes.

    >>> flow._C.to_device(flow.ones(2), flow.device("cpu"), flow.device("cpu")).device
    device(type='cpu', index=0)
    """
    return x.to(device.torch)


@to_device.grad
def _(dy, device, source):
    return to_device(dy, source, device)


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
