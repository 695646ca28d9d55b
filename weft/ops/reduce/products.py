"""Products along a dimension."""

from __future__ import annotations

import torch
from torch import Tensor

from weft.core.dispatch import here
from weft.ops.declaration import op
from weft.ops.neural.softmax import along
from weft.ops.pointwise.arithmetic import conjugated, mul
from weft.ops.reduce.running import _before
from weft.ops.reduce.sums import kept, reduced
from weft.ops.shape.flips import flip
from weft.ops.shape.views import axes, dim_of, reshape


@op()
def prod(x: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
    """The product of the elements, along a dimension or of all.

    >>> flow.prod(flow.tensor([2., 3.])).item()
    6.0
    """
    if dim is None:
        return torch.prod(x).reshape((1,) * x.dim()) if keepdim else torch.prod(x)
    return torch.prod(x, dim, keepdim)


prod.layout(lambda x, dim, keepdim: reduced(len(x), dim, keepdim, "!"))


@prod.grad
def _(dy, x, dim, keepdim):
    form = kept(tuple(x.shape), dim)
    if not here.grad or 0 in x.shape:
        return prod_grad(reshape(dy, form), conjugated(x), dim)
    rows = reshape(conjugated(x), (-1,)) if dim is None or not x.ndim else conjugated(x)
    d = 0 if dim is None else dim
    others = mul(_before(rows, d), flip(_before(flip(rows, (d,)), d), (d,)))
    return mul(reshape(dy, form), reshape(others, tuple(x.shape)))


prod.samples(lambda rand: [(rand(4, 6),), (rand(4, 6), 1), (rand(2, 4, 6), 0, True)])


@op(linear="dy", returns="dx")
def prod_grad(dy: Tensor, x: Tensor, dim: int | None) -> Tensor:
    """The gradient of prod: dy times the product of the other elements, also correct for zeros."""
    if not x.numel():  # empty: no products
        return x.new_zeros(x.shape)
    dim = dim if x.dim() else None
    rows = x.reshape(1, -1) if dim is None else x.movedim(dim, -1)
    one = rows.new_ones((*rows.shape[:-1], 1))
    before = torch.cat([one, rows[..., :-1]], -1).cumprod(-1)
    after = torch.cat([one, rows.flip(-1)[..., :-1]], -1).cumprod(-1).flip(-1)
    others = before * after
    return dy * (others.reshape(x.shape) if dim is None else others.movedim(-1, dim))


@prod_grad.layout
def _(dy, x, dim):
    names = [f"{a}!" if dim is None or i == dim_of(dim, len(x)) else a for i, a in enumerate(axes(len(x)))]
    summed = " ".join("1" if a.endswith("!") else a for a in names)
    return f"{summed}, {' '.join(names)} -> {' '.join(names)}"


prod_grad.samples(lambda rand: [(rand(4, 1), rand(4, 6) * (rand(4, 6) > 0), 1)])


def _two(shape: tuple[int, ...], dim: int, renamed: bool = False) -> str:
    left, _, right = along(shape, dim).partition(" -> ")
    right = right.replace("!", "k!") if renamed else right
    return f"{left} -> {right}, {right}"
