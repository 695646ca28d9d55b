"""Saved states of optimizers, brought to where their parameters are now."""

from __future__ import annotations

from typing import Any

from weft.core.device import Device
from weft.core.errors import CheckpointError
from weft.core.sbp import broadcast
from weft.ops import OPS
from weft.tensor.tensor import Tensor, of_torch


def placed_state(what: str, value: Any, p: Tensor, placed: dict[Any, Tensor], named: bool) -> Any:
    """A copy of a saved state, where its parameter lies; it has its shape if it is `named`, one that an op writes.
    Parameters of one place that shared a step share its copy."""
    if not isinstance(value, Tensor):
        return value
    key = id(value), p.spec and p.placement
    known = placed.get(key)
    if known is not None:
        return known
    alike = tuple(value.shape) == tuple(p.shape)
    if value.ndim and not alike and named:
        raise CheckpointError(
            f"{what} has shape {list(value.shape)}, but its parameter has {list(p.shape)}; the order or the shapes of "
            "the parameters changed since it was saved"
        )
    copy = OPS["clone"](value.detach())
    if p.spec is not None:
        flat = (broadcast,) * p.placement.ndim
        if copy.spec is None:
            copy = OPS["from_local"](copy, p.placement, flat, None)
        copy = OPS["to_global"](copy, p.placement, p.sbp if alike else flat)
    elif copy.spec is None and copy.device is not p.device:
        copy = of_torch(copy._local(what).to(Device(p.device).torch))
    if copy.ndim and copy.dtype.differentiable and copy.dtype is not p.dtype:
        copy = OPS["cast"](copy, p.dtype)
    placed[key] = copy
    return copy
