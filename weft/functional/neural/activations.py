"""Activations composed of ops."""

from __future__ import annotations

from typing import Any

import torch

from weft.api.fast_path import in_one
from weft.api.table import public
from weft.autograd.overwrite import overwriting
from weft.core.errors import OptionError, ShapeError
from weft.functional.tensor.memory_format import contiguous
from weft.ops import OPS, ops
from weft.ops.shape.views import dim_of
from weft.tensor.tensor import Tensor

_hardtanh_, _leaky_relu_ = overwriting(OPS["hardtanh"]), overwriting(OPS["leaky_relu"])


def _held(x: Tensor, low: float, high: float, inplace: bool) -> Tensor:
    return (_hardtanh_ if inplace else ops.hardtanh)(x, low, high)


@public("neural")
def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    """x limited to [min_val, max_val]."""
    if min_val > max_val:
        raise OptionError(f"hardtanh: min_val {min_val} is above max_val {max_val}")
    return _held(input, min_val, max_val, inplace)


@public("neural")
def hardtanh_(input: Tensor, min_val: float = -1.0, max_val: float = 1.0) -> Tensor:
    """In-place `hardtanh`."""
    return hardtanh(input, min_val, max_val, True)


@public("neural")
def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """x limited to [0, 6]."""
    return _held(input, 0.0, 6.0, inplace)


@public("neural")
@in_one(torch._C._nn.glu)  # type: ignore[attr-defined]
def glu(input: Tensor, dim: int = -1) -> Tensor:
    """Gated linear unit: the first half times the sigmoid of the second."""
    if not input.ndim:
        raise ShapeError("glu does not support 0-dimensional tensors: it halves a dimension")
    dim = dim_of(dim, input.ndim)
    n = input.shape[dim]
    if n % 2:
        raise ShapeError(
            f"Halving dimension must be even, but dimension {dim} is size {n}: glu() of {list(input.shape)}"
        )
    return ops.glu(input, dim)


@public("neural")
def tanhshrink(input: Tensor) -> Tensor:
    """x - tanh(x)."""
    return ops.sub(input, ops.tanh(input))


@public("neural flow")
@in_one(torch.prelu)
def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """x where positive, weight * x elsewhere; one weight in all or one per channel."""
    if weight.ndim > 1:
        raise ShapeError(f"prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = {weight.ndim}")
    if weight.numel() != 1:
        if weight.numel() != input.shape[1 if input.ndim > 1 else 0]:
            raise ShapeError(
                f"prelu: {weight.numel()} weights for an input of shape {list(input.shape)}; give 1, or 1 per channel"
            )
        weight = ops.reshape(weight, (-1, *(1,) * max(input.ndim - 2, 0)))
    elif weight.ndim > input.ndim:
        weight = ops.reshape(weight, ())
    return ops.bent(input, weight)


@public("neural")
def leaky_relu(x: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """x where positive, negative_slope * x elsewhere."""
    return (_leaky_relu_ if inplace else ops.leaky_relu)(x, negative_slope)


@public("neural flow")
def rrelu(
    input: Any, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False, inplace: bool = False
) -> Any:
    """x where positive, elsewhere x times a slope: drawn from [lower, upper] while training, else their mean."""
    if lower > upper:
        raise OptionError(f"Lower bound should be less than or equal to the upper bound; got {lower} and {upper}")
    x = contiguous(input.clone() if inplace else input)  # backward needs the input
    if training:
        y = ops.bent(x, ops.rrelu_slope(x.detach(), float(lower), float(upper)))
    else:
        y = ops.leaky_relu(x, (lower + upper) / 2)
    return input.copy_(y) if inplace else y
