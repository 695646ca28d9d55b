"""Gradient clipping by norm or by value. Local or global, with one op per group of the same layout."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from weft.autograd import no_grad
from weft.autograd.overwrite import overwriting
from weft.core import dtype as dtypes
from weft.core.dispatch import here
from weft.core.errors import ArgumentError, OptionError, TraceError
from weft.core.sbp import broadcast
from weft.functional.linalg import norms as _norms
from weft.ops import OPS, ops
from weft.tensor.data import whole_data
from weft.tensor.sparse import is_dense, numbers
from weft.tensor.tensor import Tensor, of_torch

INFINITY = float("inf")
_mul_, _clamp_ = overwriting(OPS["mul"]), overwriting(OPS["clamp"])


def grads_of(parameters: Tensor | Iterable[Tensor]) -> list[Tensor]:
    if here.trace is not None and here.trace.job.micro_batches > 1:
        raise TraceError(
            "clipping .grad inside of build(), where it is the gradient of one micro-batch. Let the optimizer's groups "
            "ask for it, which clip what they update by: "
            'SGD([{"params": params, "clip_grad_max_norm": 1.0, "clip_grad_norm_type": 2.0}])'
        )
    given = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    if not all(isinstance(p, Tensor) for p in given):
        raise ArgumentError("clipping the gradients of torch's parameters: torch.nn.utils clips those")
    return [p.grad for p in given if p.grad is not None]


def groups_of(tensors: list[Tensor]) -> list[list[Tensor]]:
    """Tensors grouped by what one op can take together; of sparse ones, the numbers that they hold."""
    groups: dict[Any, list[Tensor]] = {}
    for t in [t if is_dense(t) else of_torch(numbers(t)) for t in tensors]:
        key = (t.placement, t.sbp, t.dtype) if t.is_global else (t.device, t.dtype)
        groups.setdefault(key, []).append(t)
    return list(groups.values())


def total_norm(
    tensors: Iterable[Tensor], norm_type: float = 2.0, error_if_nonfinite: bool = False, foreach: bool | None = None
) -> Tensor:
    """The norm of all elements: 0-d, and broadcast on a global tensor's placement."""
    tensors = [tensors] if isinstance(tensors, Tensor) else list(tensors)
    if not tensors:
        return ops.full((), 0.0, dtypes.float32)
    norm = _norm_of_norms(tensors, norm_type) if norm_type <= 0 else _norm_of_all(tensors, norm_type)
    if error_if_nonfinite and not whole_data(norm, "norm").isfinite():
        raise OptionError(
            f"the total norm of order {norm_type} for gradients from `parameters` is non-finite, so it cannot be "
            "clipped; look for the first layer whose gradient is nan or inf, or pass error_if_nonfinite=False"
        )
    return norm


def _norm_of_all(tensors: list[Tensor], order: float) -> Tensor:
    largest = order == INFINITY
    total: Any = None
    for group in groups_of(tensors):
        part = _like(ops.greatest(group) if largest else ops.power_sum(group, float(order)), tensors[0])
        total = part if total is None else OPS["maximum" if largest else "add"](total, part)
    return total if largest else ops.pow(total, 1.0 / order)


def _norm_of_norms(tensors: list[Tensor], order: float) -> Tensor:
    """For orders of zero or below: by the norms of the tensors."""
    norms = [_like(_norms.vector_norm(t, order), tensors[0]) for t in tensors]
    return _norms.vector_norm(ops.cat([ops.reshape(n, (1,)) for n in norms], 0), order)


def _like(part: Any, first: Tensor) -> Tensor:
    """A 0-d tensor moved to another's device or layout, with its dtype."""
    if part.is_global:
        part = ops.to_global(part, first.placement, (broadcast,) * first.placement.ndim)
    elif part.device is not first.device:
        part = part.to(first.device)
    return part if part.dtype is first.dtype else ops.cast(part, first.dtype)


def clip_grad_norm(
    parameters: Tensor | Iterable[Tensor], max_norm: float, norm_type: float = 2.0, error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:  # fmt: skip
    """Scale all gradients, in place, so that their total norm is at most `max_norm`. Returns the norm before."""
    grads = grads_of(parameters)
    with no_grad():
        norm = total_norm(grads, float(norm_type), error_if_nonfinite)
        _scale(grads, max_norm, norm)
        return norm


def clip_grads_with_norm(
    parameters: Tensor | Iterable[Tensor], max_norm: float, total_norm: Tensor, foreach: bool | None = None
) -> None:
    """Scale all gradients, in place, as their total norm, computed before, asks for: to at most `max_norm`."""
    with no_grad():
        _scale(grads_of(parameters), max_norm, total_norm)


def _scale(grads: list[Tensor], max_norm: float, norm: Tensor) -> None:
    if not grads:
        return
    factor = _factor(norm, max_norm)
    for group in groups_of(grads):
        if here.trace is None:
            ops.scale_all(group, _on_device_of(factor, group[0]))
            continue
        for g in group:
            _mul_(g, _on_device_of(factor, g))


def clipped(grads: list[Tensor], max_norm: float, norm_type: float = 2.0) -> list[Tensor]:
    """The gradients, scaled so that their total norm is at most `max_norm`."""
    if not grads:
        return []
    factor = _factor(total_norm(grads, float(norm_type)), max_norm)
    return [ops.mul(g, _on_device_of(factor, g)) for g in grads]


def _factor(norm: Tensor, max_norm: float) -> Tensor:
    return ops.clamp(ops.div(float(max_norm), ops.add(norm, 1e-6)), None, 1.0)


def clip_grad_value(parameters: Tensor | Iterable[Tensor], clip_value: float, foreach: bool | None = None) -> None:
    """Clamp every element of every gradient, in place, to [-clip_value, clip_value]."""
    with no_grad():
        for group in groups_of(grads_of(parameters)):
            for g in group:
                _clamp_(g, -float(clip_value), float(clip_value))


def _on_device_of(factor: Tensor, t: Tensor) -> Tensor:
    """The factor on the tensor's device or layout. A local one is alike on all ranks, as `full_tensor()` gives it."""
    if t.is_global:
        alike = (broadcast,) * t.placement.ndim
        if factor.is_local:
            return ops.from_local(factor, t.placement, alike, tuple(factor.shape))
        return ops.to_global(factor, t.placement, alike)
    return factor if factor.device is t.device else factor.to(t.device)
