"""Piecewise activations with thresholds, and self-normalizing ones."""

from __future__ import annotations

import torch
from torch import Tensor

from weft.core.dispatch import here
from weft.ops.declaration import op
from weft.ops.kernels import aten
from weft.ops.neural.activations import sigmoid
from weft.ops.neural.gradients import gradient_by_kernel
from weft.ops.pointwise.arithmetic import abs, add, conj, div, mul, sgn, square, sub
from weft.ops.pointwise.complex_numbers import real
from weft.ops.pointwise.copies import where
from weft.ops.pointwise.declaring import NEURAL, unary
from weft.ops.pointwise.logic import gt
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
threshold.samples(lambda rand: [(rand(4, 6), 0.1, 2.0)])
gradient_by_kernel(threshold, "threshold_backward", arranged=lambda *given: given[:3])


hardshrink = unary(
    "hardshrink", aten.hardshrink, "x where its absolute value is above lambd, zero elsewhere.", "0.1 -> 0.0",
    place=NEURAL, inplace=lambda x, lambd: aten.hardshrink(x, lambd, out=x), steady=True, lambd=0.5,
)  # fmt: skip
gradient_by_kernel(hardshrink, "hardshrink_backward")

softshrink = unary(
    "softshrink", aten.softshrink, "x shrunk towards zero by alpha, and zero where |x| is at most alpha.", "2.0 -> 1.5",
    place=NEURAL, inplace=lambda x, alpha: aten.softshrink(x, alpha, out=x), steady=True, alpha=0.5,
)  # fmt: skip
gradient_by_kernel(softshrink, "softshrink_backward")

hardtanh = unary(
    "hardtanh", aten.hardtanh, "x limited to two bounds; unlike `clamp`, its gradient is zero on them.", "-3.0 -> -1.0",
    place=NEURAL, inplace=aten.hardtanh_, steady=True, min_val=-1.0, max_val=1.0,
)  # fmt: skip
hardtanh.samples(lambda rand: [(rand(4, 6), -0.5, 0.5)])
gradient_by_kernel(hardtanh, "hardtanh_backward")

selu = unary(
    "selu", aten.selu, "elu, scaled to keep a network's variance near one.", "0.0 -> 0.0",
    place=NEURAL, inplace=aten.selu_, out=False,
)  # fmt: skip
gradient_by_kernel(
    selu, "elu_backward", lambda dy, x: mul(dy, where(gt(x, 0.0), SCALE, add(selu(x), ALPHA * SCALE))),
    lambda dy, x: (dy, ALPHA, SCALE, 1.0, False, x),
)  # fmt: skip

celu = unary(
    "celu", aten.celu, "x where it is above zero, alpha * (exp(x / alpha) - 1) below.", "0.0 -> 0.0",
    place=NEURAL, inplace=aten.celu_, out=False, alpha=1.0,
)  # fmt: skip
celu.samples(lambda rand: [(rand(4, 6), 1.5)])
gradient_by_kernel(
    celu, "elu_backward",
    lambda dy, x, alpha: mul(dy, where(gt(x, 0.0), 1.0, add(mul(celu(x, alpha), 1.0 / alpha), 1.0))),
    lambda dy, x, alpha: (dy, alpha, 1.0, 1.0 / alpha, False, x),
)  # fmt: skip

softsign = unary("softsign", lambda x: x / (x.abs() + 1), "x / (1 + |x|).", "1.0 -> 0.5", place=NEURAL, out=False)


@softsign.grad
def _(dy, x):
    if not x.dtype.is_complex:
        return div(dy, square(add(abs(x), 1.0)))
    wide = add(abs(x), 1.0)
    return sub(div(dy, wide), mul(sgn(x), div(real(mul(conj(dy), x)), square(wide))))


quick_gelu = unary(
    "quick_gelu", lambda x: x * torch.sigmoid(x * 1.702), "x * sigmoid(1.702 x), an approximation of gelu.",
    "0.0 -> 0.0", place="flow._C", out=False,
)  # fmt: skip


@quick_gelu.grad
def _(dy, x):
    s = sigmoid(mul(x, 1.702))
    return mul(dy, add(s, mul(mul(mul(x, 1.702), s), sub(1.0, s))))


@op("..., ... -> ...", steady="x", promotes=True)
def bent(x: Tensor, slope: Tensor) -> Tensor:
    """x where it is positive, slope * x elsewhere; the slope broadcasts against x.

    >>> flow._C.bent(flow.tensor([-1., 2.]), flow.tensor([0.5])).tolist()
    [-0.5, 2.0]
    """
    return torch._prelu_kernel(x, slope)


@bent.grad
def _(dy, x, slope, slope_shape, needs):
    if here.grad:
        above = gt(x, 0.0)
        dx, dslope = where(above, dy, mul(dy, slope)), where(above, 0.0, mul(dy, x))
    else:
        dx, dslope = bent_grad(dy, x, slope)
    return dx if needs[0] else None, fit(dslope, slope_shape) if needs[1] else None


bent.samples(lambda rand: [(rand(4, 6), rand(6)), (rand(2, 4, 3), rand(4, 1))])


@op("..., ..., ... -> ..., ...", linear="dy", returns="dx dslope", promotes=True, memory_order="x")
def bent_grad(dy: Tensor, x: Tensor, slope: Tensor) -> tuple[Tensor, Tensor]:
    """The gradients of bent's x, and of its slope at each element."""
    return aten._prelu_kernel_backward(dy, x, slope)


bent_grad.samples(lambda rand: [(rand(4, 6), rand(4, 6), rand(6)), (rand(2, 4, 3), rand(2, 4, 3), rand(4, 1))])
