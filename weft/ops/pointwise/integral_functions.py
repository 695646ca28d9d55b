"""Special functions: Bessel, incomplete gamma, scaled error function, normal quantiles."""

from __future__ import annotations

import math

import torch

from weft.ops.pointwise.arithmetic import add, div, mul, neg, reciprocal, sign, square, sub, underived
from weft.ops.pointwise.copies import where
from weft.ops.pointwise.declaring import binary, unary
from weft.ops.pointwise.elementary import exp, log
from weft.ops.pointwise.gamma import lgamma
from weft.ops.pointwise.logic import eq
from weft.ops.shape.broadcast import fit

i0 = unary("i0", torch.i0, "The modified Bessel function of the first kind, of order 0.",
           inplace=torch.i0_)  # fmt: skip
i1 = unary("i1", torch.special.i1, "The modified Bessel function of the first kind, of order 1.", out=False)

i0.grad(lambda dy, x: mul(dy, i1(x)))


@i1.grad
def _(dy, x, y):
    safe = where(eq(x, 0), 1.0, x)
    return mul(dy, where(eq(x, 0), 0.5, sub(i0(x), div(y, safe))))


i0e = unary("i0e", torch.special.i0e, "exp(-|x|) times i0(x).", out=False)
i1e = unary("i1e", torch.special.i1e, "exp(-|x|) times i1(x).", out=False)

i0e.grad(lambda dy, x, y: mul(dy, sub(i1e(x), mul(sign(x), y))))


@i1e.grad
def _(dy, x, y):
    at_zero = eq(x, 0)
    derivative = sub(i0e(x), mul(y, add(sign(x), reciprocal(where(at_zero, 1.0, x)))))
    return mul(dy, where(at_zero, 0.5, derivative))


bessel_j0 = unary("bessel_j0", torch.special.bessel_j0, "Bessel's function of the first kind, of order 0.", out=False)
bessel_j1 = unary("bessel_j1", torch.special.bessel_j1, "Bessel's function of the first kind, of order 1.", out=False)
bessel_y0 = unary(
    "bessel_y0", torch.special.bessel_y0, "Bessel's function of the second kind, of order 0.", out=False, positive=True
)
bessel_y1 = unary(
    "bessel_y1", torch.special.bessel_y1, "Bessel's function of the second kind, of order 1.", out=False, positive=True
)
bessel_j0.grad(lambda dy, x: neg(mul(dy, bessel_j1(x))))
bessel_y0.grad(lambda dy, x: neg(mul(dy, bessel_y1(x))))


@bessel_j1.grad
def _(dy, x, y):
    at_zero = eq(x, 0)
    return mul(dy, where(at_zero, 0.5, sub(bessel_j0(x), div(y, where(at_zero, 1.0, x)))))


bessel_y1.grad(lambda dy, x, y: mul(dy, sub(bessel_y0(x), div(y, x))))

erfcx = unary("erfcx", torch.special.erfcx, "exp(x * x) times erfc(x), without overflow.", "0.0 -> 1.0", out=False)
erfcx.__doc__ = (erfcx.__doc__ or "").replace("flow.erfcx", "flow.special.erfcx")
erfcx.grad(lambda dy, x, y: mul(dy, sub(mul(mul(x, y), 2.0), 2 / math.sqrt(math.pi))))

log_ndtr = unary("log_ndtr", torch.special.log_ndtr, "The logarithm of the normal distribution's CDF.",
                 out=False)  # fmt: skip
log_ndtr.grad(lambda dy, x: div(mul(dy, math.sqrt(2 / math.pi)), erfcx(mul(x, -math.sqrt(0.5)))))

ndtri = unary("ndtri", torch.special.ndtri, "The normal distribution's quantile function.", "0.5 -> 0.0",
              place="flow.special")  # fmt: skip
ndtri.grad(lambda dy, y: mul(dy, mul(exp(mul(square(y), 0.5)), math.sqrt(2 * math.pi))))
ndtri.samples(lambda rand: [(torch.sigmoid(rand(4, 6)),)])

igamma = binary("igamma", torch.igamma, "The lower incomplete gamma function of order a at b, regularized.",
                positive=True, scalar=False)  # fmt: skip
igammac = binary("igammac", torch.igammac, "The upper incomplete gamma function of order a at b, regularized.",
                 positive=True, scalar=False)  # fmt: skip


for _share in (igamma, igammac):  # an integer order, as the order has no gradient
    _share.samples(lambda rand: [(torch.arange(24).reshape(4, 6) % 3 + 1, rand(4, 6).abs() + 0.5)])


def _density(a, x):
    return exp(sub(sub(mul(sub(a, 1.0), log(x)), x), lgamma(a)))


@igamma.grad
def _(dy, input, other, other_shape, needs):
    return underived("igamma: input") if needs[0] else None, fit(mul(dy, _density(input, other)), other_shape)


@igammac.grad
def _(dy, input, other, other_shape, needs):
    return underived("igammac: input") if needs[0] else None, neg(fit(mul(dy, _density(input, other)), other_shape))
