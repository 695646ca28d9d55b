"""Quantization: observers of scale and zero point, and fake quantization for training.

"symmetric" uses integers from -(2^(bits-1) - 1) to 2^(bits-1) - 1, "affine" from 0 to 2^bits - 1. The formula
"cambricon" is symmetric with powers of two: its scale is the exponent.
"""

from __future__ import annotations

from typing import Any

from weft.api.table import public
from weft.autograd import Function, no_grad
from weft.autograd.overwrite import assign
from weft.core.errors import OptionError
from weft.ops import ops


def checked(formula: str, bits: int, scheme: str) -> tuple[str, int, str]:
    if formula not in ("google", "cambricon") or scheme not in ("symmetric", "affine") or not 2 <= bits <= 8:
        raise OptionError(
            'quantization: the formula is "google" or "cambricon", the scheme "symmetric" or "affine", bits from 2 to '
            f"8; got {formula!r}, {scheme!r} and {bits}"
        )
    return formula, bits, scheme


def _scale(low: Any, high: Any, formula: str, bits: int, scheme: str) -> tuple[Any, Any]:
    """Scale and zero point for values between low and high; for symmetric ones, high is the largest absolute value."""
    if formula == "cambricon":
        exponent = ops.floor(ops.log2(high)) - (bits - 2)
        return exponent, ops.zeros_like(exponent)
    if scheme == "symmetric":
        return high / (2.0 ** (bits - 1) - 1), ops.zeros_like(high)
    scale = (high - low) / (2.0**bits - 1)
    return scale, -ops.round(low / scale)


@public("bound")
def min_max_observer(
    x: Any, quantization_formula: str = "google", quantization_bit: int = 8, quantization_scheme: str = "symmetric",
    per_layer_quantization: bool = True,
) -> tuple[Any, Any]:  # fmt: skip
    """Scale and zero point of a tensor, or of each of its slices along the first dimension."""
    checked(quantization_formula, quantization_bit, quantization_scheme)
    whole = per_layer_quantization or quantization_formula == "cambricon"
    rows = ops.reshape(x.detach(), (1 if whole else x.shape[0], -1))
    symmetric = quantization_scheme == "symmetric" or quantization_formula == "cambricon"
    high = ops.amax(ops.abs(rows), 1) if symmetric else ops.amax(rows, 1)
    return _scale(ops.amin(rows, 1), high, quantization_formula, quantization_bit, quantization_scheme)


@public("bound")
def moving_average_min_max_observer(
    x: Any, current_train_step: Any, moving_max: Any, moving_min: Any, training: bool = True,
    stop_update_after_iters: int = 1, quantization_formula: str = "google", quantization_bit: int = 8,
    quantization_scheme: str = "symmetric", momentum: float = 0.95,
) -> tuple[Any, Any]:  # fmt: skip
    """Scale and zero point from running extremes, which the first training steps update."""
    checked(quantization_formula, quantization_bit, quantization_scheme)
    symmetric = quantization_scheme == "symmetric" or quantization_formula == "cambricon"
    with no_grad():
        if training:
            data = x.detach()
            goes_on = current_train_step <= stop_update_after_iters
            high = ops.amax(ops.abs(data)) if symmetric else ops.amax(data)
            high = _moved(moving_max, high, momentum, goes_on)
            low = high if symmetric else _moved(moving_min, ops.amin(data), momentum, goes_on)
            assign(moving_max, high)
            assign(moving_min, low)
        return _scale(moving_min, moving_max, quantization_formula, quantization_bit, quantization_scheme)


def _moved(running: Any, now: Any, momentum: float, goes_on: Any) -> Any:
    after = ops.where(running == 0, now, running * momentum + now * (1 - momentum))  # 0: no value so far
    return ops.where(goes_on, after, running)


def _counted(x: Any, scale: Any, zero_point: Any, formula: str, bits: int, scheme: str) -> tuple[Any, Any, Any]:
    """The quantized integers, with the scale and zero point that broadcast to x."""
    checked(formula, bits, scheme)
    form = (-1, *(1,) * (x.ndim - 1)) if scale.numel() > 1 else (1,) * x.ndim
    scale, zero_point = ops.reshape(scale, form), ops.reshape(zero_point, form)
    if formula == "cambricon":
        scale = ops.pow(2.0, scale)
    if scheme == "affine" and formula == "google":
        return ops.clamp(ops.round(x / scale + zero_point), 0.0, 2.0**bits - 1), scale, zero_point
    most = 2.0 ** (bits - 1) - 1
    return ops.clamp(ops.round(x / scale), -most, most), scale, None


@public("bound")
def quantization(
    x: Any, scale: Any, zero_point: Any, quantization_formula: str = "google", quantization_bit: int = 8,
    quantization_scheme: str = "symmetric",
) -> Any:  # fmt: skip
    """x quantized to integers.

    >>> flow._C.quantization(flow.tensor([0.5, -1.0]), flow.tensor([0.25]), flow.tensor([0.0])).tolist()
    [2.0, -4.0]
    """
    return _counted(x, scale, zero_point, quantization_formula, quantization_bit, quantization_scheme)[0]


class _Rounded(Function):
    """x quantized and dequantized, with a straight-through gradient."""

    @staticmethod
    def forward(ctx: Any, *args: Any) -> Any:
        whole, scale, zero = _counted(*args)
        return whole * scale if zero is None else (whole - zero) * scale

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        return (gradients[0], *[None] * 5)


@public("bound")
def fake_quantization(
    x: Any, scale: Any, zero_point: Any, quantization_formula: str = "google", quantization_bit: int = 8,
    quantization_scheme: str = "symmetric",
) -> Any:  # fmt: skip
    """x rounded to a few bits, with a straight-through gradient.

    >>> flow._C.fake_quantization(flow.tensor([0.6, -1.0]), flow.tensor([0.25]), flow.tensor([0.0])).tolist()
    [0.5, -1.0]
    """
    return _Rounded.apply(x, scale, zero_point, quantization_formula, quantization_bit, quantization_scheme)
