"""Logical and bitwise ops, and tests of numbers: without a gradient."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from weft.core.dtype import of_torch
from weft.core.errors import DtypeError
from weft.ops.declaration import Op, Scalar, Size, op
from weft.ops.pointwise.arithmetic import of_two, unary
from weft.ops.reduce.sums import dims_of, reduced

Dims = int | Size | None


def over_first(x: Tensor, y: Tensor) -> Tensor:
    """The result written to x's memory, if x's dtype can hold it."""
    if not torch.can_cast(y.dtype, x.dtype):
        made, held = (of_torch(t.dtype).scalar for t in (y, x))
        raise DtypeError(
            f"result type {made} can't be cast to the desired output type {held}: overwrite a tensor of floats"
        )
    return x.copy_(y)


def _of_two(name: str, kernel: Callable[..., Any], doc: str, kind: str) -> Op:
    """Declare y = kernel(a, b) on booleans or integers, with broadcasting; b may be a number."""

    def body(a: Tensor, b: Tensor | Scalar) -> Tensor:
        if kind == "logical" and not isinstance(b, Tensor):
            b = torch.tensor(b, device=a.device)
        return kernel(a, b)

    body.__name__, body.__doc__ = name, doc
    body.__signature__ = of_two(first="Tensor")  # type: ignore[attr-defined]
    declared = op("..., ... -> ...", returns="y*")(body)
    if kind != "logical":
        declared.inplace(lambda a, b: over_first(a, kernel(a, b)))

    @declared.samples
    def _(rand):
        if kind != "shift":
            yield rand(4, 6) > 0, rand(4, 6) > 0
            yield rand(4, 6) > 0, rand(6) > 0
        yield torch.arange(6).view(2, 3), 3

    return declared


bitwise_and = _of_two("bitwise_and", torch.bitwise_and, "a & b, bit by bit.", "bitwise")
bitwise_or = _of_two("bitwise_or", torch.bitwise_or, "a | b, bit by bit.", "bitwise")
bitwise_xor = _of_two("bitwise_xor", torch.bitwise_xor, "a ^ b, bit by bit.", "bitwise")
bitwise_left_shift = _of_two("bitwise_left_shift", torch.bitwise_left_shift, "a << b.", "shift")
bitwise_right_shift = _of_two("bitwise_right_shift", torch.bitwise_right_shift, "a >> b.", "shift")
logical_and = _of_two("logical_and", torch.logical_and, "Whether a and b are both true, as non-zero is.", "logical")
logical_or = _of_two("logical_or", torch.logical_or, "Whether a or b is true, as non-zero is.", "logical")
logical_xor = _of_two("logical_xor", torch.logical_xor, "Whether one of a and b is true, and one isn't.", "logical")


@op("... -> ...", returns="y*")
def bitwise_not(x: Tensor) -> Tensor:
    """~x, bitwise; logical not of booleans.

    >>> (~flow.tensor([True, False])).tolist()
    [False, True]
    """
    return torch.bitwise_not(x)


bitwise_not.samples(lambda rand: [(rand(4, 6) > 0,), (torch.arange(6).view(2, 3),)])

isinf = unary("isinf", torch.isinf, "Whether x is infinite.", out=False)
isfinite = unary("isfinite", torch.isfinite, "Whether x is a finite number.", out=False)
signbit = unary("signbit", torch.signbit, "Whether x has a minus sign.", "-3.0 -> True", out=False)
isposinf = unary("isposinf", torch.isposinf, "Whether x is positive infinity.", "1.0 -> False", out=False)
isneginf = unary("isneginf", torch.isneginf, "Whether x is negative infinity.", "1.0 -> False", out=False)


def _of_all(name: str, kernel: Callable[..., Any], doc: str) -> Op:
    def body(x: Tensor, dim: int | Size | None = None, keepdim: bool = False) -> Tensor:
        dims = dims_of(dim, x.dim())
        return kernel(x, dims, keepdim) if dims else kernel(x)

    body.__name__, body.__doc__ = name, doc
    declared = op(returns="y*")(body)
    declared.layout(lambda x, dim, keepdim: reduced(len(x), dim, keepdim, "!"))
    declared.samples(lambda rand: [(rand(4, 6) > 0,), (rand(4, 6) > -1, 1), (rand(2, 4, 6) > 1, (0, 2), True)])

    return declared


any = _of_all("any", torch.any, "Whether any element is true, over some dimensions or all.")
all = _of_all("all", torch.all, "Whether every element is true, over some dimensions or all.")
