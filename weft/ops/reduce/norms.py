"""Euclidean norms and distances, and log(sum(exp(x))), by one kernel each. Of what is split along the reduced
dimensions, `functional` composes them."""

from __future__ import annotations

from typing import Any, Final

import torch
from torch import Tensor

from weft.core.dispatch import here
from weft.core.errors import ShapeError
from weft.ops.declaration import Size, op
from weft.ops.kernels import aten
from weft.ops.pointwise.arithmetic import div, mul, neg, sub
from weft.ops.pointwise.copies import where
from weft.ops.pointwise.elementary import exp
from weft.ops.pointwise.logic import eq
from weft.ops.reduce.sums import dims_of, kept, reduced, sum
from weft.ops.shape.views import axes, reshape, transpose, unsqueeze

FEW: Final = 25  # rows from which on torch takes products for distances


def _beside(y: Any, x: Any, dim: Size, keepdim: bool) -> Any:
    """A result with its reduced dimensions, to be broadcast against the operand."""
    return y if keepdim else reshape(y, kept(tuple(x.shape), dim))


@op(uniform=True)
def euclidean_norm(x: Tensor, dim: Size, keepdim: bool = False) -> Tensor:
    """The root of the sum of squares over some dimensions.

    >>> flow._C.euclidean_norm(flow.tensor([3.0, 4.0]), (0,)).item()
    5.0
    """
    return torch.linalg.vector_norm(x, 2, dims_of(dim, x.dim()), keepdim)


@euclidean_norm.grad
def _(dy, x, y, dim, keepdim):
    if not here.grad:
        return euclidean_norm_grad(dy, x, y, dim, keepdim)
    return mul(x, _beside(_quotient(dy, euclidean_norm(x, dim, keepdim)), x, dim, keepdim))


def _quotient(dy: Any, y: Any) -> Any:
    """dy / y, and zero where y is."""
    none = eq(y, 0.0)
    return where(none, 0.0, div(dy, where(none, 1.0, y)))


@op(linear="dy", returns="dx", promotes=True)
def euclidean_norm_grad(dy: Tensor, x: Tensor, y: Tensor, dim: Size, keepdim: bool) -> Tensor:
    """The gradient of euclidean_norm; zero where the norm is."""
    scale = torch.where(y == 0, 0.0, dy / y)
    return x * (scale if keepdim else scale.reshape(kept(tuple(x.shape), dim)))


@op(uniform=True)
def log_sum_exp(x: Tensor, dim: Size, keepdim: bool = False) -> Tensor:
    """log(sum(exp(x))) over some dimensions, without overflow.

    >>> flow._C.log_sum_exp(flow.tensor([1000.0, -1000.0]), (0,)).item()
    1000.0
    """
    return torch.logsumexp(x, dims_of(dim, x.dim()), keepdim)


@log_sum_exp.grad
def _(dy, x, y, dim, keepdim):
    y = log_sum_exp(x, dim, keepdim) if here.grad else y
    return mul(_beside(dy, x, dim, keepdim), exp(sub(x, _beside(y, x, dim, keepdim))))


@euclidean_norm.layout
@log_sum_exp.layout
def _(x, dim, keepdim):
    return reduced(len(x), dim, keepdim, "!")


@euclidean_norm_grad.layout
def _(dy, x, y, dim, keepdim):
    left, _, right = reduced(len(x), dim, keepdim, "!").partition("->")
    return f"{right}, {left}, {right} -> {left}"


@euclidean_norm.samples
@log_sum_exp.samples
def _(rand):
    yield rand(4, 6), (0, 1)
    yield rand(4, 6), (1,)
    yield rand(2, 4, 6), (0, 2), True


euclidean_norm_grad.samples(lambda rand: [(rand(4), x := rand(4, 6), x.norm(dim=1), (1,), False)])


# ---- distances ---------------------------------------------------------------------------------------


@op(uniform=True)
def euclidean_distances(x1: Tensor, x2: Tensor) -> Tensor:
    """The distances between all pairs of rows of two matrices, or of each pair in two batches of these.

    >>> flow._C.euclidean_distances(flow.tensor([[0.0, 0.0]]), flow.tensor([[3.0, 4.0], [0.0, 1.0]])).tolist()
    [[5.0, 1.0]]
    """
    return torch.cdist(x1, x2)


@euclidean_distances.grad
def _(dy, x1, x2, y, needs):
    if not here.grad:
        over, across = transpose(dy, -2, -1), transpose(y, -2, -1)
        return (
            euclidean_distances_grad(dy, x1, x2, y) if needs[0] else None,
            euclidean_distances_grad(over, x2, x1, across) if needs[1] else None,
        )
    apart = sub(unsqueeze(x1, -2), unsqueeze(x2, -3))
    pulls = mul(apart, unsqueeze(_quotient(dy, euclidean_norm(apart, (-1,))), -1))
    return sum(pulls, -2), neg(sum(pulls, -3))


@op(linear="dy", returns="dx", uniform=True)
def euclidean_distances_grad(dy: Tensor, x1: Tensor, x2: Tensor, y: Tensor) -> Tensor:
    """The gradient of euclidean_distances' first operand."""
    if max(y.shape[-2:]) > FEW:
        pulls = torch.where(y == 0, 0.0, dy / y)
        return x1 * pulls.sum(-1, True) - pulls @ x2
    *lead, rows, width = x2.shape
    if not dy.shape == y.shape == (*lead, x1.shape[-2], rows) or x1.shape != (*lead, x1.shape[-2], width):
        given = ", ".join(str(list(t.shape)) for t in (dy, x1, x2, y))
        raise ShapeError(f"euclidean_distances_grad(): it takes what euclidean_distances took and gave; got {given}")
    return aten._cdist_backward(dy.contiguous(), x1.contiguous(), x2.contiguous(), 2.0, y.contiguous())


@euclidean_distances.layout
def _(x1, x2):
    lead = " ".join(axes(len(x1) - 2))
    return f"{lead} p m!, {lead} r m! -> {lead} p r"


@euclidean_distances_grad.layout
def _(dy, x1, x2, y):
    lead = " ".join(axes(len(x1) - 2))
    return f"{lead} p r!, {lead} p m!, {lead} r! m!, {lead} p r! -> {lead} p m!"


euclidean_distances.samples(lambda rand: [(rand(4, 6), rand(3, 6)), (rand(2, 4, 6), rand(2, 3, 6))])


@euclidean_distances_grad.samples
def _(rand):
    x1, x2 = rand(4, 6), rand(3, 6)
    yield rand(4, 3), x1, x2, torch.cdist(x1, x2)
