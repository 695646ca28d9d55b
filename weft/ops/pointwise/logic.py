"""Comparisons, logical and bitwise ops, and tests of numbers: without a gradient."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from weft.core.dtype import of_torch
from weft.core.errors import DtypeError
from weft.ops.declaration import Op, Scalar, op
from weft.ops.pointwise.declaring import binary, of_two, unary


def _comparison(name: str, kernel: Callable[..., Any], swapped: Callable[..., Any], doc: str, shows: str) -> Op:
    def either(a: Any, b: Any, **out: Any) -> Any:
        return kernel(a, b, **out) if isinstance(a, Tensor) else swapped(b, a, **out)

    return binary(name, either, doc, shows)


eq = _comparison("eq", torch.eq, torch.eq, "Whether a equals b, element by element.", "3.0, 2.0 -> False")

ne = _comparison("ne", torch.ne, torch.ne, "Whether a differs from b, element by element.", "3.0, 2.0 -> True")

lt = _comparison("lt", torch.lt, torch.gt, "Whether a is less than b, element by element.", "3.0, 2.0 -> False")

le = _comparison("le", torch.le, torch.ge, "Whether a is at most b, element by element.", "3.0, 2.0 -> False")

gt = _comparison("gt", torch.gt, torch.lt, "Whether a is greater than b, element by element.", "3.0, 2.0 -> True")

ge = _comparison("ge", torch.ge, torch.le, "Whether a is at least b, element by element.", "3.0, 2.0 -> True")


def over_first(x: Tensor, y: Tensor) -> Tensor:
    """The result written to x's memory, if x's dtype can hold it."""
    if not torch.can_cast(y.dtype, x.dtype):
        made, held = (of_torch(t.dtype).scalar for t in (y, x))
        raise DtypeError(
            f"result type {made} can't be cast to the desired output type {held}: overwrite a tensor of floats"
        )
    return x.copy_(y)


def _of_two(name: str, kernel: Callable[..., Any], doc: str, kind: str) -> Op:
    """Declare y = kernel(a, b) on booleans or integers, with broadcasting; b may be a number, and for bits a, too."""

    def body(a: Tensor, b: Tensor | Scalar) -> Tensor:
        if kind == "logical" and not isinstance(b, Tensor):
            b = torch.tensor(b, device=a.device)
        return kernel(a, b)

    body.__name__, body.__doc__ = name, doc
    body.__signature__ = of_two(first="Tensor" if kind == "logical" else "Tensor | Scalar")
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

logical_not = unary("logical_not", torch.logical_not, "True where x is zero or False.", "0.0 -> True", out=False)
isnan = unary("isnan", torch.isnan, "Whether x is not a number.", "0.0 -> False", out=False)
isinf = unary("isinf", torch.isinf, "Whether x is infinite.", out=False)
isfinite = unary("isfinite", torch.isfinite, "Whether x is a finite number.", out=False)
signbit = unary("signbit", torch.signbit, "Whether x has a minus sign.", "-3.0 -> True", out=False)
isposinf = unary("isposinf", torch.isposinf, "Whether x is positive infinity.", "1.0 -> False", out=False)
isneginf = unary("isneginf", torch.isneginf, "Whether x is negative infinity.", "1.0 -> False", out=False)
