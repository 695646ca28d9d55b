"""Cumulative sums, products and extremes along a dimension, and sums of exponentials."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from weft.core.dispatch import here
from weft.ops.create.constructors import full_like, ones_like
from weft.ops.declaration import Op, op
from weft.ops.index.indexing import scatter_back
from weft.ops.kernels import aten
from weft.ops.neural.softmax import along
from weft.ops.pointwise.arithmetic import add, conjugated, mul, sub
from weft.ops.pointwise.copies import where
from weft.ops.pointwise.elementary import exp
from weft.ops.pointwise.logic import eq
from weft.ops.reduce.sums import sum
from weft.ops.shape.flips import flip
from weft.ops.shape.joining import cat
from weft.ops.shape.slicing import narrow
from weft.ops.shape.triangle import tril
from weft.ops.shape.views import transpose, unsqueeze


@op(linear="x")
def cumsum(x: Tensor, dim: int) -> Tensor:
    """The cumulative sum along a dimension.

    >>> flow.cumsum(flow.tensor([1., 2., 3.]), 0).tolist()
    [1.0, 3.0, 6.0]
    """
    return torch.cumsum(x, dim)


cumsum.layout(lambda x, dim: along(x, dim))
cumsum.out(lambda y, x, dim: torch.cumsum(x, dim, out=y))
cumsum.grad(lambda dy, dim: flip(cumsum(flip(dy, (dim,)), dim), (dim,)))
cumsum.samples(lambda rand: [(rand(4, 6), 1), (rand(2, 4, 6), -2)])


@op()
def cumprod(x: Tensor, dim: int) -> Tensor:
    """The cumulative product along a dimension.

    >>> flow.cumprod(flow.tensor([1., 2., 3.]), 0).tolist()
    [1.0, 2.0, 6.0]
    """
    return torch.cumprod(x, dim)


cumprod.layout(lambda x, dim: along(x, dim))
cumprod.out(lambda y, x, dim: torch.cumprod(x, dim, out=y))


@cumprod.grad
def _(dy, x, y, dim):
    if not x.ndim:
        return dy
    if not here.grad or not x.shape[dim]:
        return cumprod_grad(dy, x, y, dim)
    # In differentiable ops, and also correct for zeros: the product of what precedes each element, times a sum of dy
    # over later ones weighted by the products in between: total[k] = dy[k] + x[k + 1] * total[k + 1], by doubling.
    x, n = conjugated(x), x.shape[dim]
    total, factor, step = dy, _later(x, dim, 1, 0.0), 1
    while step < n:
        total = add(total, mul(factor, _later(total, dim, step, 0.0)))
        factor = mul(factor, _later(factor, dim, step, 0.0))
        step *= 2
    return mul(_before(x, dim), total)


def _later(x: Any, dim: int, step: int, fill: float) -> Any:
    """x shifted towards the front by `step`; the last elements are the fill."""
    n = x.shape[dim]
    rest = full_like(narrow(x, dim, 0, step), fill, None)
    return cat([narrow(x, dim, step, n - step), rest], dim) if step < n else full_like(x, fill, None)


def _before(x: Any, dim: int) -> Any:
    """The product of all elements before each one."""
    return cumprod(flip(_later(flip(x, (dim,)), dim, 1, 1.0), (dim,)), dim)


cumprod.samples(lambda rand: [(rand(4, 6), 1)])


@op(linear="dy", returns="dx")
def cumprod_grad(dy: Tensor, x: Tensor, y: Tensor, dim: int) -> Tensor:
    """The gradient of cumprod, also correct for zeros."""
    return aten.cumprod_backward(dy, x, dim, y)


cumprod_grad.layout(lambda dy, x, y, dim: along(x, dim, 3))


@cumprod_grad.samples
def _(rand):
    x = rand(4, 6) * (rand(4, 6) > 0)
    yield rand(4, 6), x, x.cumprod(1), 1


def _running(name: str, kernel: Callable[..., Any], which: str, shows: str) -> Op:
    def body(x: Tensor, dim: int) -> Any:
        return tuple(kernel(x, dim))

    body.__name__ = name
    body.__doc__ = (
        f"The cumulative {which} element along a dimension, and its index.\n\n"
        f">>> flow.{name}(flow.tensor([2., 3., 1.]), 0)[0].tolist()\n{shows}"
    )
    declared = op(returns="values indices*")(body)
    declared.layout(lambda x, dim: f"{along(x, dim)}, {along(x, dim).partition('-> ')[2]}")
    declared.grad(lambda dvalues, indices, x_shape, dim: scatter_back(dvalues, indices, x_shape, dim, True))
    declared.samples(lambda rand: [(rand(4, 6), 1), (rand(2, 4, 6), -2)])
    return declared


cummax = _running("cummax", torch.cummax, "largest", "[2.0, 3.0, 3.0]")
cummin = _running("cummin", torch.cummin, "smallest", "[2.0, 2.0, 1.0]")


# ---- log(cumsum(exp(x))) -----------------------------------------------------------------------------


@op()
def logcumsumexp(x: Tensor, dim: int) -> Tensor:
    """The logarithm of the cumulative sum of exp(x), without overflow.

    >>> flow.logcumsumexp(flow.zeros(2), 0).tolist()
    [0.0, 0.693...]
    """
    return torch.logcumsumexp(x, dim)


logcumsumexp.layout(lambda x, dim: along(x, dim))
logcumsumexp.out(lambda y, x, dim: torch.logcumsumexp(x, dim, out=y))


@logcumsumexp.grad
def _(dy, x, y, dim):
    if not x.ndim:
        return dy
    if not here.grad:
        return logcumsumexp_grad(dy, x, y, dim)
    x, y, dy = (transpose(t, dim, -1) for t in (x, logcumsumexp(x, dim), dy))
    apart = sub(unsqueeze(x, -2), unsqueeze(where(eq(y, -math.inf), 0.0, y), -1))
    share = exp(where(eq(tril(ones_like(apart), 0), 1.0), apart, -math.inf))  # of each element in each sum
    return transpose(sum(mul(unsqueeze(dy, -1), conjugated(share)), -2), dim, -1)


@op(linear="dy", returns="dx")
def logcumsumexp_grad(dy: Tensor, x: Tensor, y: Tensor, dim: int) -> Tensor:
    """The gradient of logcumsumexp: exp(x) times the sum of dy / exp(y) from each element on, by logarithms."""

    def total(size: Tensor) -> Tensor:
        return (torch.logcumsumexp((size - y).flip(dim), dim).flip(dim) + x).exp()

    if dy.is_complex():
        return (torch.logcumsumexp((dy.log() - y.conj()).flip(dim), dim).flip(dim) + x.conj()).exp()
    y = y.masked_fill(y == -math.inf, 0.0)  # of elements whose share is zero
    size, least = dy.abs().log(), torch.finfo(dy.dtype).min
    return total(torch.where(dy > 0, size, least)) - total(torch.where(dy < 0, size, least))


logcumsumexp_grad.layout(lambda dy, x, y, dim: along(x, dim, 3))
logcumsumexp.samples(lambda rand: [(rand(4, 6), 1), (rand(2, 4, 6), -2)])
logcumsumexp_grad.samples(lambda rand: [(rand(4, 6), x := rand(4, 6), x.logcumsumexp(1), 1)])
