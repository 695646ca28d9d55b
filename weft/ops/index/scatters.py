"""Scatter with a reduction: products, extremes, means."""

from __future__ import annotations

import torch
from torch import Tensor

from weft.ops.create.constructors import zeros_like
from weft.ops.declaration import op
from weft.ops.index.indexing import gather, scatter_add, scattering
from weft.ops.pointwise.arithmetic import div, mul, sub
from weft.ops.pointwise.copies import cast, where
from weft.ops.pointwise.logic import eq


@op()
def scatter_reduced(x: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, include_self: bool = True) -> Tensor:
    """x with src scattered along a dimension at the index; duplicates are reduced.

    >>> flow._C.scatter_reduced(flow.zeros(2), 0, flow.tensor([1, 1]), flow.tensor([2., 3.]), "amax").tolist()
    [0.0, 3.0]
    """
    return torch.scatter_reduce(x, dim, index, src, reduce, include_self=include_self)


scatter_reduced.layout(scattering)


@scatter_reduced.grad
def _(dy, x, dim, index, src, reduce, include_self, y, needs):
    if reduce == "prod":
        zeros = scatter_add(_zeros(x) if include_self else zeros_like(dy), dim, index, _zeros(src))
        vanishing = scatter_add(_vanishing(x) if include_self else zeros_like(dy), dim, index, _vanishing(src))
        whole = scatter_reduced(_without_zeros(x), dim, index, _without_zeros(src), reduce, include_self)
        dx = _by_others(x, dy, whole, zeros, vanishing) if include_self else _untouched(dy, dim, index)
        there = (gather(t, dim, index) for t in (dy, whole, zeros, vanishing))
        return dx if needs[0] else None, None, _by_others(src, *there) if needs[2] else None
    kept = cast(eq(x, y), dy.dtype)
    if not include_self:  # untouched elements keep their value
        kept = _untouched(mul(kept, 0.0), dim, index, 1.0)
    picked = cast(eq(src, gather(y, dim, index)), dy.dtype)
    share = div(dy, scatter_add(kept, dim, index, picked))
    return (mul(kept, share) if needs[0] else None, None, mul(picked, gather(share, dim, index)) if needs[2] else None)


def _zeros(x):
    return cast(eq(x, 0.0), x.dtype)


def _without_zeros(x):
    return where(eq(x, 0.0), 1.0, x)


def _vanishing(x):
    """The elements that are 0: the derivative goes through them, too."""
    return where(eq(x, 0.0), x, 0.0)


def _by_others(x, dy, whole, zeros, vanishing):
    """dy times the product of all factors but x. `whole` is the product of those that aren't 0, and `vanishing` the sum
    of those that are, as many as `zeros`: if one is left beside x, it is a factor."""
    rest, others = div(whole, _without_zeros(x)), sub(zeros, _zeros(x))
    with_one = mul(rest, sub(vanishing, _vanishing(x)))
    return mul(dy, where(eq(others, 0.0), rest, where(eq(others, 1.0), with_one, 0.0)))


def _untouched(dy, dim, index, value=None):
    """dy, or a value, at positions outside the index; zero elsewhere."""
    ones = mul(cast(eq(index, index), dy.dtype), 1.0)
    touched = scatter_add(zeros_like(dy), dim, index, ones)
    return where(eq(touched, 0.0), dy if value is None else value, zeros_like(dy))


@scatter_reduced.samples
def _(rand):
    index = torch.tensor([[1, 5, 1]] * 4)
    yield rand(4, 6), 1, index, rand(4, 3), "amax"
    yield rand(4, 6), 1, index, rand(4, 3), "amin", False
    yield rand(4, 6), 1, index, rand(4, 3), "prod"
    yield rand(4, 6), 1, index, rand(4, 3), "prod", False
