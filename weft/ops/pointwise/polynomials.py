"""Orthogonal polynomials, and rare Bessel and Airy functions. PyTorch has no derivative of most of them; where a
derivative is in the same family, it is given here.
"""

from __future__ import annotations

from typing import Any, Final

import torch
from torch import Tensor

from weft.ops.declaration import Op
from weft.ops.pointwise.arithmetic import add, div, mul, neg, square, sub, underived
from weft.ops.pointwise.copies import where
from weft.ops.pointwise.declaring import binary, unary
from weft.ops.pointwise.elementary import cos, sin
from weft.ops.pointwise.logic import eq
from weft.ops.shape.broadcast import fit

POLYNOMIALS: Final = {  # by PyTorch's name: its description, an example of degree 2
    "chebyshev_polynomial_t": ("Chebyshev's polynomial of the first kind", "3.0, 2 -> 17.0"),
    "chebyshev_polynomial_u": ("Chebyshev's polynomial of the second kind", "3.0, 2 -> 35.0"),
    "chebyshev_polynomial_v": ("Chebyshev's polynomial of the third kind", "3.0, 2 -> 29.0"),
    "chebyshev_polynomial_w": ("Chebyshev's polynomial of the fourth kind", "3.0, 2 -> 41.0"),
    "shifted_chebyshev_polynomial_t": ("Chebyshev's polynomial of the first kind, at 2 x - 1", "2.0, 2 -> 17.0"),
    "shifted_chebyshev_polynomial_u": ("Chebyshev's polynomial of the second kind, at 2 x - 1", "2.0, 2 -> 35.0"),
    "shifted_chebyshev_polynomial_v": ("Chebyshev's polynomial of the third kind, at 2 x - 1", "2.0, 2 -> 29.0"),
    "shifted_chebyshev_polynomial_w": ("Chebyshev's polynomial of the fourth kind, at 2 x - 1", "2.0, 2 -> 41.0"),
    "hermite_polynomial_h": ("Hermite's polynomial as physicists write it", "3.0, 2 -> 34.0"),
    "hermite_polynomial_he": ("Hermite's polynomial as statisticians write it", "3.0, 2 -> 8.0"),
    "laguerre_polynomial_l": ("Laguerre's polynomial", "3.0, 2 -> -0.5"),
    "legendre_polynomial_p": ("Legendre's polynomial", "3.0, 2 -> 13.0"),
}


def _polynomial(name: str, says: str, shows: str) -> Op:
    kernel = getattr(torch.special, name)
    point, _, rest = shows.partition(", ")
    degree, _, gives = rest.partition(" -> ")

    def run(x: Any, n: Any, **out: Any) -> Tensor:
        return kernel(x, n, **out)

    doc = f"{says}, of degree n, at x.\n\n>>> flow.special.{name}(flow.tensor([{point}]), {degree}).tolist()\n[{gives}]"
    made = binary(name, run, doc, second="n")
    made.samples(lambda rand: [(rand(4, 6), torch.arange(6)), (rand(4, 6), 3)])
    return made


OF: Final = {name: _polynomial(name, *row) for name, row in POLYNOMIALS.items()}


def _derivative(name: str, by: float) -> None:
    """Set the derivative of a polynomial family: `by` times the degree times the polynomial of the next lower
    degree."""

    @OF[name].grad
    def _(dy, input, n, input_shape):
        return fit(mul(dy, mul(OF[name](input, n - 1), n * by)), input_shape), None  # n may be a number


_derivative("hermite_polynomial_h", 2.0)
_derivative("hermite_polynomial_he", 1.0)


def _function(name: str, says: str, point: str, gives: str, positive: bool = False) -> Op:
    doc = f"{says}\n\n>>> round(flow.special.{name}(flow.tensor({point})).item(), 4)\n{gives}"
    return unary(name, getattr(torch.special, name), doc, out=False, positive=positive)


airy_ai = _function("airy_ai", "Airy's function.", "0.0", "0.355")
modified_bessel_i0 = _function("modified_bessel_i0", "Bessel's modified function I of order 0.", "0.0", "1.0")
modified_bessel_i1 = _function("modified_bessel_i1", "Bessel's modified function I of order 1.", "0.0", "0.0")
modified_bessel_k0 = _function("modified_bessel_k0", "Bessel's modified function K of order 0.", "1.0", "0.421", True)
modified_bessel_k1 = _function("modified_bessel_k1", "Bessel's modified function K of order 1.", "1.0", "0.6019", True)
scaled_modified_bessel_k0 = _function("scaled_modified_bessel_k0", "exp(x) K0(x).", "1.0", "1.1445", True)
scaled_modified_bessel_k1 = _function("scaled_modified_bessel_k1", "exp(x) K1(x).", "1.0", "1.6362", True)
spherical_bessel_j0 = _function(
    "spherical_bessel_j0", "Bessel's spherical function of order 0: sin(x) / x.", "0.0", "1.0"
)

modified_bessel_i0.grad(lambda dy, x: mul(dy, modified_bessel_i1(x)))
modified_bessel_k0.grad(lambda dy, x: neg(mul(dy, modified_bessel_k1(x))))


@modified_bessel_i1.grad
def _(dy, x, y):
    at_zero = eq(x, 0)
    return mul(dy, where(at_zero, 0.5, sub(modified_bessel_i0(x), div(y, where(at_zero, 1.0, x)))))


modified_bessel_k1.grad(lambda dy, x, y: neg(mul(dy, add(modified_bessel_k0(x), div(y, x)))))

scaled_modified_bessel_k0.grad(lambda dy, x, y: mul(dy, sub(y, scaled_modified_bessel_k1(x))))

scaled_modified_bessel_k1.grad(lambda dy, x, y: mul(dy, sub(sub(y, scaled_modified_bessel_k0(x)), div(y, x))))


@spherical_bessel_j0.grad
def _(dy, x):
    at_zero = eq(x, 0)
    safe = where(at_zero, 1.0, x)
    return mul(dy, where(at_zero, 0.0, div(sub(mul(x, cos(x)), sin(x)), square(safe))))


zeta = binary(
    "zeta", torch.special.zeta, "Hurwitz's zeta function: the sum of 1 / (k + q) ** x over k from 0 on.\n\n"
    ">>> round(flow.special.zeta(flow.tensor(2.0), 1.0).item(), 4)\n1.6449",
)  # fmt: skip
# integer powers, as the power has no gradient
zeta.samples(lambda rand: [(torch.arange(24).reshape(4, 6) % 3 + 2, rand(4, 6).abs() + 0.5)])


@zeta.grad
def _(dy, input, other, other_shape, needs):
    by_other = fit(neg(mul(dy, mul(input, zeta(add(input, 1.0), other)))), other_shape)
    return underived("zeta") if needs[0] else None, by_other
