"""Activations."""

from __future__ import annotations

import functools
import math
from typing import Any

import torch
from torch import Tensor

from weft.core.dispatch import here
from weft.ops.create.constructors import zeros_like
from weft.ops.declaration import Scalar, op
from weft.ops.kernels import aten
from weft.ops.neural.gradients import gradient_by_kernel
from weft.ops.pointwise.arithmetic import add, mul, square, sub
from weft.ops.pointwise.copies import where
from weft.ops.pointwise.declaring import NEURAL, unary
from weft.ops.pointwise.elementary import exp, tanh, with_backward
from weft.ops.pointwise.logic import ge, gt, le
from weft.ops.pointwise.ties import part_of_first
from weft.ops.shape.joining import cat
from weft.ops.shape.slicing import narrow
from weft.ops.shape.views import axes_at

LARGE = 1 << 15  # elements from which oneDNN's gelu is faster in spite of its overhead


def _transposed_is_faster(x: Tensor, approximate: str) -> bool:
    """Whether torch's own gelu is faster than oneDNN's, which torch uses for contiguous memory: small contiguous
    tensors avoid it by a transpose. Transposed ones would go to oneDNN, which writes to no result in another order."""
    small = x.is_contiguous() and x.dim() > 1 and x.numel() <= LARGE and x.shape[0] > 1 < x.shape[-1]
    return small and approximate == "none" and x.dtype is torch.float32 and x.device.type == "cpu"


relu = unary(
    "relu", torch.relu,
    "max(x, 0), element by element.\n\n>>> flow.relu(flow.tensor([-1., 2.])).tolist()\n[0.0, 2.0]",
    inplace=torch.relu_, out=False,
)  # fmt: skip
relu.out(lambda y, x: torch.clamp_min(x, 0, out=y))
relu.prepared(lambda y, x: (torch.clamp_min, (x, 0), {"out": y}))
relu.grad(lambda dy, y: relu_grad(dy, y))


@op("..., ... -> ...", linear="dy", returns="dx", promotes=True, memory_order="y")
def relu_grad(dy: Tensor, y: Tensor) -> Tensor:
    """dy where y is above zero.

    >>> flow._C.relu_grad(flow.ones(2), flow.tensor([0., 3.])).tolist()
    [0.0, 1.0]
    """
    return aten.threshold_backward(dy, y, 0)


relu_grad.prepared(lambda dx, dy, y: (aten.threshold_backward.grad_input, (dy, y, 0), {"grad_input": dx}))
relu_grad.out(lambda dx, dy, y: aten.threshold_backward.grad_input(dy, y, 0, grad_input=dx))


@relu_grad.grad
def _(ddx, y, needs):
    # The second derivative is zeros rather than None: optimizers check whether there is a gradient.
    return relu_grad(ddx, y) if needs[0] else None, zeros_like(y) if needs[1] else None


relu_grad.samples(lambda rand: [(rand(4, 6), rand(4, 6))])

sigmoid = unary("sigmoid", torch.sigmoid, "1 / (1 + exp(-x)).", "0.0 -> 0.5", inplace=torch.sigmoid_)
sigmoid_backward = with_backward(sigmoid, "dy * y * (1 - y)", lambda y: sub(1.0, mul(y, 2.0)))


# ---- gelu --------------------------------------------------------------------------------------------


@op("... -> ...")
def gelu(x: Tensor, approximate: str = "none") -> Tensor:
    """x * Phi(x), Phi being the normal distribution's CDF; approximate="tanh" for the usual fast formula.

    >>> flow.gelu(flow.tensor([0., 100.])).tolist()
    [0.0, 100.0]
    """
    if _transposed_is_faster(x, approximate):
        return aten.gelu(x.transpose(0, -1)).transpose(0, -1)
    return aten.gelu(x, approximate=approximate)


gelu.out(lambda y, x, approximate: aten.gelu(x, approximate=approximate, out=y))
gelu.inplace(lambda x, approximate: aten.gelu_(x, approximate=approximate))


@gelu.prepared
def _(y, x, approximate):
    if _transposed_is_faster(x, approximate):
        x, y = x.transpose(0, -1), y.transpose(0, -1)
    return aten.gelu, (x,), {"approximate": approximate, "out": y}


gelu.grad(lambda dy, x, approximate: gelu_grad(dy, x, approximate))
gelu.samples(lambda rand: [rand(4, 6), (rand(4, 6), "tanh")])


@op("..., ... -> ...", linear="dy", returns="dx", promotes=True)
def gelu_grad(dy: Tensor, x: Tensor, approximate: str = "none") -> Tensor:
    """The gradient of gelu."""
    if _transposed_is_faster(x, approximate) and dy.shape == x.shape:
        return aten.gelu_backward(dy.transpose(0, -1), x.transpose(0, -1)).transpose(0, -1)
    return aten.gelu_backward(dy, x, approximate=approximate)


gelu_grad.out(
    lambda dx, dy, x, approximate: aten.gelu_backward.grad_input(dy, x, approximate=approximate, grad_input=dx)
)


@gelu_grad.prepared
def _(dx, dy, x, approximate):
    if _transposed_is_faster(x, approximate) and dy.shape == x.shape:
        dx, dy, x = (t.transpose(0, -1) for t in (dx, dy, x))
    return aten.gelu_backward.grad_input, (dy, x), {"approximate": approximate, "grad_input": dx}


@gelu_grad.grad
def _(ddx, dy, x, approximate, needs):
    dx = None
    if needs[1]:
        dx = mul(mul(ddx, dy), _gelu_tanh_second_derivative(x) if approximate == "tanh" else _gelu_second_derivative(x))
    return gelu_grad(ddx, x, approximate) if needs[0] else None, dx


def _gelu_second_derivative(x: Any) -> Any:
    """The second derivative of gelu: (2 - x^2) times the normal density."""
    density = mul(exp(mul(square(x), -0.5)), 1 / math.sqrt(2 * math.pi))
    return mul(sub(2.0, square(x)), density)


def _gelu_tanh_second_derivative(x: Any) -> Any:
    k, c = math.sqrt(2 / math.pi), 0.044715
    x2 = square(x)
    t = tanh(mul(mul(x, k), add(mul(x2, c), 1.0)))
    slope, bend = mul(add(mul(x2, 3 * c), 1.0), k), mul(x, 6 * k * c)
    rest = sub(1.0, square(t))
    return mul(rest, add(slope, mul(mul(x, 0.5), sub(bend, mul(mul(t, 2.0), square(slope))))))


gelu_grad.samples(lambda rand: [(rand(4, 6), rand(4, 6)), (rand(4, 6), rand(4, 6), "tanh")])


# ---- silu --------------------------------------------------------------------------------------------


silu = unary("silu", aten.silu, "x * sigmoid(x).", "0.0 -> 0.0", place=NEURAL, inplace=aten.silu_)


@functools.partial(gradient_by_kernel, silu, "silu_backward")
def silu_grad(dy: Any, x: Any) -> Any:
    s = sigmoid(x)
    return mul(dy, mul(s, add(mul(x, sub(1.0, s)), 1.0)))


# ---- piecewise --------------------------------------------------------------------------


leaky_relu = unary(
    "leaky_relu", aten.leaky_relu, "x where it is above zero, alpha * x below.", "-1.0, 0.5 -> -0.5",
    place=NEURAL, inplace=aten.leaky_relu_, alpha=0.01,
)  # fmt: skip
leaky_relu.samples(lambda rand: [(rand(4, 6), 0.1)])
gradient_by_kernel(leaky_relu, "leaky_relu_backward", arranged=lambda *given: (*given, False))


@op("... -> ...")
def clamp(x: Tensor, min: Scalar | None = None, max: Scalar | None = None) -> Tensor:
    """x limited to [min, max].

    >>> flow.clamp(flow.tensor([-1., 0.5, 2.]), 0., 1.).tolist()
    [0.0, 0.5, 1.0]
    """
    return torch.clamp(x, min, max)


clamp.out(lambda y, x, min, max: torch.clamp(x, min, max, out=y))
clamp.inplace(lambda x, min, max: torch.clamp_(x, min, max))
clamp.grad(lambda dy, x, min, max: clamp_grad(dy, x, min, max))
clamp.samples(lambda rand: [(rand(4, 6), -0.5, 0.5), (rand(4, 6), 0.0), ((rand(4, 6),), {"max": 0.3})])


@op("..., ... -> ...", linear="dy", returns="dx", memory_order="x")
def clamp_grad(dy: Tensor, x: Tensor, min: Scalar | None, max: Scalar | None) -> Tensor:
    """dy where x is within the bounds; on them, what torch gives there."""
    above, below = (torch.ge, torch.le) if part_of_first("clamp", number=True) else (torch.gt, torch.lt)
    bounds = [holds(x, bound) for bound, holds in ((min, above), (max, below)) if bound is not None]
    inside = torch.logical_and(*bounds) if len(bounds) == 2 else bounds[0]
    return torch.where(inside, dy, torch.zeros((), dtype=dy.dtype, device=dy.device))


clamp_grad.grad(lambda ddx, x, min, max: (clamp_grad(ddx, x, min, max), None))
clamp_grad.samples(lambda rand: [(rand(4, 6), rand(4, 6), -0.5, 0.5)])


elu = unary(
    "elu", aten.elu, "x where it is above zero, alpha * (exp(x) - 1) below.", "2.0 -> 2.0",
    place=NEURAL, inplace=aten.elu_, alpha=1.0,
)  # fmt: skip
elu.samples(lambda rand: [(rand(4, 6), 1.5)])
gradient_by_kernel(
    elu, "elu_backward", lambda dy, x, alpha: where(gt(x, 0.0), dy, mul(dy, add(elu(x, alpha), alpha))),
    lambda dy, x, alpha: (dy, alpha, 1.0, 1.0, False, x),
)  # fmt: skip

softplus = unary(
    "softplus", aten.softplus,
    "log(1 + exp(beta x)) / beta: a smooth relu; x itself where beta x is above the threshold.", "50.0 -> 50.0",
    place=NEURAL, beta=1.0, threshold=20.0,
)  # fmt: skip
softplus.samples(lambda rand: [rand(4, 6), (rand(4, 6), 2.0, 1.0)])


@functools.partial(gradient_by_kernel, softplus, "softplus_backward")
def softplus_grad(dy: Any, x: Any, beta: float, threshold: float) -> Any:
    z = mul(x, beta)
    return where(gt(z, threshold), dy, mul(dy, sigmoid(z)))


mish = unary("mish", aten.mish, "x * tanh(softplus(x)).", "0.0 -> 0.0", place=NEURAL, inplace=aten.mish_)


@functools.partial(gradient_by_kernel, mish, "mish_backward", out="")
def mish_grad(dy: Any, x: Any) -> Any:
    t = tanh(softplus(x))
    return mul(dy, add(t, mul(mul(x, sigmoid(x)), sub(1.0, square(t)))))


hardsigmoid = unary(
    "hardsigmoid", aten.hardsigmoid, "x / 6 + 1/2, limited to [0, 1].", "4.0 -> 1.0",
    place=NEURAL, inplace=aten.hardsigmoid_,
)  # fmt: skip
hardsigmoid.samples(lambda rand: [rand(4, 6) * 3])
gradient_by_kernel(hardsigmoid, "hardsigmoid_backward")

hardswish = unary(
    "hardswish", aten.hardswish, "x * hardsigmoid(x).", "4.0 -> 4.0",
    place=NEURAL, inplace=aten.hardswish_,
)  # fmt: skip
hardswish.samples(lambda rand: [rand(4, 6) * 3])


@functools.partial(gradient_by_kernel, hardswish, "hardswish_backward", out="out")
def hardswish_grad(dy: Any, x: Any) -> Any:
    inside = mul(dy, add(mul(x, 1 / 3), 0.5))
    return where(ge(x, 3.0), dy, where(le(x, -3.0), 0.0, inside))


logsigmoid = unary(
    "logsigmoid", aten.log_sigmoid, "log(sigmoid(x)), exact for large negative x.", "-200.0 -> -200.0",
    place=NEURAL, out=False, memory_order="contiguous",
)  # fmt: skip
logsigmoid.grad(lambda dy, x: mul(dy, sigmoid(mul(x, -1.0))))


@op(memory_order="x")
def glu(x: Tensor, dim: int) -> Tensor:
    """The first half of x along a dimension, times the sigmoid of the second.

    >>> flow._C.glu(flow.tensor([4.0, 0.0]), 0).tolist()
    [2.0]
    """
    return aten.glu(x, dim)


@glu.grad
def _(dy, x, dim):
    if not here.grad:
        return glu_grad(dy, x, dim)
    n = x.shape[dim] // 2
    first, gate = narrow(x, dim, 0, n), sigmoid(narrow(x, dim, n, n))
    return cat([mul(dy, gate), mul(mul(dy, first), mul(gate, sub(1.0, gate)))], dim)


@op(linear="dy", returns="dx", promotes=True)
def glu_grad(dy: Tensor, x: Tensor, dim: int) -> Tensor:
    """The gradient of glu."""
    return aten.glu_backward(dy, x, dim)


glu.layout(lambda x, dim: axes_at("<w!> -> <h!>", len(x), dim))
glu.samples(lambda rand: [(rand(4, 6), -1), (rand(4, 6), 0)])
glu_grad.layout(lambda dy, x, dim: axes_at("<h!>, <w!> -> <w!>", len(x), dim))
glu_grad.out(lambda dx, dy, x, dim: aten.glu_backward.grad_input(dy, x, dim, grad_input=dx))
glu_grad.samples(lambda rand: [(rand(4, 3), rand(4, 6), -1), (rand(2, 6), rand(4, 6), 0)])
