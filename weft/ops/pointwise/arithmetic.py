"""Element-wise arithmetic, in tables of one line per op where that suffices."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from weft.core.errors import AutogradError
from weft.ops.create.constructors import zeros_like
from weft.ops.declaration import Op, Scalar, op
from weft.ops.kernels import aten
from weft.ops.pointwise.copies import cast, where
from weft.ops.shape.broadcast import fit


def example(name: str, shows: str) -> str:
    """A docstring's example from "3.0, 2.0 -> 1.0": a one-element tensor, and numbers."""
    if not shows:
        return ""
    given, _, gives = shows.partition(" -> ")
    first, *rest = given.split(", ")
    return f"\n\n>>> flow.{name}({', '.join([f'flow.tensor([{first}])', *rest])}).tolist()\n[{gives}]"


def unary(
    name: str, kernel: Callable[..., Any], doc: str, shows: str = "", *, inplace: Callable[..., Any] | None = None,
    linear: bool = False, out: bool = True, positive: bool = False,
) -> Op:  # fmt: skip
    """Declare y = kernel(x), element-wise. `positive`: its samples are positive. `shows`: "x -> y"."""

    def body(x: Tensor) -> Tensor:
        return kernel(x)

    body.__name__, body.__doc__ = name, doc + example(name, shows)
    declared = op("... -> ...", linear="x" if linear else "")(body)
    if out:
        declared.out(lambda y, x: kernel(x, out=y))
        declared.prepared(lambda y, x: (kernel, (x,), {"out": y}))
    if inplace is not None:
        declared.inplace(lambda x: inplace(x))
    declared.samples(lambda rand: [(rand(4, 6).abs() + 0.5 if positive else rand(4, 6),)])
    return declared


def of_two(second: str = "other", first: str = "Tensor | Scalar") -> inspect.Signature:
    """The signature of an op with two operands, of which the second may be a number."""
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    given = (("input", first), (second, "Tensor | Scalar"))
    return inspect.Signature([inspect.Parameter(name, kind, annotation=text) for name, text in given])


def binary(
    name: str, kernel: Callable[..., Any], doc: str, shows: str = "", *, linear: str = "",
    inplace: Callable[..., Any] | None = None, positive: bool = False, scalar: bool = True, second: str = "other",
) -> Op:  # fmt: skip
    """Declare y = kernel(a, b) with broadcasting and type promotion; b, or a, may be a number. `shows`: "a, b -> y".

    The parameters are named as PyTorch names them: `input`, and `second`.
    """

    def body(a: Tensor | Scalar, b: Tensor | Scalar) -> Tensor:
        return kernel(a, b)

    body.__name__, body.__doc__ = name, doc + example(name, shows)
    body.__signature__ = of_two(second)  # type: ignore[attr-defined]
    declared = op("..., ... -> ...", linear=linear)(body)
    declared.out(lambda y, a, b: kernel(a, b, out=y))
    declared.prepared(lambda y, a, b: (kernel, (a, b), {"out": y}) if isinstance(a, Tensor) else None)
    if inplace is not None:
        declared.inplace(lambda a, b: inplace(a, b))

    def samples(rand: Any) -> Any:
        def make(*shape: int) -> Any:
            return rand(*shape).abs() + 0.5 if positive else rand(*shape)

        yield make(4, 6), make(4, 6)
        yield make(4, 6), make(6)
        yield make(4, 1), make(4, 6)
        if scalar:
            yield make(4, 6), 2.0
            yield 1.5, make(4, 6)

    declared.samples(samples)
    return declared


conj = unary("conj", torch.conj_physical, "The complex conjugate; x itself, if it is real.", "3.0 -> 3.0", linear=True)
conj.grad(lambda dy: conj(dy))


def conjugated(x: Any) -> Any:
    """The conjugate of a complex factor, as in the gradient of a product; a real one itself."""
    try:
        data = x.blob.data
    except AttributeError:  # a number
        return x.conjugate() if isinstance(x, complex) else x
    return conj(x) if (x.dtype.is_complex if data is None else data.is_complex()) else x


# ---- arithmetic --------------------------------------------------------------------------------------

add = binary(
    "add", torch.add, "a + b, element by element.\n\n>>> flow.add(flow.ones(2), 1).tolist()\n[2.0, 2.0]",
    linear="input+other", inplace=lambda a, b: a.add_(b),
)  # fmt: skip
add.grad(lambda dy, input_shape, other_shape: (fit(dy, input_shape), fit(dy, other_shape)))

sub = binary(
    "sub", torch.sub, "a - b, element by element.", "3.0, 2.0 -> 1.0", linear="input+other",
    inplace=lambda a, b: a.sub_(b),
)  # fmt: skip
sub.out(lambda y, a, b: torch.sub(a, b, out=y) if isinstance(a, Tensor) else torch.add(a, b, alpha=-1, out=y))


@sub.grad
def _(dy, input_shape, other_shape, needs):
    return fit(dy, input_shape) if needs[0] else None, fit(neg(dy), other_shape) if needs[1] else None


mul = binary(
    "mul", torch.mul, "a * b, element by element.", "3.0, 2.0 -> 6.0",
    linear="input other", inplace=lambda a, b: a.mul_(b),
)  # fmt: skip


@mul.grad
def _(dy, input, other, input_shape, other_shape, needs):
    return fit(mul(dy, conjugated(other)), input_shape) if needs[0] else None, fit(
        mul(dy, conjugated(input)), other_shape
    ) if needs[1] else None


@mul.reads
def _(node):  # a factor that is a number is not freed
    (to_input, to_other), (input, other, *_) = node.edges, node.saved
    return not (to_input is None or _is_number(other)) or not (to_other is None or _is_number(input))


def _is_number(factor: Any) -> bool:
    return isinstance(factor, (int, float, complex))


div = binary(
    "div", torch.div, "a / b, element by element; integers give floats.", "3, 2 -> 1.5",
    linear="input", inplace=lambda a, b: a.div_(b), positive=True,
)  # fmt: skip
div.reads(lambda node: node.edges[1] is not None or not _is_number(node.saved[1]))


@div.grad
def _(dy, input, other, input_shape, other_shape, needs):
    da = div(dy, conjugated(other))
    return fit(da, input_shape) if needs[0] else None, fit(
        neg(mul(da, conjugated(div(input, other)))), other_shape
    ) if needs[1] else None


pow = binary(
    "pow", torch.pow, "a to the power b, element by element.", "3.0, 2.0 -> 9.0",
    inplace=lambda a, b: a.pow_(b), positive=True, second="exponent",
)  # fmt: skip


@pow.grad
def _(dy, input, exponent: Any, y, input_shape, exponent_shape, needs):
    da = db = None
    if needs[0] and exponent_shape is None:
        power = input if exponent == 2 else pow(input, exponent - 1)
        da = fit(mul(dy, conjugated(mul(power, exponent))), input_shape) if exponent else zeros_like(input)
    elif needs[0]:  # a power of 0 is constant, also at 0
        derivative = where(eq(exponent, 0), 0.0, mul(pow(input, sub(exponent, 1)), exponent))
        da = fit(mul(dy, conjugated(derivative)), input_shape)
    if needs[1]:  # powers of 0 are constant, too
        derivative = mul(y, log(input) if input_shape is not None else log_number(input))
        if input_shape is not None or input == 0:
            of: Any = exponent
            constant = derivative if of.dtype.is_complex else where(ge(of, 0), 0.0, derivative)
            derivative = constant if input_shape is None else where(eq(input, 0), constant, derivative)
        db = fit(mul(dy, conjugated(derivative)), exponent_shape)
    return da, db


def underived(name: str) -> Any:
    """Refuse a derivative that nobody has: zero would be a wrong one."""
    raise AutogradError(f"the derivative for '{name}' is not implemented: give x.detach() there")


def log_number(a: Any) -> float:
    return torch.log(torch.tensor(a, dtype=torch.float64)).item()


maximum = binary(
    "maximum", torch.maximum, "The larger of a and b, element by element.", "3.0, flow.tensor([2.0]) -> 3.0",
    scalar=False,
)  # fmt: skip
minimum = binary(
    "minimum", torch.minimum, "The smaller of a and b, element by element.", "3.0, flow.tensor([2.0]) -> 2.0",
    scalar=False,
)  # fmt: skip

maximum.grad(lambda dy, input, other, input_shape, other_shape: _share(dy, input, other, input_shape, other_shape))

minimum.grad(lambda dy, input, other, input_shape, other_shape: _share(dy, other, input, input_shape, other_shape))


def _share(dy: Any, larger: Any, smaller: Any, a_shape: Any, b_shape: Any) -> Any:
    """The gradient goes to the operand that was selected; ties share it."""
    tie = mul(cast(eq(larger, smaller), dy.dtype), 0.5)
    first = add(cast(gt(larger, smaller), dy.dtype), tie)
    return fit(mul(dy, first), a_shape), fit(mul(dy, sub(1.0, first)), b_shape)


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

# ---- one operand -------------------------------------------------------------------------------------

neg = unary("neg", torch.neg, "-x.", "3.0 -> -3.0", linear=True, inplace=torch.neg_)
neg.grad(lambda dy: neg(dy))

relu = unary(
    "relu", torch.relu,
    "max(x, 0), element by element.\n\n>>> flow.relu(flow.tensor([-1., 2.])).tolist()\n[0.0, 2.0]",
    inplace=torch.relu_, out=False,
)  # fmt: skip
relu.out(lambda y, x: torch.clamp_min(x, 0, out=y))
relu.prepared(lambda y, x: (torch.clamp_min, (x, 0), {"out": y}))
relu.grad(lambda dy, y: relu_grad(dy, y))


@op("..., ... -> ...", linear="dy", returns="dx", promotes=True)
def relu_grad(dy: Tensor, y: Tensor) -> Tensor:
    """dy where y is above zero.

    >>> flow._C.relu_grad(flow.ones(2), flow.tensor([0., 3.])).tolist()
    [0.0, 1.0]
    """
    return aten.threshold_backward(dy, y, 0)


relu_grad.prepared(lambda dx, dy, y: (aten.threshold_backward.grad_input, (dy, y, 0), {"grad_input": dx}))
relu_grad.out(lambda dx, dy, y: aten.threshold_backward.grad_input(dy, y, 0, grad_input=dx))


@relu_grad.grad
def _(ddx, y, needs):
    # The second derivative is zeros rather than None: optimizers check whether there is a gradient.
    return relu_grad(ddx, y) if needs[0] else None, zeros_like(y) if needs[1] else None


relu_grad.samples(lambda rand: [(rand(4, 6), rand(4, 6))])

exp = unary("exp", torch.exp, "e to the power x.", "0.0 -> 1.0", inplace=torch.exp_)
exp.grad(lambda dy, y: mul(dy, conjugated(y)))

log = unary("log", torch.log, "The natural logarithm.", "1.0 -> 0.0", positive=True, inplace=torch.log_)
log.grad(lambda dy, x: div(dy, conjugated(x)))

sqrt = unary("sqrt", torch.sqrt, "The square root.", "4.0 -> 2.0", positive=True, inplace=torch.sqrt_)
sqrt.grad(lambda dy, y: div(mul(dy, 0.5), conjugated(y)))

rsqrt = unary("rsqrt", torch.rsqrt, "One over the square root.", "4.0 -> 0.5", positive=True, inplace=torch.rsqrt_)


@rsqrt.grad
def _(dy, y):
    y = conjugated(y)
    return mul(mul(dy, -0.5), mul(y, mul(y, y)))


square = unary("square", torch.square, "x * x.", "3.0 -> 9.0", inplace=torch.square_)
square.grad(lambda dy, x: mul(mul(dy, 2.0), conjugated(x)))

tanh = unary("tanh", torch.tanh, "The hyperbolic tangent.", "0.0 -> 0.0", inplace=torch.tanh_)


@tanh.grad
def _(dy, y):
    y = conjugated(y)
    return mul(dy, sub(1.0, mul(y, y)))


sigmoid = unary("sigmoid", torch.sigmoid, "1 / (1 + exp(-x)).", "0.0 -> 0.5", inplace=torch.sigmoid_)


@sigmoid.grad
def _(dy, y):
    y = conjugated(y)
    return mul(dy, mul(y, sub(1.0, y)))


sin = unary("sin", torch.sin, "The sine.", "0.0 -> 0.0", inplace=torch.sin_)
cos = unary("cos", torch.cos, "The cosine.", "0.0 -> 1.0", inplace=torch.cos_)

sin.grad(lambda dy, x: mul(dy, cos(conjugated(x))))

cos.grad(lambda dy, x: neg(mul(dy, sin(conjugated(x)))))

abs = unary("abs", torch.abs, "The absolute value.", "-3.0 -> 3.0", inplace=torch.abs_)
sgn = unary(
    "sgn", torch.sgn, "-1, 0 or 1 by the sign of x; of a complex number, x / abs(x).", "-3.0 -> -1.0",
    inplace=Tensor.sgn_,
)  # fmt: skip
sign = unary("sign", torch.sign, "-1, 0 or 1, by the sign of x.", "-3.0 -> -1.0", inplace=Tensor.sign_)
reciprocal = unary("reciprocal", torch.reciprocal, "1 / x.", "4.0 -> 0.25", positive=True, inplace=torch.reciprocal_)

abs.grad(lambda dy, x: mul(dy, sgn(x) if x.dtype.is_complex else sign(x)))


@reciprocal.grad
def _(dy, y):
    y = conjugated(y)
    return neg(mul(dy, mul(y, y)))


sign.grad(lambda dy: mul(dy, 0.0))

logical_not = unary("logical_not", torch.logical_not, "True where x is zero or False.", "0.0 -> True", out=False)
isnan = unary("isnan", torch.isnan, "Whether x is not a number.", "0.0 -> False", out=False)
