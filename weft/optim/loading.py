"""Loading of optimizer states to their parameters' device or layout."""

from __future__ import annotations

from typing import Any

import torch

from weft.core.device import Device
from weft.core.errors import CheckpointError
from weft.core.sbp import broadcast
from weft.core.spec import Spec
from weft.functional.tensor.conversion import counted_as
from weft.functional.tensor.memory_format import formatted
from weft.ops import ops
from weft.ops.kernels import format_of
from weft.tensor.data import local_data
from weft.tensor.tensor import Tensor, of_torch


def placed_state(what: str, value: Any, p: Tensor, placed: dict[Any, Tensor], named: bool) -> Any:
    """A copy of a saved state on its parameter's device or layout, with its shape if it is `named` (one that an op
    writes). Parameters of one layout that shared a step share its copy."""
    home = layout(p)
    key = id(value), home and home.placement
    if isinstance(value, torch.Tensor):
        value = of_torch(value)
    if isinstance(value, (list, tuple)):
        return type(value)([placed_state(what, v, p, placed, False) for v in value])
    if not isinstance(value, Tensor):
        return value
    known = placed.get(key)
    if known is not None:
        return known
    alike = _logical(value) == _logical(p)
    if value.ndim and not alike and named:
        raise CheckpointError(
            f"{what} has shape {list(_logical(value))}, but its parameter has {list(_logical(p))}; the order or the "
            "shapes of the parameters changed since it was saved"
        )
    if named and not value.ndim and value.is_local and not value.dtype.is_complex:  # one number for all, as torch has
        value, alike = filled_like(p, value.item()), True
    copy = ops.clone(value.detach())
    copy.part_of = value.part_of
    if not has_layout_of(copy, p):
        if copy.is_local:
            copy = ops.from_local(copy, *counted_as(copy, home.placement), None)  # type: ignore[union-attr]
        where = copy.placement if home is None else home.placement
        flat = (broadcast,) * where.ndim
        copy = ops.to_global(copy, where, home.nd_sbp if alike and home is not None else flat)
        copy = copy if p.is_global else ops.to_local(copy)
    if copy.is_local and copy.device is not p.device:
        copy = of_torch(local_data(copy, what).to(Device(p.device).torch))
    if copy.ndim and copy.dtype.differentiable and copy.dtype is not p.dtype:
        copy = ops.cast(copy, p.dtype)
    if alike:
        copy = formatted(copy, format_of(p._meta))
    if copy.is_local and alike:
        copy.part_of = p.part_of
    placed[key] = copy
    return copy


def filled_like(p: Tensor, value: float) -> Tensor:
    """A constant state with its parameter's layout, also along dimensions of size one; complex numbers are pairs."""
    made = ops.full_like(p.detach(), complex(value, value) if p.dtype.is_complex else float(value), None)
    made = made if p.is_local else ops.to_global(made, p.placement, p.sbp)
    made.part_of = p.part_of
    return made


def layout(t: Tensor) -> Spec | None:
    """The spec of a global tensor, or of the global tensor that a local one is a shard of."""
    return t.spec or t.part_of


def has_layout_of(value: Tensor, p: Tensor) -> bool:
    """Whether a state has its parameter's layout, or is whole."""
    if value.is_local is not p.is_local:
        return False
    own, home = layout(value), layout(p)
    if own is None or home is None:
        return value.is_local
    alike = own.shape == home.shape
    return own.placement is home.placement and (not alike or own.nd_sbp == home.nd_sbp)


def _logical(t: Tensor) -> tuple[int, ...]:
    spec = layout(t)
    return tuple(t.shape) if spec is None else spec.shape
