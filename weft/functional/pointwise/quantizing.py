"""Fake quantization, for quantization-aware training."""

from __future__ import annotations

from typing import Any

from weft.api.table import public
from weft.autograd import no_grad
from weft.autograd.overwrite import assign
from weft.core.dtype import float32, float64
from weft.ops import ops
from weft.ops.shape.views import dim_of
from weft.tensor.tensor import Tensor

LEAST_SCALE = 6.1e-5  # as in torch: the inverse of a smaller one has too few digits


@public("flow")
def fake_quantize_per_tensor_affine(
    input: Tensor, scale: Any, zero_point: Any, quant_min: int, quant_max: int
) -> Tensor:
    """The input rounded to a multiple of `scale` and clamped to these bounds. The gradient ignores the rounding, and is
    zero beyond the bounds.

    >>> flow.fake_quantize_per_tensor_affine(flow.tensor([0.6, -9.0]), 0.25, 0, -8, 7).tolist()
    [0.5, -2.0]
    """
    if isinstance(zero_point, Tensor):
        zero_point = ops.trunc(zero_point) if zero_point.dtype.is_floating_point else zero_point
    steps = ops.round(input.detach() * (1.0 / scale)) + zero_point
    return _quantized(input, scale, steps, zero_point, quant_min, quant_max)


def _quantized(input: Tensor, scale: Any, steps: Any, zero_point: Any, quant_min: int, quant_max: int) -> Tensor:
    inside = ops.logical_and(steps >= quant_min, steps <= quant_max)
    known = (ops.clamp(steps, float(quant_min), float(quant_max)) - zero_point) * scale
    through = ops.where(inside, input, 0.0)
    return ops.cast(known, input.dtype) + (through - through.detach())


@public("flow")
def fake_quantize_per_channel_affine(
    input: Tensor, scale: Tensor, zero_point: Tensor, axis: int, quant_min: int, quant_max: int
) -> Tensor:
    """`fake_quantize_per_tensor_affine` with a scale and a zero point for every channel along an axis; of a zero point
    that isn't a whole number, the sum is rounded.
    """
    scale, zero = (_along(axis, t, input) for t in (scale, zero_point))
    steps: Any = input.detach() * (1.0 / scale)
    steps = ops.round(steps + zero) if zero.dtype.is_floating_point else ops.round(steps) + zero
    return _quantized(input, scale, steps, zero, quant_min, quant_max)


def _along(axis: int, each: Tensor, x: Tensor) -> Any:
    """One number for each channel, to compute with x."""
    d = dim_of(axis, x.ndim)
    return ops.reshape(each, (x.shape[d], *(1,) * (x.ndim - d - 1)))


@public("flow", "_fake_quantize_learnable_per_tensor_affine")
def fake_quantize_learnable(
    input: Tensor, scale: Any, zero_point: Any, quant_min: int, quant_max: int, grad_factor: float = 1.0
) -> Tensor:
    """`fake_quantize_per_tensor_affine` whose scale and zero point have gradients, times `grad_factor`: those of
    (q - zero_point) * scale, where q ignores the rounding.
    """
    scale, zero_point = (_unlike(t * grad_factor, t) for t in (scale, zero_point))
    zero = _unlike(zero_point, ops.clamp(ops.round(zero_point), float(quant_min), float(quant_max)))
    steps: Any = input / scale
    q = ops.clamp(_unlike(steps, ops.round(steps)) + zero, float(quant_min), float(quant_max))
    return (q - zero) * scale


def _unlike(x: Any, value: Any) -> Any:
    """The value, with x's gradient."""
    return x + (value - x).detach()


@public("flow", "_fake_quantize_learnable_per_channel_affine")
def fake_quantize_learnable_per_channel(
    input: Tensor, scale: Tensor, zero_point: Tensor, axis: int, quant_min: int, quant_max: int,
    grad_factor: float = 1.0,
) -> Tensor:  # fmt: skip
    """The same with a scale and a zero point for every channel along an axis."""
    steps, zero = (_along(axis, t, input) for t in (scale, zero_point))
    return fake_quantize_learnable(input, steps, zero, quant_min, quant_max, grad_factor)


@public("flow")
def fused_moving_avg_obs_fake_quant(
    input: Tensor, observer_on: Tensor, fake_quant_on: Tensor, running_min: Tensor, running_max: Tensor, scale: Tensor,
    zero_point: Tensor, averaging_const: float, quant_min: int, quant_max: int, ch_axis: int = -1,
    per_row_fake_quant: bool = False, symmetric_quant: bool = False,
) -> Tensor:  # fmt: skip
    """The input, fake-quantized by the running extremes. The observer moves these towards the input's, by
    `averaging_const`; scale and zero point are written, too. With `per_row_fake_quant`, each channel has its own.

    >>> flags, low, high = flow.ones(1), flow.tensor(float("inf")), flow.tensor(float("-inf"))
    >>> scale, zero = flow.ones(1), flow.zeros(1, dtype=flow.int32)
    >>> x = flow.tensor([0.6, -9.0, 6.0])
    >>> flow.fused_moving_avg_obs_fake_quant(x, flags, flags, low, high, scale, zero, 0.01, -8, 7).tolist()
    [1.0, -9.0, 6.0]
    """
    with no_grad():
        if per_row_fake_quant and not running_min.numel():  # observers begin without a size
            first = {running_min: float("inf"), running_max: float("-inf"), scale: 1.0, zero_point: 0}
            for t, value in first.items():
                t.data = ops.full_like(t.new_empty(input.shape[ch_axis]), value, None)
        if observer_on.item():
            others = [d for d in range(input.ndim) if not per_row_fake_quant or d != ch_axis % input.ndim]
            for running, reduce in ((running_min, ops.amin), (running_max, ops.amax)):
                now: Any = ops.reshape(reduce(input.detach(), others), tuple(running.shape))
                assign(running, ops.where(ops.isinf(running), now, running + (now - running) * averaging_const))
        if not fake_quant_on.item():
            return ops.clone(input)
        made = _scale_and_zero(running_min, running_max, quant_min, quant_max, symmetric_quant)
        for t, new in zip((scale, zero_point), made, strict=True):
            assign(t, ops.reshape(ops.cast(new, t.dtype), tuple(t.shape)))
    if per_row_fake_quant:
        return fake_quantize_per_channel_affine(input, scale, zero_point, ch_axis, quant_min, quant_max)
    return fake_quantize_per_tensor_affine(input, scale, zero_point, quant_min, quant_max)


def _scale_and_zero(low: Any, high: Any, quant_min: int, quant_max: int, symmetric: bool) -> tuple[Tensor, Tensor]:
    """What maps the integers to values between low and high, one of them to zero exactly."""
    span, both = quant_max - quant_min, ops.logical_and(low < 0, high > 0)
    if symmetric:
        half = span // 2
        unit = ops.maximum(ops.abs(low / (half + 1)), ops.abs(high / half))
        low, high = ops.where(both, unit * -(half + 1), low), ops.where(both, unit * half, high)
    low, high = (ops.cast(ops.clamp(t, *bounds), float64) for t, bounds in ((low, (None, 0.0)), (high, (0.0, None))))
    scale = (high - low) / span
    scale = ops.where(ops.isinf(1.0 / ops.cast(scale, float32)), 0.1, scale)
    below, above = low / scale, high / scale
    nearer = abs(quant_min) - ops.abs(below) < abs(quant_max) - ops.abs(above)
    zero = ops.where(nearer, quant_min - below, quant_max - above)
    if symmetric:
        zero = ops.where(both, (quant_min + quant_max) / 2, zero)
    return ops.clamp(scale, LEAST_SCALE), ops.clamp(ops.round(zero), float(quant_min), float(quant_max))
