"""Piecewise activations with thresholds, and self-normalizing ones."""

from __future__ import annotations

import torch
from torch import Tensor

from weft.ops.declaration import op
from weft.ops.kernels import aten
from weft.ops.neural.activations import sigmoid
from weft.ops.pointwise.arithmetic import abs, add, conj, div, mul, sgn, square, sub
from weft.ops.pointwise.complex_numbers import real
from weft.ops.pointwise.copies import where
from weft.ops.pointwise.logic import gt, lt
from weft.ops.shape.broadcast import fit

ALPHA, SCALE = 1.6732632423543772, 1.0507009873554805  # of selu, from its paper


@op("... -> ...", steady="x")
def threshold(x: Tensor, threshold: float, value: float) -> Tensor:
    """x where it is above the threshold, `value` elsewhere.

    >>> flow.nn.functional.threshold(flow.tensor([0., 2.]), 1., 7.).tolist()
    [7.0, 2.0]
    """
    return aten.threshold(x, threshold, value)


threshold.out(lambda y, x, threshold, value: aten.threshold(x, threshold, value, out=y))
threshold.inplace(lambda x, threshold, value: aten.threshold_(x, threshold, value))
threshold.grad(lambda dy, x, threshold: where(gt(x, threshold), dy, 0.0))
threshold.samples(lambda rand: [(rand(4, 6), 0.1, 2.0)])


@op("... -> ...", steady="x")
def hardshrink(x: Tensor, lambd: float = 0.5) -> Tensor:
    """x where its absolute value is above lambd, zero elsewhere.

    >>> flow.nn.functional.hardshrink(flow.tensor([0.1, 2.])).tolist()
    [0.0, 2.0]
    """
    return aten.hardshrink(x, lambd)


hardshrink.inplace(lambda x, lambd: aten.hardshrink(x, lambd, out=x))
hardshrink.grad(lambda dy, x, lambd: where(gt(abs(x), lambd), dy, 0.0))
hardshrink.samples(lambda rand: [rand(4, 6)])


@op("... -> ...", steady="x")
def softshrink(x: Tensor, alpha: float = 0.5) -> Tensor:
    """x shrunk towards zero by alpha, and zero where |x| is at most alpha.

    >>> flow.nn.functional.softshrink(flow.tensor([0.1, 2.])).tolist()
    [0.0, 1.5]
    """
    return aten.softshrink(x, alpha)


softshrink.inplace(lambda x, alpha: aten.softshrink(x, alpha, out=x))
softshrink.grad(lambda dy, x, alpha: where(gt(abs(x), alpha), dy, 0.0))
softshrink.samples(lambda rand: [rand(4, 6)])


@op("... -> ...", steady="x")
def hardtanh(x: Tensor, min_val: float = -1.0, max_val: float = 1.0) -> Tensor:
    """x limited to two bounds; unlike `clamp`, its gradient is zero on them.

    >>> flow.nn.functional.hardtanh(flow.tensor([-3., 0.5])).tolist()
    [-1.0, 0.5]
    """
    return aten.hardtanh(x, min_val, max_val)


hardtanh.out(lambda y, x, min_val, max_val: aten.hardtanh(x, min_val, max_val, out=y))
hardtanh.inplace(lambda x, min_val, max_val: aten.hardtanh_(x, min_val, max_val))
hardtanh.grad(lambda dy, x, min_val, max_val: where(gt(x, min_val), where(lt(x, max_val), dy, 0.0), 0.0))
hardtanh.samples(lambda rand: [(rand(4, 6), -0.5, 0.5)])


@op("... -> ...")
def selu(x: Tensor) -> Tensor:
    """elu, scaled to keep a network's variance near one.

    >>> flow.nn.functional.selu(flow.zeros(1)).tolist()
    [0.0]
    """
    return aten.selu(x)


selu.inplace(lambda x: aten.selu_(x))
selu.grad(lambda dy, x, y: mul(dy, where(gt(x, 0.0), SCALE, add(y, ALPHA * SCALE))))
selu.samples(lambda rand: [rand(4, 6)])


@op("... -> ...")
def celu(x: Tensor, alpha: float = 1.0) -> Tensor:
    """x where it is above zero, alpha * (exp(x / alpha) - 1) below.

    >>> flow.nn.functional.celu(flow.zeros(1)).tolist()
    [0.0]
    """
    return aten.celu(x, alpha)


celu.inplace(lambda x, alpha: aten.celu_(x, alpha))
celu.grad(lambda dy, x, y, alpha: mul(dy, where(gt(x, 0.0), 1.0, add(mul(y, 1.0 / alpha), 1.0))))
celu.samples(lambda rand: [(rand(4, 6), 1.5)])


@op("... -> ...")
def softsign(x: Tensor) -> Tensor:
    """x / (1 + |x|).

    >>> flow.nn.functional.softsign(flow.ones(1)).tolist()
    [0.5]
    """
    return x / (x.abs() + 1)


@softsign.grad
def _(dy, x):
    if not x.dtype.is_complex:
        return div(dy, square(add(abs(x), 1.0)))
    wide = add(abs(x), 1.0)
    return sub(div(dy, wide), mul(sgn(x), div(real(mul(conj(dy), x)), square(wide))))


softsign.samples(lambda rand: [rand(4, 6)])


@op("... -> ...")
def quick_gelu(x: Tensor) -> Tensor:
    """x * sigmoid(1.702 x), an approximation of gelu.

    >>> flow._C.quick_gelu(flow.zeros(1)).tolist()
    [0.0]
    """
    return x * torch.sigmoid(x * 1.702)


@quick_gelu.grad
def _(dy, x):
    s = sigmoid(mul(x, 1.702))
    return mul(dy, add(s, mul(mul(mul(x, 1.702), s), sub(1.0, s))))


quick_gelu.samples(lambda rand: [rand(4, 6)])


@op("..., ... -> ...", steady="x", promotes=True)
def bent(x: Tensor, slope: Tensor) -> Tensor:
    """x where it is positive, slope * x elsewhere; the slope broadcasts against x.

    >>> flow._C.bent(flow.tensor([-1., 2.]), flow.tensor([0.5])).tolist()
    [-0.5, 2.0]
    """
    return torch.where(x > 0, x, slope * x)


@bent.grad
def _(dy, x, slope, slope_shape, needs):
    above = gt(x, 0.0)
    return (
        where(above, dy, mul(dy, slope)) if needs[0] else None,
        fit(where(above, 0.0, mul(dy, x)), slope_shape) if needs[1] else None,
    )


bent.samples(lambda rand: [(rand(4, 6), rand(6)), (rand(2, 4, 3), rand(4, 1))])
