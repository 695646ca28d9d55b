"""`flow.special`: special functions under PyTorch's names."""

from __future__ import annotations

import math
from typing import Any, Final

from weft.api.signature import door
from weft.api.surface import PUBLIC
from weft.api.table import public
from weft.functional.create import creation
from weft.functional.neural.softmax import log_softmax, softmax
from weft.functional.pointwise.arithmetic import round
from weft.functional.reduce.sums import logsumexp
from weft.functional.tensor.dtypes import result_type
from weft.ops import OPS, ops
from weft.tensor.tensor import Tensor

OTHERS: Final = {  # ops that have another name here
    "expit": "sigmoid", "gammainc": "igamma", "gammaincc": "igammac", "gammaln": "lgamma", "multigammaln": "mvlgamma",
    "psi": "digamma",
}  # fmt: skip


@public("flow")
def polygamma(n: int, input: Any) -> Any:
    """The n-th derivative of digamma; as a method, `x.polygamma(n)`."""
    return ops.polygamma(input, n)


def entr(x: Any) -> Any:
    """-x * log(x), and 0 at zero.

    >>> flow.special.entr(flow.tensor([0.0, 1.0])).tolist()
    [-0.0, -0.0]
    """
    return ops.where(x < 0, -math.inf, -ops.xlogy(x, x))


def ndtr(x: Any) -> Any:
    """The normal distribution's cumulative distribution function."""
    return (ops.erf(x * math.sqrt(0.5)) + 1) * 0.5


def xlog1py(x: Any, y: Any) -> Any:
    """x * log(1 + y), and 0 where x is 0."""
    dtype = result_type(x, y)
    x, y = (v if isinstance(v, Tensor) else creation.tensor(v) for v in (x, y))
    none = ops.logical_and(x == 0, ops.logical_or(y <= -1, ops.isinf(y)))
    made = ops.where(none, 0.0, x * ops.log1p(ops.masked_fill(y, none, 0.0)))
    return ops.cast(made, dtype) if dtype.differentiable else made


OWN: Final = (entr, log_softmax, logsumexp, ndtr, polygamma, round, softmax, xlog1py)
__all__ = sorted(PUBLIC["special"])  # pyright: ignore[reportUnsupportedDunderAll]
globals().update({name: OPS[OTHERS.get(name, name)].entry for name in PUBLIC["special"] - {f.__name__ for f in OWN}})
globals().update({f.__name__: door(f) for f in OWN})
