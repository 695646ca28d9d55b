"""`flow.special`: special functions under PyTorch's names."""

from __future__ import annotations

import math
from typing import Any

from weft.api.signature import door
from weft.api.table import calling
from weft.functional.create import creation
from weft.functional.neural.softmax import log_softmax, softmax
from weft.functional.pointwise.arithmetic import round
from weft.functional.reduce.sums import logsumexp
from weft.ops import ops
from weft.tensor.tensor import Tensor

bessel_j0, bessel_j1, bessel_y0, bessel_y1, erfcx, gammainc, gammaincc, i0e, i1e, log_ndtr = map(
    calling,
    ("bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1", "erfcx", "igamma", "igammac", "i0e", "i1e", "log_ndtr"),
)
digamma, erf, erfc, erfinv, exp2, expm1, gammaln, i0, i1, log1p, logit, sinc, xlogy = map(
    calling,
    ("digamma", "erf", "erfc", "erfinv", "exp2", "expm1", "lgamma", "i0", "i1", "log1p", "logit", "sinc", "xlogy"),
)  # fmt: skip
(
    airy_ai, modified_bessel_i0, modified_bessel_i1, modified_bessel_k0, modified_bessel_k1,
    scaled_modified_bessel_k0, scaled_modified_bessel_k1, spherical_bessel_j0, zeta,
) = map(
    calling,
    (
     "airy_ai", "modified_bessel_i0", "modified_bessel_i1", "modified_bessel_k0", "modified_bessel_k1",
     "scaled_modified_bessel_k0", "scaled_modified_bessel_k1", "spherical_bessel_j0", "zeta",
    ),
)  # fmt: skip
(
    chebyshev_polynomial_t, chebyshev_polynomial_u, chebyshev_polynomial_v, chebyshev_polynomial_w,
    shifted_chebyshev_polynomial_t, shifted_chebyshev_polynomial_u, shifted_chebyshev_polynomial_v,
    shifted_chebyshev_polynomial_w, hermite_polynomial_h, hermite_polynomial_he, laguerre_polynomial_l,
    legendre_polynomial_p,
) = map(
    calling,
    (
     "chebyshev_polynomial_t", "chebyshev_polynomial_u", "chebyshev_polynomial_v", "chebyshev_polynomial_w",
     "shifted_chebyshev_polynomial_t", "shifted_chebyshev_polynomial_u", "shifted_chebyshev_polynomial_v",
     "shifted_chebyshev_polynomial_w", "hermite_polynomial_h", "hermite_polynomial_he", "laguerre_polynomial_l",
     "legendre_polynomial_p",
    ),
)  # fmt: skip
expit, multigammaln, psi = map(calling, ("sigmoid", "mvlgamma", "digamma"))


def polygamma(n: int, x: Any) -> Any:
    """The n-th derivative of digamma."""
    return ops.polygamma(x, n)


def entr(x: Any) -> Any:
    """-x * log(x), and 0 at zero.

    >>> flow.special.entr(flow.tensor([0.0, 1.0])).tolist()
    [-0.0, -0.0]
    """
    return ops.where(x < 0, -math.inf, -xlogy(x, x))


def ndtr(x: Any) -> Any:
    """The normal distribution's cumulative distribution function."""
    return (erf(x * math.sqrt(0.5)) + 1) * 0.5


def ndtri(p: Any) -> Any:
    """The normal distribution's quantile function."""
    return erfinv(2 * p - 1) * math.sqrt(2)


def xlog1py(x: Any, y: Any) -> Any:
    """x * log(1 + y), and 0 where x is 0."""
    x, y = (v if isinstance(v, Tensor) else creation.tensor(v) for v in (x, y))
    none = ops.logical_and(x == 0, ops.logical_or(y <= -1, ops.isinf(y)))
    return ops.where(none, 0.0, x * log1p(ops.masked_fill(y, none, 0.0)))


__all__ = [
    "airy_ai", "bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1", "chebyshev_polynomial_t", "chebyshev_polynomial_u",
    "chebyshev_polynomial_v", "chebyshev_polynomial_w", "digamma", "entr", "erf", "erfc", "erfcx", "erfinv", "exp2",
    "expit", "expm1", "gammainc", "gammaincc", "gammaln", "hermite_polynomial_h", "hermite_polynomial_he", "i0", "i0e",
    "i1", "i1e", "laguerre_polynomial_l", "legendre_polynomial_p", "log1p", "log_ndtr", "log_softmax", "logit",
    "logsumexp", "modified_bessel_i0", "modified_bessel_i1", "modified_bessel_k0", "modified_bessel_k1", "multigammaln",
    "ndtr", "ndtri", "polygamma", "psi", "round", "scaled_modified_bessel_k0", "scaled_modified_bessel_k1",
    "shifted_chebyshev_polynomial_t", "shifted_chebyshev_polynomial_u", "shifted_chebyshev_polynomial_v",
    "shifted_chebyshev_polynomial_w", "sinc", "softmax", "spherical_bessel_j0", "xlog1py", "xlogy", "zeta",
]  # fmt: skip

globals().update({name: door(globals()[name]) for name in __all__})
