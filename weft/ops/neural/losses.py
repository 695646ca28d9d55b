"""Sums or means of squared differences, and of ones that are quadratic for small differences and linear for large ones
(`smooth_l1_loss`, `huber_loss`): one kernel forward, and few small ones backward.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from weft.ops.declaration import op
from weft.ops.kernels import aten
from weft.ops.neural.activations import clamp
from weft.ops.pointwise.arithmetic import abs as absolute
from weft.ops.pointwise.arithmetic import mul, neg, sub
from weft.ops.pointwise.copies import cast
from weft.ops.pointwise.logic import lt
from weft.ops.reduce.sums import sum as total
from weft.ops.shape.broadcast import fit
from weft.ops.shape.views import axes


@op(uniform=True, promotes=True)
def square_error(x: Tensor, target: Tensor, mean: bool = True) -> Tensor:
    """The mean, or sum, of (x - target)^2, for two tensors of one shape.

    >>> flow._C.square_error(flow.tensor([1., 2.]), flow.tensor([1., 4.])).item()
    2.0
    """
    return aten.mse_loss(x, target, 1 if mean else 2)


@op(uniform=True, promotes=True)
def bent_error(x: Tensor, target: Tensor, bend: float = 1.0, slope: float = 1.0, mean: bool = True) -> Tensor:
    """The mean, or sum, over two tensors of one shape: slope / 2 * d^2 / bend for a difference |d| below the bend,
    linear with this slope above it; the slope is 1 (smooth L1) or the bend (Huber).

    >>> flow._C.bent_error(flow.tensor([1., 4.]), flow.tensor([0., 0.])).item()
    2.0
    """
    return _error(x, target, bend, slope, 1 if mean else 2)


@op("..., ... -> ...", uniform=True, promotes=True)
def bent_errors(x: Tensor, target: Tensor, bend: float = 1.0, slope: float = 1.0) -> Tensor:
    """The terms of bent_error, for two tensors of one shape.

    >>> flow._C.bent_errors(flow.tensor([1., 4.]), flow.tensor([0., 0.])).tolist()
    [0.5, 3.5]
    """
    return _error(x, target, bend, slope, 0)


def _error(x: Tensor, target: Tensor, bend: float, slope: float, reduction: int) -> Tensor:
    return (aten.smooth_l1_loss if slope == 1 else aten.huber_loss)(x, target, reduction, bend)


@square_error.layout
@bent_error.layout
def _(x, target, *options):
    mean = options[-1]
    term = " ".join(f"{a}@" if mean else a for a in axes(len(x)))
    return f"{term}, {term} -> "


@square_error.ranked
def _(where, x, target, mean):
    return aten.mse_loss(x, target, 2) / math.prod(where.input_shapes[0])  # empty: 0 / 0


@bent_error.ranked
def _(where, x, target, bend, slope, mean):
    return _error(x, target, bend, slope, 2) / math.prod(where.input_shapes[0])  # empty: 0 / 0


@square_error.grad
def _(dy, x, target, x_shape, mean, needs):
    dx = square_error_grad(dy, x, target, 2.0 / max(math.prod(x_shape), 1) if mean else 2.0)
    return dx if needs[0] else None, neg(dx) if needs[1] else None


square_error.samples(lambda rand: [(rand(4, 6), rand(4, 6)), (rand(5, 3), rand(5, 3), False)])


@bent_error.grad
def _(dy, x, target, x_shape, x_dtype, bend, slope, mean, needs):
    return _of_bent(dy, x, target, x_dtype, bend, slope / bend / (max(math.prod(x_shape), 1) if mean else 1), needs)


@bent_errors.grad
def _(dy, x, target, x_dtype, bend, slope, needs):
    return _of_bent(dy, x, target, x_dtype, bend, slope / bend, needs)


def _of_bent(dy: Any, x: Any, target: Any, x_dtype: Any, bend: float, factor: float, needs: Any) -> tuple[Any, Any]:
    dx = bent_error_grad(dy, x, target, bend, factor)
    own = dx if dx.dtype is x_dtype else cast(dx, x_dtype)  # huber_loss gives x's dtype, whatever the target's is
    return own if needs[0] else None, neg(dx) if needs[1] else None


@bent_error.samples
def _(rand):
    yield rand(4, 6), rand(4, 6)
    yield rand(5, 3), rand(5, 3), 0.5, 1.0, False
    yield rand(5, 3), rand(5, 3), 0.7, 0.7


@op(linear="dy", returns="dx", uniform=True, promotes=True)
def square_error_grad(dy: Tensor, x: Tensor, target: Tensor, factor: float) -> Tensor:
    """dy * factor * (x - target), for a 0-d dy.

    >>> flow._C.square_error_grad(flow.tensor(1.), flow.tensor([3.]), flow.tensor([1.]), 0.5).tolist()
    [1.0]
    """
    return torch.sub(x, target).mul_(dy * factor)


@op(linear="dy", returns="dx", uniform=True, promotes=True)
def bent_error_grad(dy: Tensor, x: Tensor, target: Tensor, bend: float, factor: float) -> Tensor:
    """dy * factor * (x - target), with the difference clamped to the bend, for a dy of one element or of x's shape.

    >>> flow._C.bent_error_grad(flow.tensor(1.), flow.tensor([3.]), flow.tensor([1.]), 1.0, 0.5).tolist()
    [0.5]
    """
    return torch.sub(x, target).clamp_(-bend, bend).mul_(dy * factor)


@square_error_grad.layout
@bent_error_grad.layout
def _(dy, x, *_):
    term = " ".join(axes(len(x)))
    return f"{term if len(dy) == len(x) else '_'}, {term}, {term} -> {term}"


@square_error_grad.out
def _(dx, dy, x, target, factor):
    torch.sub(x, target, out=dx).mul_(dy * factor)


@square_error_grad.grad
def _(ddx, dy, x, target, factor, needs):
    by_x = mul(ddx, mul(dy, factor)) if needs[1] or needs[2] else None
    by_dy = mul(total(mul(ddx, sub(x, target))), factor) if needs[0] else None
    return by_dy, by_x if needs[1] else None, neg(by_x) if needs[2] else None


square_error_grad.samples(lambda rand: [(rand(), rand(4, 6), rand(4, 6), 0.5)])


@bent_error_grad.out
def _(dx, dy, x, target, bend, factor):
    torch.sub(x, target, out=dx).clamp_(-bend, bend).mul_(dy * factor)


@bent_error_grad.grad
def _(ddx, dy, x, target, dy_shape, bend, factor, needs):
    d = sub(x, target)
    by_x = mul(mul(ddx, lt(absolute(d), bend)), mul(dy, factor)) if needs[1] or needs[2] else None
    by_dy = mul(fit(mul(ddx, clamp(d, -bend, bend)), dy_shape), factor) if needs[0] else None
    return by_dy, by_x if needs[1] else None, neg(by_x) if needs[2] else None


@bent_error_grad.samples
def _(rand):
    yield rand(), rand(4, 6), rand(4, 6), 0.6, 0.5
    yield rand(4, 6), rand(4, 6), rand(4, 6), 0.6, 0.5


bent_errors.samples(lambda rand: [(rand(4, 6), rand(4, 6)), (rand(5, 3), rand(5, 3), 0.7, 0.7)])
