"""Rounding, and division that rounds. Gradients are zero almost everywhere, but those of remainders."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from weft.ops.create.constructors import zeros_like
from weft.ops.declaration import Op, Scalar, op
from weft.ops.pointwise.arithmetic import mul, neg
from weft.ops.pointwise.declaring import of_two, unary
from weft.ops.pointwise.logic import over_first
from weft.ops.shape.broadcast import fit


def _whole(name: str, kernel: Callable[..., Any], doc: str, overwrite: Callable[..., Any]) -> Op:
    declared = unary(name, kernel, doc, inplace=overwrite)
    declared.grad(lambda dy: zeros_like(dy))
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
    body.__signature__ = of_two()
    declared = op("..., ... -> ...")(body)
    declared.inplace(lambda a, b: over_first(a, kernel(a, b)))

    @declared.samples
    def _(rand):
        yield rand(4, 6), rand(4, 6).abs() + 0.5
        yield rand(4, 6), rand(6).abs() + 0.5
        yield rand(4, 6), 0.7
        yield 1.5, rand(4, 6).abs() + 0.5

    return declared


floor_divide = _division("floor_divide", torch.floor_divide, "a / b, rounded down.")
trunc_divide = _division(
    "trunc_divide", functools.partial(torch.div, rounding_mode="trunc"), "a / b, rounded towards zero."
)
remainder = _division("remainder", torch.remainder, "The remainder of a / b, with b's sign, as Python's %.")
fmod = _division("fmod", torch.fmod, "The remainder of a / b, with a's sign, as C's fmod.")


@trunc_divide.grad
@floor_divide.grad
def _(dy, input_shape, other_shape, needs):
    zero = zeros_like(dy)
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

frac = unary("frac", torch.frac, "The fractional part of x.", "1.5 -> 0.5", inplace=torch.frac_)
frac.grad(lambda dy: dy)
