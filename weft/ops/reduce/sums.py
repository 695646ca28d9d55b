"""Reductions; along a split dimension, a sum is a partial sum."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from weft.ops.declaration import Size, op
from weft.ops.pointwise.arithmetic import abs, div, mul, sub
from weft.ops.shape.broadcast import expand
from weft.ops.shape.views import axes, dim_of, reshape

Dims = int | Size | None


def dims_of(dim: Dims, ndim: int) -> tuple[int, ...]:
    if dim is None or (not isinstance(dim, int) and len(dim) == 0):
        return tuple(range(ndim))
    dims = tuple(dim_of(d, ndim) for d in ([dim] if isinstance(dim, int) else dim))
    return dims if ndim else ()  # a 0-d tensor may be asked for its dimension 0, and has none


def reduced(ndim: int, dim: Dims, keepdim: bool, mark: str = "") -> str:
    """The notation of a reduction; `mark` is appended to the reduced axes."""
    gone = dims_of(dim, ndim)
    names = [f"{a}{mark}" if i in gone else a for i, a in enumerate(axes(ndim))]
    out = ["1" if i in gone else a for i, a in enumerate(names) if keepdim or i not in gone]
    return f"{' '.join(names)} -> {' '.join(out)}" if out else f"{' '.join(names)} -> "


def kept(shape: Size, dim: Dims) -> tuple[int, ...]:
    gone = dims_of(dim, len(shape))
    return tuple(1 if i in gone else n for i, n in enumerate(shape))


@op(linear="x", uniform=True)
def sum(x: Tensor, dim: int | Size | None = None, keepdim: bool = False) -> Tensor:
    """The sum of the elements, over some dimensions or all.

    >>> flow.sum(flow.ones(2, 3), 1).tolist()
    [3.0, 3.0]
    """
    return torch.sum(x) if dim is None and not keepdim else torch.sum(x, dim, keepdim)


sum.layout(lambda x, dim, keepdim: reduced(len(x), dim, keepdim))


@sum.out
def _(y, x, dim, keepdim):
    torch.sum(x, tuple(range(x.dim())) if dim is None else dim, keepdim, out=y)


@sum.prepared
def _(y, x, dim, keepdim):
    return torch.sum, (x, tuple(range(x.dim())) if dim is None else dim, keepdim), {"out": y}


sum.grad(lambda dy, x_shape, dim, keepdim: _spread_over(dy, tuple(x_shape), dim, keepdim))


def _spread_over(dy: Any, shape: tuple[int, ...], dim: Dims, keepdim: bool) -> Any:
    """A gradient expanded along the reduced dimensions."""
    return expand(dy if keepdim or dim is None or not shape else reshape(dy, kept(shape, dim)), shape)


sum.samples(lambda rand: [(rand(4, 6),), (rand(4, 6), 1), (rand(2, 4, 6), (0, 2), True)])


@op(linear="x", uniform=True)
def mean(x: Tensor, dim: int | Size | None = None, keepdim: bool = False) -> Tensor:
    """The mean of the elements, over some dimensions or all.

    >>> flow.mean(flow.tensor([[1., 3.]])).item()
    2.0
    """
    return torch.mean(x) if dim is None and not keepdim else torch.mean(x, dim, keepdim)


mean.layout(lambda x, dim, keepdim: reduced(len(x), dim, keepdim, "@"))


@mean.ranked
def _(where, x, dim, keepdim):
    shape = where.input_shapes[0]
    dims = dims_of(dim, len(shape))
    return torch.sum(x, dims, keepdim) / math.prod(shape[d] for d in dims)


@mean.out
def _(y, x, dim, keepdim):
    torch.mean(x, tuple(range(x.dim())) if dim is None else dim, keepdim, out=y)


@mean.prepared
def _(y, x, dim, keepdim):
    return torch.mean, (x, tuple(range(x.dim())) if dim is None else dim, keepdim), {"out": y}


@mean.grad
def _(dy, x_shape, dim, keepdim):
    shape = tuple(x_shape)
    count = math.prod(shape[d] for d in dims_of(dim, len(shape))) if shape else 1
    dy = mul(dy, 1.0 / max(count, 1))  # empty: no element has a gradient
    return _spread_over(dy, shape, dim, keepdim)


mean.samples(lambda rand: [(rand(4, 6),), (rand(4, 6), 1), (rand(5, 6), 0, True)])


@op(uniform=True)
def variance(x: Tensor, dim: Size, less: float, keepdim: bool = False) -> Tensor:
    """The squared distance from the mean, summed over some dimensions and divided by their number of elements minus
    `less`.

    >>> flow._C.variance(flow.tensor([1., 3.]), (0,), 1).item()
    2.0
    """
    return torch.var(x, tuple(dim), correction=less, keepdim=keepdim)


variance.layout(lambda x, dim, less, keepdim: reduced(len(x), dim, keepdim, "!"))
variance.instead(lambda x, dim, less, keepdim: spread(x, dim, less, keepdim))


def spread(x: Any, dim: Dims, less: float, keepdim: bool) -> Any:
    """The variance as a composition, which ranks can share, and which is defined for complex and for too few
    numbers."""
    off = sub(x, mean(x, dim, True))
    off = abs(off) if off.dtype.is_complex else off
    count = math.prod(x.shape[d] for d in dims_of(dim, x.ndim))
    return div(sum(mul(off, off), dim, keepdim), float(max(count - less, 0)))


@variance.grad
def _(dy, x, dim, less, keepdim):
    shape = tuple(x.shape)
    factor = mul(dy, 2.0 / (math.prod(shape[d] for d in dims_of(dim, len(shape))) - less))
    if not keepdim:
        factor = reshape(factor, kept(shape, dim))
    return mul(sub(x, mean(x, dim, True)), factor)


variance.samples(lambda rand: [(rand(4, 6), (1,), 1), (rand(2, 4, 6), (0, 2), 0, True)])
