"""Element-wise functions of real numbers: angles, mantissas and signs, NaN and infinities, divisors."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from weft.ops.create.constructors import zeros_like
from weft.ops.declaration import op
from weft.ops.neural.gradients import gradient_by_kernel
from weft.ops.pointwise.arithmetic import div, mul, sign, sub, underived
from weft.ops.pointwise.copies import cast, where
from weft.ops.pointwise.declaring import binary, unary
from weft.ops.pointwise.elementary import exp, log, log_number
from weft.ops.pointwise.logic import eq, gt, isnan, isneginf, isposinf, logical_not, logical_or, lt
from weft.ops.pointwise.ties import part_of_first
from weft.ops.shape.broadcast import fit

# ---- one operand -------------------------------------------------------------------------------------

deg2rad = unary("deg2rad", torch.deg2rad, "From degrees to radians.", "0.0 -> 0.0", linear=True, inplace=torch.deg2rad_)
rad2deg = unary("rad2deg", torch.rad2deg, "From radians to degrees.", "0.0 -> 0.0", linear=True, inplace=torch.rad2deg_)
deg2rad.grad(lambda dy: deg2rad(dy))
rad2deg.grad(lambda dy: rad2deg(dy))


@op("... -> ..., ...", returns="mantissa exponent*")
def frexp(x: Tensor) -> Any:
    """x as mantissa * 2 ** exponent, with mantissas from 0.5 to 1.

    >>> [part.tolist() for part in flow.frexp(flow.tensor([6.0]))]
    [[0.75], [3]]
    """
    return tuple(torch.frexp(x))


frexp.grad(lambda dmantissa, x, exponent: mul(dmantissa, exp(mul(cast(exponent, x.dtype), -math.log(2)))))
frexp.samples(lambda rand: [(rand(4, 6),)])


@op("... -> ...")
def logit(x: Tensor, eps: float | None = None) -> Tensor:
    """log(x / (1 - x)), the inverse of sigmoid; x is clamped to [eps, 1 - eps] if eps is given.

    >>> flow.logit(flow.tensor([0.5])).tolist()
    [0.0]
    """
    return torch.logit(x, eps)


def _logit_grad(dy: Any, x: Any, eps: float | None) -> Any:
    least = 0.0 if eps is None else eps
    outside = logical_or(_below(x, least), _below(sub(1.0, x), least))
    return where(outside, math.nan if eps is None else 0.0, div(dy, mul(x, sub(1.0, x))))


def _below(x: Any, limit: float) -> Any:
    return eq(sign(sub(x, limit)), -1.0)


logit.samples(lambda rand: [(rand(4, 6).sigmoid(),), (rand(4, 6).sigmoid(), 0.3)])
logit.inplace(lambda x, eps: torch.logit_(x, eps))
gradient_by_kernel(logit, "logit_backward", _logit_grad)


@op("... -> ...")
def nan_to_num(x: Tensor, nan: float | None = None, posinf: float | None = None, neginf: float | None = None) -> Tensor:
    """x with NaN replaced by 0, and infinities by the largest and least finite numbers, unless given.

    >>> flow.nan_to_num(flow.tensor([float("nan"), 1.0])).tolist()
    [0.0, 1.0]
    """
    return torch.nan_to_num(x, nan, posinf, neginf)


@nan_to_num.grad
def _(dy, x):
    odd = logical_or(isnan(x), logical_or(isposinf(x), isneginf(x)))
    return mul(dy, cast(logical_not(odd), dy.dtype))


@nan_to_num.samples
def _(rand):
    yield (rand(4, 6),)
    yield torch.tensor([math.nan, math.inf, -math.inf, 2.0], dtype=torch.float64), 1.0, 2.0, 3.0


nan_to_num.inplace(lambda x, nan, posinf, neginf: torch.nan_to_num_(x, nan, posinf, neginf))


# ---- two operands ------------------------------------------------------------------------------------

fmax = binary("fmax", torch.fmax, "The larger of a and b; the other one where one is NaN.",
              "3.0, flow.tensor([2.0]) -> 3.0", scalar=False)  # fmt: skip
fmin = binary("fmin", torch.fmin, "The smaller of a and b; the other one where one is NaN.",
              "3.0, flow.tensor([2.0]) -> 2.0", scalar=False)  # fmt: skip


@fmax.grad
def _(dy, input, other, input_shape, other_shape):
    return _taken(dy, input, other, gt, input_shape, other_shape)


@fmin.grad
def _(dy, input, other, input_shape, other_shape):
    return _taken(dy, input, other, lt, input_shape, other_shape)


def _taken(dy: Any, input: Any, other: Any, beyond: Any, input_shape: Any, other_shape: Any) -> Any:
    """The gradient goes to the operand that was selected; of two NaN, the first one."""
    first, equal = logical_or(beyond(input, other), isnan(other)), eq(input, other)
    part = part_of_first("fmax")
    if part == 1:
        first, shared = logical_or(first, equal), dy
        a = where(first, dy, 0.0)
    else:
        shared = where(equal, mul(dy, part), dy)
        a = where(logical_or(first, equal), shared, 0.0)
    return fit(a, input_shape), fit(where(first, 0.0, shared), other_shape)


hypot = binary("hypot", torch.hypot, "sqrt(a * a + b * b), without overflow.", "3.0, flow.tensor([4.0]) -> 5.0",
               scalar=False)  # fmt: skip


@hypot.grad
def _(dy, input, other, y, input_shape, other_shape, needs):
    scaled = div(dy, y)
    return (
        fit(mul(scaled, input), input_shape) if needs[0] else None,
        fit(mul(scaled, other), other_shape) if needs[1] else None,
    )


copysign = binary("copysign", torch.copysign, "a with the sign of b.", "3.0, -2.0 -> -3.0")
copysign.samples(lambda rand: [(rand(4, 6), rand(4, 6)), (rand(4, 6), -2.0)])
copysign.prepared(None)


@copysign.grad
def _(dy, input, y, input_shape, other_shape):
    da = fit(mul(dy, mul(sign(input), sign(y))), input_shape)
    return da, None if other_shape is None else fit(zeros_like(dy), other_shape)


heaviside = binary("heaviside", torch.heaviside, "0 below zero, 1 above, b at zero.",
                   "3.0, flow.tensor([2.0]) -> 1.0", scalar=False)  # fmt: skip
heaviside.grad(lambda dy: underived("heaviside"))

nextafter = binary("nextafter", torch.nextafter, "The next floating-point number after a, towards b.",
                   "1.0, flow.tensor([1.0]) -> 1.0", scalar=False)  # fmt: skip


@nextafter.grad
def _(dy, input, other, input_shape, other_shape):
    return fit(where(eq(input, other), 0.0, dy), input_shape), fit(zeros_like(dy), other_shape)


xlogy = binary("xlogy", torch.xlogy, "a * log(b), and 0 where a is 0.", "2.0, 1.0 -> 0.0", positive=True)


@xlogy.grad
def _(dy, input, other, input_shape, other_shape, needs):
    da = db = None
    if needs[0]:
        if other_shape is not None:
            derivative = log(other)
            at_zero = where(gt(other, 0), derivative, 0.0)
        else:
            derivative = log_number(other)
            at_zero = derivative if other > 0 else 0.0
        da = fit(mul(dy, where(eq(input, 0), at_zero, derivative)), input_shape)
    if needs[1]:
        db = fit(mul(dy, div(input, other)), other_shape)
    return da, db


gcd = binary("gcd", torch.gcd, "The greatest common divisor.", "flow.tensor([4]), flow.tensor([6]) -> 2")
lcm = binary("lcm", torch.lcm, "The least common multiple.", "flow.tensor([4]), flow.tensor([6]) -> 12")
for _whole in (gcd, lcm):
    _whole.__doc__ = (_whole.__doc__ or "").partition("\n")[0]
    _whole.samples(lambda rand: [(torch.arange(1, 7).expand(4, 6), torch.tensor([4, 6, 9, 10, 12, 15]))])
