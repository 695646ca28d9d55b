"""Functions that layers need and that no op declares, composed of ops."""

from __future__ import annotations

from typing import Any

from weft.autograd import in_place
from weft.core.errors import OptionError, ShapeError
from weft.functional.conversion import cast
from weft.ops import OPS
from weft.ops.shape import dim_of
from weft.tensor.tensor import Tensor

__all__ = ["glu", "hardtanh", "hardtanh_", "prelu", "relu6", "softmin", "tanhshrink"]

mul, sub, where = (OPS[n] for n in ("mul", "sub", "where"))


def _held(x: Tensor, low: float, high: float, inplace: bool) -> Tensor:
    return in_place(OPS["hardtanh"], (x, low, high)) if inplace else OPS["hardtanh"](x, low, high)


def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    """x, held in [min_val, max_val]."""
    if min_val > max_val:
        raise OptionError(f"hardtanh: min_val {min_val} is above max_val {max_val}")
    return _held(input, min_val, max_val, inplace)


def hardtanh_(input: Tensor, min_val: float = -1.0, max_val: float = 1.0) -> Tensor:
    """`hardtanh`, into the input's memory."""
    return hardtanh(input, min_val, max_val, True)


def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """x, held in [0, 6]."""
    return _held(input, 0.0, 6.0, inplace)


def glu(input: Tensor, dim: int = -1) -> Tensor:
    """The first half times the sigmoid of the second."""
    if not input.ndim:
        raise ShapeError("glu does not support 0-dimensional tensors: it halves a dimension")
    dim = dim_of(dim, input.ndim)
    n = input.shape[dim]
    if n % 2:
        raise ShapeError(
            f"Halving dimension must be even, but dimension {dim} is size {n}: glu() of {list(input.shape)}"
        )
    first, second = OPS["narrow"](input, dim, 0, n // 2), OPS["narrow"](input, dim, n // 2, n // 2)
    return mul(first, OPS["sigmoid"](second))


def tanhshrink(input: Tensor) -> Tensor:
    """x - tanh(x)."""
    return sub(input, OPS["tanh"](input))


def softmin(input: Tensor, dim: int, dtype: Any = None) -> Tensor:
    """softmax(-x)."""
    return OPS["softmax"](OPS["neg"](input if dtype is None else cast(input, dtype)), dim)


def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """x, or weight times x below zero; one weight for everything or one per channel."""
    if weight.numel() != 1:
        if weight.numel() != input.shape[1 if input.ndim > 1 else 0]:
            raise ShapeError(
                f"prelu: {weight.numel()} weights for an input of shape {list(input.shape)}; give one, or one a channel"
            )
        weight = OPS["reshape"](weight, (-1, *(1,) * max(input.ndim - 2, 0)))
    elif weight.ndim > input.ndim:
        weight = OPS["reshape"](weight, ())
    return where(OPS["gt"](input, 0), input, mul(input, weight))
