"""The sum or mean of squared differences, as one kernel forward and one backward."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from weft.ops.declaration import op
from weft.ops.pointwise.arithmetic import mul, neg, sub
from weft.ops.reduce.sums import sum as total
from weft.ops.shape.views import axes

kernels: Any = torch._C._nn  # type: ignore[attr-defined]


@op(uniform=True, promotes=True)
def square_error(x: Tensor, target: Tensor, mean: bool = True) -> Tensor:
    """The mean, or sum, of (x - target)^2, for two tensors of one shape.

    >>> flow._C.square_error(flow.tensor([1., 2.]), flow.tensor([1., 4.])).item()
    2.0
    """
    return kernels.mse_loss(x, target, 1 if mean else 2)


@square_error.layout
def _(x, target, mean):
    term = " ".join(f"{a}@" if mean else a for a in axes(len(x)))
    return f"{term}, {term} -> "


@square_error.ranked
def _(where, x, target, mean):
    return kernels.mse_loss(x, target, 2) / math.prod(where.input_shapes[0])  # empty: 0 / 0


@square_error.grad
def _(dy, x, target, x_shape, mean, needs):
    dx = square_error_grad(dy, x, target, 2.0 / max(math.prod(x_shape), 1) if mean else 2.0)
    return dx if needs[0] else None, neg(dx) if needs[1] else None


square_error.samples(lambda rand: [(rand(4, 6), rand(4, 6)), (rand(5, 3), rand(5, 3), False)])


@op(linear="dy", returns="dx", uniform=True, promotes=True)
def square_error_grad(dy: Tensor, x: Tensor, target: Tensor, factor: float) -> Tensor:
    """dy * factor * (x - target), for a 0-d dy.

    >>> flow._C.square_error_grad(flow.tensor(1.), flow.tensor([3.]), flow.tensor([1.]), 0.5).tolist()
    [1.0]
    """
    return torch.sub(x, target).mul_(dy * factor)


@square_error_grad.layout
def _(dy, x, target, factor):
    term = " ".join(axes(len(x)))
    return f"_, {term}, {term} -> {term}"


@square_error_grad.out
def _(dx, dy, x, target, factor):
    torch.sub(x, target, out=dx).mul_(dy * factor)


@square_error_grad.grad
def _(ddx, dy, x, target, factor, needs):
    by_x = mul(ddx, mul(dy, factor)) if needs[1] or needs[2] else None
    by_dy = mul(total(mul(ddx, sub(x, target))), factor) if needs[0] else None
    return by_dy, by_x if needs[1] else None, neg(by_x) if needs[2] else None


square_error_grad.samples(lambda rand: [(rand(), rand(4, 6), rand(4, 6), 0.5)])
