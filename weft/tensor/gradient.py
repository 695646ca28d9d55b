"""Validation of what is assigned to `.grad`: it must be like its tensor. Messages contain torch's phrases."""

from __future__ import annotations

from typing import Any

import torch

from weft.core.dispatch import hooks
from weft.core.errors import ArgumentError, AutogradError, DeviceError, DtypeError, PlacementError, SbpError, ShapeError
from weft.tensor.described import Described


def check_kind(everywhere: bool, given: Described, what: str) -> None:
    """Raise unless the gradient is global as its tensor is, or local as that is; `what` starts the message."""
    if given.is_global is not everywhere:
        kinds = "local, and the gradient is global: g.to_local()"
        if everywhere:
            kinds = "global, and the gradient is local: g.to_global(placement=x.placement, sbp=x.sbp)"
        raise SbpError(f"{what}: the tensor is {kinds}")


def check_gradient(t: Described, given: Any) -> Any:
    """The gradient. A global one may have another sbp than its tensor: optimizers convert it."""
    if not isinstance(given, Described):
        if not isinstance(given, torch.Tensor):
            raise ArgumentError(
                f"assigned grad expected to be a Tensor or None but got grad of type {type(given).__name__}; "
                "make a tensor of it: flow.full_like(p, number), flow.tensor(values)"
            )
        given = hooks.taken(given)
    if given is t:
        raise AutogradError("can't assign Variable as its own grad: assign p.detach().clone()")
    check_kind(t.is_global, given, "assigned grad has data of a different type")
    if given.shape != t.shape:
        raise ShapeError(
            f"attempting to assign a gradient of size '{list(given.shape)}' to a tensor of size '{list(t.shape)}'. "
            "Please ensure that the gradient and the tensor are the same size"
        )
    if given.dtype is not t.dtype:
        raise DtypeError(
            f"assigned grad has data of a different type: attempting to assign a gradient with dtype '{given.dtype}' "
            f"to a tensor of '{t.dtype}'; p.grad = g.to(p.dtype)"
        )
    if t.is_local:
        if given.device != t.device:
            raise DeviceError(
                f"attempting to assign a gradient with device type '{given.device}' to a tensor with device type "
                f"'{t.device}'. Please ensure that the gradient and the tensor are on the same device: "
                "p.grad = g.to(p.device)"
            )
    elif given.placement != t.placement:
        raise PlacementError(
            f"assigned grad has data of a different type: it lies on {given.placement}, the tensor on {t.placement}; "
            "p.grad = g.to_global(placement=p.placement, sbp=p.sbp)"
        )
    return given
