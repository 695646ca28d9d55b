"""Logical, bitwise and rounding ops: without a gradient, or with one that is zero almost everywhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from weft.core.dtype import of_torch
from weft.core.errors import DtypeError
from weft.ops.declaration import Op, Scalar, Size, op
from weft.ops.pointwise.arithmetic import mul, neg, of_two, unary
from weft.ops.reduce.sums import dims_of, reduced
from weft.ops.shape.broadcast import fit

Dims = int | Size | None


def _over(x: Tensor, y: Tensor) -> Tensor:
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
        declared.inplace(lambda a, b: _over(a, kernel(a, b)))

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


def _whole(name: str, kernel: Callable[..., Any], doc: str, overwrite: Callable[..., Any]) -> Op:
    declared = unary(name, kernel, doc, inplace=overwrite)
    declared.grad(lambda dy: mul(dy, 0.0))
    return declared


floor = _whole("floor", torch.floor, "The largest integer that is at most x.", torch.floor_)
ceil = _whole("ceil", torch.ceil, "The smallest integer that is at least x.", torch.ceil_)
round = _whole("round", torch.round, "The nearest integer; ties go to the even one.", torch.round_)
trunc = _whole("trunc", torch.trunc, "x without its fractional part.", torch.trunc_)


def _division(name: str, kernel: Callable[..., Any], doc: str) -> Op:
    def body(a: Tensor | Scalar, b: Tensor | Scalar) -> Tensor:
        if not isinstance(a, Tensor) and isinstance(b, Tensor):
            a = torch.full((), a, dtype=torch.result_type(a, b), device=b.device)
        return kernel(a, b)

    body.__name__, body.__doc__ = name, doc
    body.__signature__ = of_two()  # type: ignore[attr-defined]
    declared = op("..., ... -> ...")(body)
    declared.inplace(lambda a, b: _over(a, kernel(a, b)))

    @declared.samples
    def _(rand):
        yield rand(4, 6), rand(4, 6).abs() + 0.5
        yield rand(4, 6), rand(6).abs() + 0.5
        yield rand(4, 6), 0.7
        yield 1.5, rand(4, 6).abs() + 0.5

    return declared


floor_divide = _division("floor_divide", torch.floor_divide, "a / b, rounded down.")
remainder = _division("remainder", torch.remainder, "The remainder of a / b, with b's sign, as Python's %.")
fmod = _division("fmod", torch.fmod, "The remainder of a / b, with a's sign, as C's fmod.")


@floor_divide.grad
def _(dy, input_shape, other_shape, needs):
    zero = mul(dy, 0.0)
    return fit(zero, input_shape) if needs[0] else None, fit(zero, other_shape) if needs[1] else None


@remainder.grad
def _(dy, input, other, input_shape, other_shape, needs):
    by_other = fit(neg(mul(dy, floor_divide(input, other))), other_shape) if needs[1] else None
    return fit(dy, input_shape) if needs[0] else None, by_other


remainder.reads(lambda node: node.edges[1] is not None)


@fmod.grad
def _(dy, input, other, input_shape, other_shape, needs):
    by_other = fit(neg(mul(dy, trunc(input / other))), other_shape) if needs[1] else None
    return fit(dy, input_shape) if needs[0] else None, by_other


fmod.reads(lambda node: node.edges[1] is not None)


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
