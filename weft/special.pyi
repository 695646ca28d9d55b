# Written by `make stubs` from the tables that bind these names. Whatever is changed here is lost.

"""`flow.special`: functions of mathematics under the names that PyTorch groups them by."""

from weft.tensor.tensor import Tensor

__all__ = [
    "digamma", "entr", "erf", "erfc", "erfinv", "exp2", "expit", "expm1", "gammaln", "i0", "i1", "log1p", "log_softmax",
    "logit", "logsumexp", "multigammaln", "ndtr", "ndtri", "polygamma", "psi", "round", "sinc", "softmax", "xlog1py",
    "xlogy"
]

from weft.functional.reduction import logsumexp as logsumexp
from weft.functional.special import entr as entr
from weft.functional.special import ndtr as ndtr
from weft.functional.special import ndtri as ndtri
from weft.functional.special import polygamma as polygamma
from weft.functional.special import xlog1py as xlog1py

def digamma(x: Tensor) -> Tensor:
    """The derivative of lgamma."""

def erf(x: Tensor) -> Tensor:
    """The error function: the probability of a normal draw of variance 1/2 within x of its mean.

    >>> flow.erf(flow.tensor([0.0])).tolist()
    [0.0]
    """

def erfc(x: Tensor) -> Tensor:
    """1 - erf(x).

    >>> flow.erfc(flow.tensor([0.0])).tolist()
    [1.0]
    """

def erfinv(x: Tensor) -> Tensor:
    """The inverse of erf.

    >>> flow.erfinv(flow.tensor([0.0])).tolist()
    [0.0]
    """

def exp2(x: Tensor) -> Tensor:
    """2 to the power x.

    >>> flow.exp2(flow.tensor([3.0])).tolist()
    [8.0]
    """

def expit(x: Tensor) -> Tensor:
    """1 / (1 + exp(-x)).

    >>> flow.sigmoid(flow.tensor([0.0])).tolist()
    [0.5]
    """

def expm1(x: Tensor) -> Tensor:
    """exp(x) - 1, exact near zero.

    >>> flow.expm1(flow.tensor([0.0])).tolist()
    [0.0]
    """

def gammaln(x: Tensor) -> Tensor:
    """The logarithm of the gamma function's absolute value.

    >>> flow.lgamma(flow.tensor([1.0])).tolist()
    [0.0]
    """

def i0(x: Tensor) -> Tensor:
    """The modified Bessel function of the first kind, of order 0."""

def i1(x: Tensor) -> Tensor:
    """The modified Bessel function of the first kind, of order 1."""

def log1p(x: Tensor) -> Tensor:
    """log(1 + x), exact near zero.

    >>> flow.log1p(flow.tensor([0.0])).tolist()
    [0.0]
    """

def log_softmax(x: Tensor, dim: int) -> Tensor:
    """The logarithm of softmax, computed without overflow.

    >>> flow.exp(flow.log_softmax(flow.zeros(2), 0)).tolist()
    [0.5, 0.5]
    """

def logit(x: Tensor, eps: float | None = None) -> Tensor:
    """log(x / (1 - x)), the inverse of sigmoid; x is held in [eps, 1 - eps] if that is given.

    >>> flow.logit(flow.tensor([0.5])).tolist()
    [0.0]
    """

def multigammaln(x: Tensor, p: int) -> Tensor:
    """The logarithm of the gamma function of p dimensions.

    >>> flow.mvlgamma(flow.tensor([1.0]), 1).tolist()
    [0.0]
    """

def psi(x: Tensor) -> Tensor:
    """The derivative of lgamma."""

def round(x: Tensor) -> Tensor:
    """The nearest whole number; of two, the even one."""

def sinc(x: Tensor) -> Tensor:
    """sin(pi x) / (pi x), and 1 at zero.

    >>> flow.sinc(flow.tensor([0.0])).tolist()
    [1.0]
    """

def softmax(x: Tensor, dim: int) -> Tensor:
    """exp(x) divided by its sum along a dimension.

    >>> flow.softmax(flow.zeros(2), 0).tolist()
    [0.5, 0.5]
    """

def xlogy(input: Tensor | float | int | bool | complex, other: Tensor | float | int | bool | complex) -> Tensor:
    """a * log(b), and 0 where a is.

    >>> flow.xlogy(flow.tensor([2.0]), 1.0).tolist()
    [0.0]
    """
