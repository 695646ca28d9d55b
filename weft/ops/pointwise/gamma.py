"""The gamma function and its relatives, element-wise."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from weft.ops.declaration import op
from weft.ops.pointwise.arithmetic import add, conjugated, div, mul, neg, square, sub
from weft.ops.pointwise.declaring import binary, unary
from weft.ops.pointwise.elementary import _above_zero, _inside_one, exp
from weft.ops.shape.broadcast import fit

lgamma = unary(
    "lgamma", torch.lgamma, "The logarithm of the gamma function's absolute value.", "1.0 -> 0.0",
    inplace=Tensor.lgamma_, positive=True,
)  # fmt: skip
lgamma.grad(lambda dy, x: mul(dy, polygamma(x, 0)))


@op("... -> ...")
def polygamma(x: Tensor, n: int) -> Tensor:
    """The n-th derivative of digamma, which is the derivative of lgamma.

    >>> round(flow._C.polygamma(flow.tensor([1.]), 1).item(), 4)
    1.6449
    """
    return torch.polygamma(n, x)


polygamma.grad(lambda dy, x, n: mul(dy, polygamma(x, n + 1)))
polygamma.samples(lambda rand: [(_above_zero(rand(4, 6)), 0), (_above_zero(rand(4, 6)), 1)])

digamma = unary(
    "digamma", torch.digamma, "The derivative of lgamma.", inplace=Tensor.digamma_, positive=True
)  # fmt: skip
digamma.grad(lambda dy, x: mul(dy, polygamma(x, 1)))

erfinv = unary("erfinv", torch.erfinv, "The inverse of erf.", "0.0 -> 0.0", inplace=Tensor.erfinv_)
erfinv.samples(lambda rand: [(_inside_one(rand(4, 6)),)])
erfinv.grad(lambda dy, y: mul(dy, mul(exp(square(y)), math.sqrt(math.pi) / 2)))

logaddexp = binary(
    "logaddexp", torch.logaddexp, "log(exp(a) + exp(b)), without overflow.", scalar=False,
)  # fmt: skip


@logaddexp.grad
def _(dy, input, other, input_shape, other_shape, needs):
    apart = sub(other, input)
    return (
        fit(div(dy, conjugated(add(exp(apart), 1.0))), input_shape) if needs[0] else None,
        fit(div(dy, conjugated(add(exp(neg(apart)), 1.0))), other_shape) if needs[1] else None,
    )


@op("... -> ...")
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
