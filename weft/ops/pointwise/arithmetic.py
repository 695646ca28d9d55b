"""Element-wise arithmetic."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from weft.core.errors import AutogradError
from weft.ops.create.constructors import zeros_like
from weft.ops.declaration import Scalar, op
from weft.ops.pointwise.copies import where
from weft.ops.pointwise.declaring import binary, unary
from weft.ops.pointwise.logic import eq, gt, lt
from weft.ops.shape.broadcast import fit

conj = unary(
    "conj", torch.conj_physical, "The complex conjugate; x itself, if it is real.", "1 + 2j -> (1-2j)", linear=True
)
conj.grad(lambda dy: conj(dy))


def conjugated(x: Any) -> Any:
    """The conjugate of a complex factor, as in the gradient of a product; a real one itself."""
    try:
        data = x.blob.data
    except AttributeError:  # a number
        return x.conjugate() if isinstance(x, complex) else x
    return conj(x) if (x.dtype.is_complex if data is None else data.is_complex()) else x


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


@op("..., ... -> ...", linear="input+other")
def add_scaled(input: Tensor | Scalar, other: Tensor | Scalar, alpha: Scalar) -> Tensor:
    """input + alpha * other, element by element.

    >>> flow._C.add_scaled(flow.ones(2), flow.ones(2), 3).tolist()
    [4.0, 4.0]
    """
    return torch.add(input, other, alpha=alpha)


add_scaled.out(lambda y, input, other, alpha: torch.add(input, other, alpha=alpha, out=y))
add_scaled.inplace(lambda input, other, alpha: input.add_(other, alpha=alpha))
add_scaled.samples(lambda rand: [(rand(4, 6), rand(6), 0.5), (rand(4, 1), rand(4, 6), 2), (rand(4, 6), 1.5, 3)])


@add_scaled.grad
def _(dy, alpha, input_shape, other_shape, needs):
    to_other = fit(mul(dy, conjugated(alpha)), other_shape) if needs[1] else None
    return fit(dy, input_shape) if needs[0] else None, to_other


mul = binary(
    "mul", torch.mul, "a * b, element by element.", "3.0, 2.0 -> 6.0",
    linear="input other", inplace=lambda a, b: a.mul_(b),
)  # fmt: skip


@mul.grad
def _(dy, input, other, input_shape, other_shape, needs):
    return (
        fit(mul(dy, conjugated(other)), input_shape) if needs[0] else None,
        fit(mul(dy, conjugated(input)), other_shape) if needs[1] else None,
    )


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
    return (
        fit(da, input_shape) if needs[0] else None,
        fit(neg(mul(da, conjugated(div(input, other)))), other_shape) if needs[1] else None,
    )


def underived(name: str) -> Any:
    """Refuse a derivative that nobody has: zero would be a wrong one."""
    raise AutogradError(f"the derivative for '{name}' is not implemented: give x.detach() there")


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
    shared = where(eq(larger, smaller), mul(dy, 0.5), dy)  # no product with 0, which makes nan of inf
    first, second = where(lt(larger, smaller), 0.0, shared), where(gt(larger, smaller), 0.0, shared)
    return fit(first, a_shape), fit(second, b_shape)


neg = unary("neg", torch.neg, "-x.", "3.0 -> -3.0", linear=True, inplace=torch.neg_)
neg.grad(lambda dy: neg(dy))

square = unary("square", torch.square, "x * x.", "3.0 -> 9.0", inplace=torch.square_)
square.grad(lambda dy, x: mul(mul(dy, conjugated(x)), 2.0))

abs = unary("abs", torch.abs, "The absolute value.", "-3.0 -> 3.0", inplace=torch.abs_)
abs.grad(lambda dy, x: mul(dy, sgn(x) if x.dtype.is_complex else sign(x)))

sgn = unary(
    "sgn", torch.sgn, "-1, 0 or 1 by the sign of x; of a complex number, x / abs(x).", "-3.0 -> -1.0",
    inplace=Tensor.sgn_,
)  # fmt: skip

sign = unary("sign", torch.sign, "-1, 0 or 1, by the sign of x.", "-3.0 -> -1.0", inplace=Tensor.sign_)
sign.grad(lambda dy: zeros_like(dy))

reciprocal = unary("reciprocal", torch.reciprocal, "1 / x.", "4.0 -> 0.25", positive=True, inplace=torch.reciprocal_)


@reciprocal.grad
def _(dy, y):
    y = conjugated(y)
    return neg(mul(dy, mul(y, y)))
