"""The gamma function and its relatives, element-wise."""

from __future__ import annotations

import torch
from torch import Tensor

from weft.ops.declaration import op
from weft.ops.pointwise.arithmetic import add, mul, sub
from weft.ops.pointwise.declaring import unary
from weft.ops.pointwise.elementary import _above_zero

lgamma = unary(
    "lgamma", torch.lgamma, "The logarithm of the gamma function's absolute value.", "1.0 -> 0.0",
    inplace=Tensor.lgamma_, positive=True,
)  # fmt: skip
lgamma.grad(lambda dy, x: mul(dy, polygamma(x, 0)))


@op("... -> ...")
def polygamma(x: Tensor, n: int) -> Tensor:
    """The n-th derivative of digamma, which is the derivative of lgamma.

    >>> round(flow.tensor([1.]).polygamma(1).item(), 4)
    1.6449
    """
    return torch.polygamma(n, x)


polygamma.grad(lambda dy, x, n: mul(dy, polygamma(x, n + 1)))
polygamma.samples(lambda rand: [(_above_zero(rand(4, 6)), 0), (_above_zero(rand(4, 6)), 1)])

digamma = unary("digamma", torch.digamma, "The derivative of lgamma.", inplace=Tensor.digamma_, positive=True)
digamma.grad(lambda dy, x: mul(dy, polygamma(x, 1)))


@op("... -> ...", memory_order="meta")
def mvlgamma(x: Tensor, p: int) -> Tensor:
    """The logarithm of the multivariate gamma function of dimension p.

    >>> flow.mvlgamma(flow.tensor([1.0]), 1).tolist()
    [0.0]
    """
    return torch.mvlgamma(x, p)


@mvlgamma.grad
def _(dy, x, p):
    derivative = polygamma(x, 0)
    for i in range(1, p):
        derivative = add(derivative, polygamma(sub(x, i / 2), 0))
    return mul(dy, derivative)


mvlgamma.samples(lambda rand: [(rand(4, 6).abs() + 2, 3)])
