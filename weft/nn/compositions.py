"""Functions that layers need and that no op declares, composed of ops."""

from __future__ import annotations

import math
from typing import Any

from weft.autograd import in_place
from weft.core.errors import OptionError, ShapeError
from weft.ops import OPS
from weft.tensor.tensor import Tensor

__all__ = [
    "celu", "glu", "group_norm", "hardshrink", "hardtanh", "prelu", "quick_gelu", "relu6", "selu", "softmin",
    "softshrink", "softsign", "tanhshrink", "threshold",
]  # fmt: skip

SELU_SCALE, SELU_ALPHA = 1.0507009873554804934193349852946, 1.6732632423543772848170429916717
mul, add, sub, where = (OPS[n] for n in ("mul", "add", "sub", "where"))


def _into(x: Tensor, y: Tensor, inplace: bool) -> Tensor:
    return in_place(OPS["copy"], (x, y)) if inplace else y


def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    """x, held in [min_val, max_val]."""
    if min_val > max_val:
        raise OptionError(f"hardtanh: min_val {min_val} is above max_val {max_val}")
    return _into(input, OPS["clamp"](input, min_val, max_val), inplace)


def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """x, held in [0, 6]."""
    return _into(input, OPS["clamp"](input, 0.0, 6.0), inplace)


def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """x, or alpha (exp(x / alpha) - 1) below zero."""
    if alpha == 0:
        raise OptionError("celu: alpha must not be zero")
    return _into(input, mul(OPS["elu"](mul(input, 1.0 / alpha), 1.0), alpha), inplace)


def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """A scaled ELU that keeps mean zero and variance one."""
    return _into(input, mul(OPS["elu"](input, SELU_ALPHA), SELU_SCALE), inplace)


def glu(input: Tensor, dim: int = -1) -> Tensor:
    """The first half times the sigmoid of the second."""
    n = input.shape[dim]
    if n % 2:
        raise ShapeError(f"glu halves dimension {dim}, so its size must be even; got {n}")
    first, second = OPS["narrow"](input, dim, 0, n // 2), OPS["narrow"](input, dim, n // 2, n // 2)
    return mul(first, OPS["sigmoid"](second))


def softsign(input: Tensor) -> Tensor:
    """x / (1 + |x|)."""
    return OPS["div"](input, add(OPS["abs"](input), 1.0))


def softshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """x, drawn towards zero by lambd."""
    return sub(input, OPS["clamp"](input, -lambd, lambd))


def hardshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """x, or zero within lambd of zero."""
    return where(OPS["gt"](OPS["abs"](input), lambd), input, 0.0)


def tanhshrink(input: Tensor) -> Tensor:
    """x - tanh(x)."""
    return sub(input, OPS["tanh"](input))


def softmin(input: Tensor, dim: int) -> Tensor:
    """softmax(-x)."""
    return OPS["softmax"](OPS["neg"](input), dim)


def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """x, or `value` where it isn't above the threshold."""
    return _into(input, where(OPS["gt"](input, threshold), input, float(value)), inplace)


def quick_gelu(input: Tensor) -> Tensor:
    """x sigmoid(1.702 x)."""
    return mul(input, OPS["sigmoid"](mul(input, 1.702)))


def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """x, or weight times x below zero; one weight for everything or one per channel."""
    if weight.numel() != 1:
        if weight.numel() != input.shape[1 if input.ndim > 1 else 0]:
            raise ShapeError(
                f"prelu: {weight.numel()} weights for an input of shape {list(input.shape)}; give one, or one a channel"
            )
        weight = OPS["reshape"](weight, (-1, *(1,) * max(input.ndim - 2, 0)))
    return where(OPS["gt"](input, 0), input, mul(input, weight))


def group_norm(input: Tensor, num_groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Tensor:
    """Each sample normalised over groups of its channels."""
    shape = tuple(input.shape)
    if len(shape) < 2 or shape[1] % num_groups:
        raise ShapeError(
            f"group_norm: {num_groups} groups need (batch, channels, ...) with as many channels, or a multiple; "
            f"got {list(shape)}"
        )
    size = math.prod(shape[1:]) // num_groups
    y = OPS["layer_norm"](OPS["reshape"](input, (shape[0], num_groups, size)), (size,), None, None, eps)
    y = OPS["reshape"](y, shape)
    per_channel = (shape[1], *(1,) * (len(shape) - 2))
    if weight is not None:
        y = mul(y, OPS["reshape"](weight, per_channel))
    return y if bias is None else add(y, OPS["reshape"](bias, per_channel))
