"""What depends on the order along a dimension: running sums and products, sorting, turning round, shifting."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from weft.core.dispatch import here
from weft.ops.create import full_like
from weft.ops.declaration import Size, op
from weft.ops.elementwise import add, mul, turned
from weft.ops.indexing import scatter_add_zeros
from weft.ops.kernels import aten
from weft.ops.reduce import dims_of, kept, reduced
from weft.ops.shape import axes, dim_of, reshape
from weft.ops.slicing import cat, narrow
from weft.ops.softmax import along

# ---- turning and shifting ----------------------------------------------------------------------------


def _in_order(shape: tuple[int, ...], dims: Size) -> str:
    """The notation of an op that needs whole dimensions and keeps the shape."""
    held = dims_of(dims, len(shape)) if dims else tuple(range(len(shape)))
    term = " ".join(f"{a}!" if i in held else a for i, a in enumerate(axes(len(shape))))
    return f"{term} -> {term}"


@op(linear="x")
def flip(x: Tensor, dims: Size) -> Tensor:
    """x with the order turned round along some dimensions.

    >>> flow.flip(flow.arange(3), (0,)).tolist()
    [2, 1, 0]
    """
    return torch.flip(x, tuple(dims))


flip.layout(lambda x, dims: _in_order(x, dims))


@flip.grad
def _(dy, dims):
    return flip(dy, dims)


@flip.samples
def _(rand):
    yield rand(4, 6), (1,)
    yield rand(2, 4, 6), (0, -1)


@op(linear="x")
def roll(x: Tensor, shifts: int | Size, dims: int | Size = ()) -> Tensor:
    """x shifted along some dimensions, what leaves at one end coming in at the other; all as one without dims.

    >>> flow.roll(flow.arange(4), 1, 0).tolist()
    [3, 0, 1, 2]
    """
    return torch.roll(x, shifts, dims)


roll.layout(lambda x, shifts, dims: _in_order(x, (dims,) if isinstance(dims, int) else dims))


@roll.grad
def _(dy, shifts, dims):
    return roll(dy, -shifts if isinstance(shifts, int) else tuple(-s for s in shifts), dims)


@roll.samples
def _(rand):
    yield rand(4, 6), 2, 1
    yield rand(4, 6), (1, -2), (0, 1)
    yield rand(4, 6), 3


# ---- running sums and products -----------------------------------------------------------------------


@op(linear="x")
def cumsum(x: Tensor, dim: int) -> Tensor:
    """The sum of each element and all before it along a dimension.

    >>> flow.cumsum(flow.tensor([1., 2., 3.]), 0).tolist()
    [1.0, 3.0, 6.0]
    """
    return torch.cumsum(x, dim)


cumsum.layout(lambda x, dim: along(x, dim))
cumsum.out(lambda y, x, dim: torch.cumsum(x, dim, out=y))


@cumsum.grad
def _(dy, dim):
    return _from_the_end(dy, dim)


def _from_the_end(x: Any, dim: int) -> Any:
    return flip(cumsum(flip(x, (dim,)), dim), (dim,))


@cumsum.samples
def _(rand):
    yield rand(4, 6), 1
    yield rand(2, 4, 6), -2


@op()
def cumprod(x: Tensor, dim: int) -> Tensor:
    """The product of each element and all before it along a dimension.

    >>> flow.cumprod(flow.tensor([1., 2., 3.]), 0).tolist()
    [1.0, 2.0, 6.0]
    """
    return torch.cumprod(x, dim)


cumprod.layout(lambda x, dim: along(x, dim))
cumprod.out(lambda y, x, dim: torch.cumprod(x, dim, out=y))


@cumprod.grad
def _(dy, x, y, dim):
    if not here.grad or not x.ndim or not x.shape[dim]:
        return cumprod_grad(dy, x, y, dim)
    # By ops that can be differentiated again, also where elements are zero: what stands before each, times the sum of
    # dy over what comes after, by the products in between: total[k] = dy[k] + x[k + 1] * total[k + 1], by doubling.
    x, n = turned(x), x.shape[dim]
    total, factor, step = dy, _later(x, dim, 1, 0.0), 1
    while step < n:
        total = add(total, mul(factor, _later(total, dim, step, 0.0)))
        factor = mul(factor, _later(factor, dim, step, 0.0))
        step *= 2
    return mul(_before(x, dim), total)


def _later(x: Any, dim: int, step: int, fill: float) -> Any:
    """Each place holds what stood so many places later; the last ones the fill."""
    n = x.shape[dim]
    rest = full_like(narrow(x, dim, 0, step), fill, None)
    return cat([narrow(x, dim, step, n - step), rest], dim) if step < n else full_like(x, fill, None)


def _before(x: Any, dim: int) -> Any:
    """The product of all that stands before each place."""
    return cumprod(flip(_later(flip(x, (dim,)), dim, 1, 1.0), (dim,)), dim)


@cumprod.samples
def _(rand):
    yield rand(4, 6), 1


@op(linear="dy", returns="dx")
def cumprod_grad(dy: Tensor, x: Tensor, y: Tensor, dim: int) -> Tensor:
    """The gradient of cumprod, right where elements are zero too."""
    return aten.cumprod_backward(dy, x, dim, y)


cumprod_grad.layout(lambda dy, x, y, dim: along(x, dim, 3))


@cumprod_grad.samples
def _(rand):
    x = rand(4, 6) * (rand(4, 6) > 0)
    yield rand(4, 6), x, x.cumprod(1), 1


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
        return prod_grad(reshape(dy, form), turned(x), dim)
    rows = reshape(turned(x), (-1,)) if dim is None or not x.ndim else turned(x)
    d = 0 if dim is None else dim
    others = mul(_before(rows, d), flip(_before(flip(rows, (d,)), d), (d,)))
    return mul(reshape(dy, form), reshape(others, tuple(x.shape)))


@prod.samples
def _(rand):
    yield (rand(4, 6),)
    yield rand(4, 6), 1
    yield rand(2, 4, 6), 0, True


@op(linear="dy", returns="dx")
def prod_grad(dy: Tensor, x: Tensor, dim: int | None) -> Tensor:
    """The gradient of prod: for each element dy times the product of the others, right where some are zero too."""
    if not x.numel():  # nothing stands before or after it
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


@prod_grad.samples
def _(rand):
    yield rand(4, 1), rand(4, 6) * (rand(4, 6) > 0), 1


# ---- sorting -----------------------------------------------------------------------------------------


def _two(shape: tuple[int, ...], dim: int, renamed: bool = False) -> str:
    left, _, right = along(shape, dim).partition(" -> ")
    right = right.replace("!", "k!") if renamed else right
    return f"{left} -> {right}, {right}"


@op(returns="values indices*")
def sort(x: Tensor, dim: int = -1, descending: bool = False, stable: bool = False) -> Any:
    """The elements in order along a dimension, and where each stood.

    >>> flow.sort(flow.tensor([3., 1., 2.]))[1].tolist()
    [1, 2, 0]
    """
    return tuple(torch.sort(x, dim=dim, descending=descending, stable=stable))


sort.layout(lambda x, dim, descending, stable: _two(x, dim))


@sort.grad
def _(dvalues, indices, x_shape, dim):
    return scatter_add_zeros(dvalues, dim_of(dim, len(x_shape)), indices, tuple(x_shape))


@sort.samples
def _(rand):
    yield rand(4, 6)
    yield rand(4, 6), 0, True


@op(returns="indices*")
def argsort(x: Tensor, dim: int = -1, descending: bool = False, stable: bool = False) -> Tensor:
    """Where the elements in order along a dimension stood.

    >>> flow.argsort(flow.tensor([3., 1., 2.])).tolist()
    [1, 2, 0]
    """
    return torch.argsort(x, dim=dim, descending=descending, stable=stable)


argsort.layout(lambda x, dim, descending, stable: along(x, dim))


@argsort.samples
def _(rand):
    yield rand(4, 6)
    yield rand(4, 6), 0, True


@op(returns="values indices*")
def topk(x: Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:
    """The k largest (or smallest) elements along a dimension, and where they stand.

    >>> flow.topk(flow.tensor([3., 1., 2.]), 2)[0].tolist()
    [3.0, 2.0]
    """
    return tuple(torch.topk(x, k, dim, largest, sorted))


topk.layout(lambda x, k, dim, largest, sorted: _two(x, dim, True))


@topk.grad
def _(dvalues, indices, x_shape, dim):
    return scatter_add_zeros(dvalues, dim_of(dim, len(x_shape)), indices, tuple(x_shape))


@topk.samples
def _(rand):
    yield rand(4, 6), 2
    yield rand(4, 6), 3, 0, False
