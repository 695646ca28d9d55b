"""Elementary functions, element-wise."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from weft.ops.create.constructors import zeros_like
from weft.ops.declaration import Op, Scalar, op
from weft.ops.kernels import aten
from weft.ops.pointwise.arithmetic import add, conjugated, div, mul, neg, reciprocal, square, sub
from weft.ops.pointwise.copies import masked_fill, where
from weft.ops.pointwise.declaring import binary, unary
from weft.ops.pointwise.logic import eq, ge
from weft.ops.shape.broadcast import fit

pow = binary(
    "pow", torch.pow, "a to the power b, element by element.", "3.0, 2.0 -> 9.0",
    inplace=lambda a, b: a.pow_(b), positive=True, second="exponent",
    memory_order=lambda a, b: "" if isinstance(a, torch.Tensor) else "contiguous",
)  # fmt: skip


@pow.grad
def _(dy, input, exponent: Any, input_shape, exponent_shape, needs):
    da = db = None
    if needs[0] and exponent_shape is None:
        power = input if exponent == 2 else pow(input, exponent - 1)
        da = fit(mul(dy, conjugated(mul(power, exponent))), input_shape) if exponent else zeros_like(input)
    elif needs[0]:  # a power of 0 is constant, also at 0
        derivative = where(eq(exponent, 0), 0.0, mul(pow(input, sub(exponent, 1)), exponent))
        da = fit(mul(dy, conjugated(derivative)), input_shape)
    if needs[1]:  # powers of 0 are constant, too
        derivative = mul(pow(input, exponent), log(input) if input_shape is not None else log_number(input))
        if input_shape is not None or input == 0:
            of: Any = exponent
            constant = derivative if of.dtype.is_complex else where(ge(of, 0), 0.0, derivative)
            derivative = constant if input_shape is None else where(eq(input, 0), constant, derivative)
        db = fit(mul(dy, conjugated(derivative)), exponent_shape)
    return da, db


def log_number(a: Any) -> float:
    return torch.log(torch.tensor(a, dtype=torch.float64)).item()


def _function(
    name: str, says: str, shows: str, derivative: Callable[[Any], Any], sample: Callable[[Any], Any] | None = None
) -> Op:
    """Declare torch's function of this name. `derivative` is a function of x or of the result y, by the name of its
    parameter; only that one is saved."""
    declared = unary(name, getattr(torch, name), says, shows, inplace=getattr(Tensor, f"{name}_"))
    if "y" in inspect.signature(derivative).parameters:
        declared.grad(lambda dy, y: mul(dy, derivative(conjugated(y))))
    else:
        declared.grad(lambda dy, x: mul(dy, derivative(conjugated(x))))
    if sample is not None:
        declared.samples(lambda rand: [(sample(rand(4, 6)),)])
    return declared


def _above_zero(x: Tensor) -> Tensor:
    return x.abs() + 0.5


def _inside_one(x: Tensor) -> Tensor:
    return torch.tanh(x) * 0.9


exp = _function("exp", "e to the power x.", "0.0 -> 1.0", lambda y: y)
log = unary("log", torch.log, "The natural logarithm.", "1.0 -> 0.0", positive=True, inplace=torch.log_)
log.grad(lambda dy, x: div(dy, conjugated(x)))

sqrt = unary("sqrt", torch.sqrt, "The square root.", "4.0 -> 2.0", positive=True, inplace=torch.sqrt_)
sqrt.grad(lambda dy, y: div(mul(dy, 0.5), conjugated(y)))

rsqrt = unary("rsqrt", torch.rsqrt, "One over the square root.", "4.0 -> 0.5", positive=True, inplace=torch.rsqrt_)


@rsqrt.grad
def _(dy, y):
    y = conjugated(y)
    return mul(mul(dy, -0.5), mul(y, mul(y, y)))


def with_backward(declared: Op, says: str, curve: Callable[[Any], Any]) -> Op:
    """Declare torch's kernel for the gradient of a function, from its result y; `curve` is the second factor of the
    gradient's own derivative by y."""
    name = f"{declared.name}_backward"
    kernel = getattr(aten, name)

    def backward(dy: Tensor, y: Tensor) -> Tensor:
        return kernel(dy, y)

    backward.__name__, backward.__doc__ = name, f"The gradient of {declared.name}: {says}."
    made = op("..., ... -> ...", linear="dy", returns="dx", promotes=True)(backward)
    made.out(lambda dx, dy, y: kernel.grad_input(dy, y, grad_input=dx))
    made.samples(lambda rand: [(rand(4, 6), rand(4, 6))])

    @made.grad
    def _(ddx, dy, y, needs):
        y = conjugated(y)
        return made(ddx, y) if needs[0] else None, mul(mul(conjugated(ddx), dy), curve(y)) if needs[1] else None

    declared.grad(lambda dy, y: made(dy, y))
    return made


tanh = unary("tanh", torch.tanh, "The hyperbolic tangent.", "0.0 -> 0.0", inplace=torch.tanh_)
tanh_backward = with_backward(tanh, "dy * (1 - y * y)", lambda y: mul(y, -2.0))
sin = _function("sin", "The sine.", "0.0 -> 0.0", lambda x: cos(x))
cos = unary("cos", torch.cos, "The cosine.", "0.0 -> 1.0", inplace=torch.cos_)
cos.grad(lambda dy, x: neg(mul(dy, sin(conjugated(x)))))


erf = _function(
    "erf", "The error function: 2 / sqrt(pi) times the integral of exp(-t^2) from 0 to x.", "0.0 -> 0.0",
    lambda x: mul(exp(neg(square(x))), 2 / math.sqrt(math.pi)),
)  # fmt: skip
erfc = _function("erfc", "1 - erf(x).", "0.0 -> 1.0", lambda x: mul(exp(neg(square(x))), -2 / math.sqrt(math.pi)))
erfinv = _function(
    "erfinv", "The inverse of erf.", "0.0 -> 0.0", lambda y: mul(exp(square(y)), math.sqrt(math.pi) / 2), _inside_one
)
exp2 = _function("exp2", "2 to the power x.", "3.0 -> 8.0", lambda y: mul(y, math.log(2)))
expm1 = _function("expm1", "exp(x) - 1, exact near zero.", "0.0 -> 0.0", lambda y: add(y, 1.0))
log2 = _function("log2", "The logarithm to base 2.", "8.0 -> 3.0", lambda x: div(1 / math.log(2), x), _above_zero)
log10 = _function("log10", "The logarithm to base 10.", "100.0 -> 2.0", lambda x: div(1 / math.log(10), x), _above_zero)
log1p = _function("log1p", "log(1 + x), exact near zero.", "0.0 -> 0.0", lambda x: reciprocal(add(x, 1.0)), _above_zero)
tan = _function("tan", "The tangent.", "0.0 -> 0.0", lambda y: add(square(y), 1.0), _inside_one)
sinh = _function("sinh", "The hyperbolic sine.", "0.0 -> 0.0", lambda x: cosh(x))
cosh = _function("cosh", "The hyperbolic cosine.", "0.0 -> 1.0", lambda x: sinh(x))
asin = _function("asin", "The arc sine.", "0.0 -> 0.0", lambda x: rsqrt(sub(1.0, square(x))), _inside_one)
acos = _function("acos", "The arc cosine.", "1.0 -> 0.0", lambda x: neg(rsqrt(sub(1.0, square(x)))), _inside_one)
atan = _function("atan", "The arc tangent.", "0.0 -> 0.0", lambda x: reciprocal(add(square(x), 1.0)))
asinh = _function("asinh", "The inverse of sinh.", "0.0 -> 0.0", lambda x: rsqrt(add(square(x), 1.0)))
acosh = _function(
    "acosh", "The inverse of cosh.", "1.0 -> 0.0", lambda x: mul(rsqrt(sub(x, 1.0)), rsqrt(add(x, 1.0))),
    lambda x: x.abs() + 1.5,
)  # fmt: skip
atanh = _function("atanh", "The inverse of tanh.", "0.0 -> 0.0", lambda x: reciprocal(sub(1.0, square(x))), _inside_one)
sinc = unary("sinc", torch.sinc, "sin(pi x) / (pi x), and 1 at zero.", "0.0 -> 1.0", inplace=torch.sinc_)


@sinc.grad
def _(dy, x):
    x = conjugated(x)
    flat = eq(x, 0.0)  # the maximum, where the quotient is 0 / 0
    return where(flat, 0.0, mul(dy, div(sub(cos(mul(x, math.pi)), sinc(x)), where(flat, 1.0, x))))


atan2 = binary(
    "atan2", torch.atan2, "The angle of the point (b, a), in the correct quadrant.", "0.0, flow.tensor([1.0]) -> 0.0",
    scalar=False,
)  # fmt: skip


@atan2.grad
def _(dy, input, other, input_shape, other_shape, needs):
    squares = add(square(input), square(other))
    scaled = where(eq(squares, 0), 0.0, div(dy, squares))
    return (
        fit(mul(scaled, other), input_shape) if needs[0] else None,
        fit(neg(mul(scaled, input)), other_shape) if needs[1] else None,
    )


def _log_of_sum(name: str, says: str, base: float) -> Op:
    declared = binary(name, getattr(torch, name), f"{says}, without overflow.", scalar=False)

    @declared.grad
    def _(dy, input, other, input_shape, other_shape, needs):
        apart = sub(other, input) if base == math.e else mul(sub(other, input), math.log(base))
        return (
            fit(div(dy, conjugated(add(exp(apart), 1.0))), input_shape) if needs[0] else None,
            fit(div(dy, conjugated(add(exp(neg(apart)), 1.0))), other_shape) if needs[1] else None,
        )

    return declared


logaddexp = _log_of_sum("logaddexp", "log(exp(a) + exp(b))", math.e)
logaddexp2 = _log_of_sum("logaddexp2", "log2(2 ** a + 2 ** b)", 2.0)


@op("..., ..., ... -> ...", linear="a+b")
def lerp(a: Tensor, b: Tensor, weight: Tensor | Scalar) -> Tensor:
    """a + weight * (b - a): a where the weight is 0, b where it is 1.

    >>> flow.lerp(flow.zeros(1), flow.ones(1), 0.25).tolist()
    [0.25]
    """
    return torch.lerp(a, b, weight)


lerp.out(lambda y, a, b, weight: torch.lerp(a, b, weight, out=y))
lerp.inplace(lambda a, b, weight: a.lerp_(b, weight))


@lerp.grad
def _(dy, a, b, weight, a_shape, b_shape, weight_shape, needs):
    there = mul(dy, conjugated(weight))
    return (
        fit(sub(dy, there), a_shape) if needs[0] else None,
        fit(there, b_shape) if needs[1] else None,
        fit(mul(dy, conjugated(sub(b, a))), weight_shape) if needs[2] else None,
    )


lerp.reads(lambda node: node.edges[2] is not None or not isinstance(node.saved[2], (int, float)))
lerp.samples(lambda rand: [(rand(4, 6), rand(4, 6), 0.3), (rand(4, 6), rand(6), rand(4, 1))])


@op("... -> ...")
def root(x: Tensor, degree: float = 2.0) -> Tensor:
    """The root of nonnegative numbers; its gradient at zero is zero.

    >>> flow._C.root(flow.tensor([0., 4., 9.])).tolist()
    [0.0, 2.0, 3.0]
    """
    return torch.sqrt(x) if degree == 2 else torch.pow(x, 1.0 / degree)


@root.grad
def _(dy, x, y, degree):
    none = eq(x, 0.0)
    derivative = div(y, mul(masked_fill(x, none, 1.0), float(degree)))
    return mul(dy, masked_fill(derivative, none, 0.0))


root.samples(lambda rand: [rand(4, 6).abs() + 0.1, (rand(4, 6).abs() + 0.1, 3.0)])
