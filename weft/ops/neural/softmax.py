"""Softmax and log_softmax, along one dimension that isn't split."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from weft.core.errors import ShapeError
from weft.ops.declaration import op
from weft.ops.kernels import aten
from weft.ops.pointwise.arithmetic import mul, neg, sub
from weft.ops.pointwise.elementary import exp
from weft.ops.reduce.sums import sum
from weft.ops.shape.views import axes_at


def along(shape: tuple[int, ...], dim: int, operands: int = 1) -> str:
    """The notation of an op along one dimension that keeps the shape."""
    return axes_at(f"{', '.join(['<!>'] * operands)} -> <!>", len(shape), dim)


@op(uniform=True)
def softmax(x: Tensor, dim: int) -> Tensor:
    """exp(x) divided by its sum along a dimension.

    >>> flow.softmax(flow.zeros(2), 0).tolist()
    [0.5, 0.5]
    """
    return torch.softmax(x, dim)


softmax.layout(lambda x, dim: along(x, dim))
softmax.out(lambda y, x, dim: aten._softmax(x, dim, False, out=y))
softmax.grad(lambda dy, y, dim: softmax_grad(dy, y, dim))
softmax.samples(lambda rand: [(rand(4, 6), -1), (rand(2, 5, 6), 1)])


@op(uniform=True)
def safe_softmax(x: Tensor, dim: int) -> Tensor:
    """softmax, but zeros where all of x is -inf, as attention has it for queries to which every key is hidden.

    >>> flow._C.safe_softmax(flow.tensor([[0.0, 0.0], [float("-inf")] * 2]), 1).tolist()
    [[0.5, 0.5], [0.0, 0.0]]
    """
    return torch._safe_softmax(x, dim)


safe_softmax.layout(lambda x, dim: along(x, dim))
safe_softmax.grad(lambda dy, y, dim: softmax_grad(dy, y, dim))
safe_softmax.samples(lambda rand: [(rand(4, 6), -1), (rand(2, 5, 6), 1)])


@op(linear="dy", returns="dx", uniform=True)
def softmax_grad(dy: Tensor, y: Tensor, dim: int) -> Tensor:
    """The gradient of softmax: y * (dy - sum(dy * y))."""
    return aten._softmax_backward_data(dy, y, dim, y.dtype)


softmax_grad.layout(lambda dy, y, dim: along(y, dim, 2))
softmax_grad.out(lambda dx, dy, y, dim: aten._softmax_backward_data(dy, y, dim, y.dtype, grad_input=dx))


@softmax_grad.grad
def _(ddx, dy, y, dim, needs):
    wrt_y = None
    if needs[1]:
        wrt_y = sub(mul(ddx, sub(dy, _total(mul(dy, y), dim))), mul(dy, _total(mul(ddx, y), dim)))
    return softmax_grad(ddx, y, dim) if needs[0] else None, wrt_y


def _total(x: Any, dim: int) -> Any:
    return sum(x, dim, True)


softmax_grad.samples(lambda rand: [(rand(4, 6), rand(4, 6), -1)])


@op(uniform=True)
def log_softmax(x: Tensor, dim: int) -> Tensor:
    """log(softmax(x)), computed without overflow.

    >>> flow.exp(flow.log_softmax(flow.zeros(2), 0)).tolist()
    [0.5, 0.5]
    """
    return torch.log_softmax(x, dim)


log_softmax.layout(lambda x, dim: along(x, dim))
log_softmax.out(lambda y, x, dim: aten._log_softmax(x, dim, False, out=y))
log_softmax.grad(lambda dy, y, dim: log_softmax_grad(dy, y, dim))
log_softmax.samples(lambda rand: [(rand(4, 6), -1), (rand(2, 5, 6), 1)])


@op(linear="dy", returns="dx", uniform=True)
def log_softmax_grad(dy: Tensor, y: Tensor, dim: int) -> Tensor:
    """The gradient of log_softmax: dy - exp(y) * sum(dy)."""
    if dy.shape != y.shape:  # the kernel would divide by zero
        raise ShapeError(f"log_softmax_grad(): dy of {list(dy.shape)} and y of {list(y.shape)} must have one shape")
    return aten._log_softmax_backward_data(dy, y, dim, y.dtype)


log_softmax_grad.layout(lambda dy, y, dim: along(y, dim, 2))
log_softmax_grad.out(lambda dx, dy, y, dim: aten._log_softmax_backward_data(dy, y, dim, y.dtype, out=dx))


@log_softmax_grad.grad
def _(ddx, dy, y, dim, needs):
    p = exp(y)
    return (
        sub(ddx, _total(mul(ddx, p), dim)) if needs[0] else None,
        neg(mul(mul(ddx, p), _total(dy, dim))) if needs[1] else None,
    )


log_softmax_grad.samples(lambda rand: [(rand(4, 6), rand(4, 6), -1)])
