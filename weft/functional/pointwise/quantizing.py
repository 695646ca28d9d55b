"""Fake quantization, for quantization-aware training."""

from __future__ import annotations

from typing import Any

from weft.api.table import public
from weft.ops import ops
from weft.ops.shape.views import dim_of
from weft.tensor.tensor import Tensor


@public("flow")
def fake_quantize_per_tensor_affine(
    input: Tensor, scale: Any, zero_point: Any, quant_min: int, quant_max: int
) -> Tensor:
    """The input rounded to a multiple of `scale` and clamped to these bounds. The gradient ignores the rounding, and is
    zero beyond the bounds.

    >>> flow.fake_quantize_per_tensor_affine(flow.tensor([0.6, -9.0]), 0.25, 0, -8, 7).tolist()
    [0.5, -2.0]
    """
    steps = ops.round(input.detach() * (1.0 / scale) + zero_point)
    inside = ops.logical_and(steps >= quant_min, steps <= quant_max)
    known = (ops.clamp(steps, float(quant_min), float(quant_max)) - zero_point) * scale
    through = ops.where(inside, input, 0.0)
    return ops.cast(known, input.dtype) + (through - through.detach())


@public("flow")
def fake_quantize_per_channel_affine(
    input: Tensor, scale: Tensor, zero_point: Tensor, axis: int, quant_min: int, quant_max: int
) -> Tensor:
    """`fake_quantize_per_tensor_affine` with a scale and a zero point for every channel along an axis."""
    along = [-1 if d == dim_of(axis, input.ndim) else 1 for d in range(input.ndim)]
    steps, zero = (ops.reshape(t, tuple(along)) for t in (scale, zero_point))
    return fake_quantize_per_tensor_affine(input, steps, zero, quant_min, quant_max)
