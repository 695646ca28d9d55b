# Written by `make stubs` from the tables that bind these names. Whatever is changed here is lost.

"""`flow.special`: special functions under PyTorch's names."""

from typing import Any
from weft.tensor.tensor import Tensor

from weft import (
    digamma as digamma, erf as erf, erfc as erfc, erfinv as erfinv, exp2 as exp2, expm1 as expm1, i0 as i0,
    log1p as log1p, logit as logit, sinc as sinc, xlogy as xlogy
)
from weft.functional.pointwise.special import entr as entr, ndtr as ndtr, polygamma as polygamma, xlog1py as xlog1py

def airy_ai(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Airy's function."""

def bessel_j0(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Bessel's function of the first kind, of order 0."""

def bessel_j1(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Bessel's function of the first kind, of order 1."""

def bessel_y0(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Bessel's function of the second kind, of order 0."""

def bessel_y1(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Bessel's function of the second kind, of order 1."""

def chebyshev_polynomial_t(
    input: Tensor | float | int | bool | complex, n: Tensor | float | int | bool | complex, *, out: Tensor | None = None
) -> Tensor:
    """Chebyshev's polynomial of the first kind, of degree n, at x."""

def chebyshev_polynomial_u(
    input: Tensor | float | int | bool | complex, n: Tensor | float | int | bool | complex, *, out: Tensor | None = None
) -> Tensor:
    """Chebyshev's polynomial of the second kind, of degree n, at x."""

def chebyshev_polynomial_v(
    input: Tensor | float | int | bool | complex, n: Tensor | float | int | bool | complex, *, out: Tensor | None = None
) -> Tensor:
    """Chebyshev's polynomial of the third kind, of degree n, at x."""

def chebyshev_polynomial_w(
    input: Tensor | float | int | bool | complex, n: Tensor | float | int | bool | complex, *, out: Tensor | None = None
) -> Tensor:
    """Chebyshev's polynomial of the fourth kind, of degree n, at x."""

def erfcx(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """exp(x * x) times erfc(x), without overflow."""

def expit(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """1 / (1 + exp(-x))."""

def gammainc(
    input: Tensor | float | int | bool | complex, other: Tensor | float | int | bool | complex, *,
    out: Tensor | None = None
) -> Tensor:
    """The lower incomplete gamma function of order a at b, regularized."""

def gammaincc(
    input: Tensor | float | int | bool | complex, other: Tensor | float | int | bool | complex, *,
    out: Tensor | None = None
) -> Tensor:
    """The upper incomplete gamma function of order a at b, regularized."""

def gammaln(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The logarithm of the gamma function's absolute value."""

def hermite_polynomial_h(
    input: Tensor | float | int | bool | complex, n: Tensor | float | int | bool | complex, *, out: Tensor | None = None
) -> Tensor:
    """Hermite's polynomial as physicists write it, of degree n, at x."""

def hermite_polynomial_he(
    input: Tensor | float | int | bool | complex, n: Tensor | float | int | bool | complex, *, out: Tensor | None = None
) -> Tensor:
    """Hermite's polynomial as statisticians write it, of degree n, at x."""

def i0e(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """exp(-|x|) times i0(x)."""

def i1(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The modified Bessel function of the first kind, of order 1."""

def i1e(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """exp(-|x|) times i1(x)."""

def laguerre_polynomial_l(
    input: Tensor | float | int | bool | complex, n: Tensor | float | int | bool | complex, *, out: Tensor | None = None
) -> Tensor:
    """Laguerre's polynomial, of degree n, at x."""

def legendre_polynomial_p(
    input: Tensor | float | int | bool | complex, n: Tensor | float | int | bool | complex, *, out: Tensor | None = None
) -> Tensor:
    """Legendre's polynomial, of degree n, at x."""

def log_ndtr(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The logarithm of the normal distribution's CDF."""

def log_softmax(x: Tensor, dim: int | None = None, dtype: Any = None, *, out: Tensor | None = None) -> Tensor:
    """log(softmax(x)), computed without overflow."""

def logsumexp(
    x: Tensor, dim: int | tuple[int, ...] | list[int], keepdim: bool = False, *, out: Tensor | None = None
) -> Tensor:
    """log(sum(exp(x))) over some dimensions, without overflow."""

def modified_bessel_i0(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Bessel's modified function I of order 0."""

def modified_bessel_i1(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Bessel's modified function I of order 1."""

def modified_bessel_k0(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Bessel's modified function K of order 0."""

def modified_bessel_k1(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Bessel's modified function K of order 1."""

def multigammaln(x: Tensor, p: int, *, out: Tensor | None = None) -> Tensor:
    """The logarithm of the multivariate gamma function of dimension p."""

def ndtri(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The normal distribution's quantile function."""

def psi(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The derivative of lgamma."""

def round(x: Tensor, decimals: int = 0, *, out: Tensor | None = None) -> Tensor:
    """The nearest integer, ties to even; or the nearest number with so many decimals."""

def scaled_modified_bessel_k0(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """exp(x) K0(x)."""

def scaled_modified_bessel_k1(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """exp(x) K1(x)."""

def shifted_chebyshev_polynomial_t(
    input: Tensor | float | int | bool | complex, n: Tensor | float | int | bool | complex, *, out: Tensor | None = None
) -> Tensor:
    """Chebyshev's polynomial of the first kind, at 2 x - 1, of degree n, at x."""

def shifted_chebyshev_polynomial_u(
    input: Tensor | float | int | bool | complex, n: Tensor | float | int | bool | complex, *, out: Tensor | None = None
) -> Tensor:
    """Chebyshev's polynomial of the second kind, at 2 x - 1, of degree n, at x."""

def shifted_chebyshev_polynomial_v(
    input: Tensor | float | int | bool | complex, n: Tensor | float | int | bool | complex, *, out: Tensor | None = None
) -> Tensor:
    """Chebyshev's polynomial of the third kind, at 2 x - 1, of degree n, at x."""

def shifted_chebyshev_polynomial_w(
    input: Tensor | float | int | bool | complex, n: Tensor | float | int | bool | complex, *, out: Tensor | None = None
) -> Tensor:
    """Chebyshev's polynomial of the fourth kind, at 2 x - 1, of degree n, at x."""

def softmax(x: Tensor, dim: int | None = None, dtype: Any = None, *, out: Tensor | None = None) -> Tensor:
    """exp(x) divided by its sum along a dimension."""

def spherical_bessel_j0(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Bessel's spherical function of order 0: sin(x) / x."""

def zeta(
    input: Tensor | float | int | bool | complex, other: Tensor | float | int | bool | complex, *,
    out: Tensor | None = None
) -> Tensor:
    """Hurwitz's zeta function: the sum of 1 / (k + q) ** x over k from 0 on."""
