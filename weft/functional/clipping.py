"""Clipping gradients by their common norm, or by value. Local or global, one op per group of the same layout."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from weft.autograd import in_place, no_grad
from weft.core import dtype as dtypes
from weft.core.dispatch import here
from weft.core.errors import OptionError, TraceError
from weft.core.sbp import broadcast
from weft.ops import OPS
from weft.tensor.tensor import Tensor

INFINITY = float("inf")


def grads_of(parameters: Tensor | Iterable[Tensor]) -> list[Tensor]:
    if here.trace is not None:
        raise TraceError(
            "clipping .grad inside of build(): gradients are the graph's own there. Let the optimizer's groups ask for "
            'it: SGD([{"params": params, "clip_grad_max_norm": 1.0, "clip_grad_norm_type": 2.0}])'
        )
    given = [parameters] if isinstance(parameters, Tensor) else parameters
    return [p.grad for p in given if p.grad is not None]


def groups_of(tensors: list[Tensor]) -> list[list[Tensor]]:
    """Tensors that one op can take together."""
    groups: dict[Any, list[Tensor]] = {}
    for t in tensors:
        key = (t.placement, t.sbp, t.dtype) if t.is_global else (t.device, t.dtype)
        groups.setdefault(key, []).append(t)
    return list(groups.values())


def total_norm(tensors: list[Tensor], norm_type: float = 2.0, error_if_nonfinite: bool = False) -> Tensor:
    """The norm of all elements together: 0-d, and whole on every rank of a global tensor's placement."""
    if not norm_type > 0:
        raise OptionError(f"norm_type must be above 0, or inf for the largest element; got {norm_type}")
    if not tensors:
        return OPS["full"]((), 0.0, dtypes.float32)
    largest = norm_type == INFINITY
    total: Any = None
    first = tensors[0]
    for group in groups_of(tensors):
        part = OPS["greatest"](group) if largest else OPS["power_sum"](group, float(norm_type))
        if part.is_global:
            part = OPS["to_global"](part, first.placement, (broadcast,) * first.placement.ndim)
        elif part.device is not first.device:
            part = part.to(first.device)  # type: ignore[attr-defined]  # bound from the registry
        if part.dtype is not first.dtype:
            part = OPS["cast"](part, first.dtype)
        total = part if total is None else OPS["maximum" if largest else "add"](total, part)
    norm = total if largest else OPS["pow"](total, 1.0 / norm_type)
    if error_if_nonfinite and not norm._whole("norm").isfinite():
        raise OptionError(
            f"the total norm of order {norm_type} for gradients from `parameters` is non-finite, so it cannot be "
            "clipped; look for the first layer whose gradient is nan or inf, or pass error_if_nonfinite=False"
        )
    return norm


def clip_grad_norm(
    parameters: Tensor | Iterable[Tensor], max_norm: float, norm_type: float = 2.0, error_if_nonfinite: bool = False
) -> Tensor:
    """Scale all gradients, in place, so that their common norm is at most `max_norm`. Gives the norm before."""
    grads = grads_of(parameters)
    with no_grad():
        norm = total_norm(grads, float(norm_type), error_if_nonfinite)
        if grads:
            factor = _factor(norm, max_norm)
            for group in groups_of(grads):
                OPS["scale_all"](group, _beside(factor, group[0]))
        return norm


def clipped(grads: list[Tensor], max_norm: float, norm_type: float = 2.0) -> list[Tensor]:
    """The gradients, scaled so that their common norm is at most `max_norm`."""
    if not grads:
        return []
    factor = _factor(total_norm(grads, float(norm_type)), max_norm)
    return [OPS["mul"](g, _beside(factor, g)) for g in grads]


def _factor(norm: Tensor, max_norm: float) -> Tensor:
    return OPS["clamp"](OPS["div"](float(max_norm), OPS["add"](norm, 1e-6)), None, 1.0)


def clip_grad_value(parameters: Tensor | Iterable[Tensor], clip_value: float) -> None:
    """Clamp every element of every gradient, in place, to [-clip_value, clip_value]."""
    with no_grad():
        for g in grads_of(parameters):
            in_place(OPS["clamp"], (g, -float(clip_value), float(clip_value)))


def _beside(factor: Tensor, t: Tensor) -> Tensor:
    """The factor where the tensor lies."""
    if t.is_global:
        return OPS["to_global"](factor, t.placement, (broadcast,) * t.placement.ndim)
    return factor if factor.device is t.device else factor.to(t.device)  # type: ignore[attr-defined]
