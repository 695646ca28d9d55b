"""Maxima and minima, of all elements and along dimensions; `any` and `all`, which are those of booleans."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from weft.core import dtype as dtypes
from weft.ops.declaration import Op, Size, op
from weft.ops.index.indexing import scatter_add_zeros
from weft.ops.pointwise.arithmetic import div, mul
from weft.ops.pointwise.copies import cast
from weft.ops.pointwise.logic import eq, ne
from weft.ops.reduce.sums import dims_of, kept, reduced, sum
from weft.ops.shape.views import dim_of, reshape, unsqueeze


def _least(dtype: torch.dtype) -> float | int | bool:
    if dtype == torch.bool:
        return False
    return -float("inf") if dtype.is_floating_point else torch.iinfo(dtype).min


def _most(dtype: torch.dtype) -> float | int | bool:
    if dtype == torch.bool:
        return True
    return float("inf") if dtype.is_floating_point else torch.iinfo(dtype).max


def _extreme(name: str, kernel, which: str):
    def body(x: Tensor, dim: int | Size | None = None, keepdim: bool = False) -> Tensor:
        return kernel(x, () if dim is None else dim, keepdim)

    body.__name__ = name
    body.__doc__ = f"The {which} of the elements, over some dimensions or all; ties share the gradient."
    declared = op(reduce="max" if name == "amax" else "min", uniform=True)(body)
    declared.layout(lambda x, dim, keepdim: reduced(len(x), dim, keepdim, "@"))

    @declared.ranked
    def _(where, x, dim, keepdim):
        gone = dims_of(dim, x.dim())
        if x.numel():
            return kernel(x, gone, keepdim)
        shape = [1 if i in gone else n for i, n in enumerate(x.shape) if keepdim or i not in gone]
        return x.new_full(shape, _least(x.dtype) if name == "amax" else _most(x.dtype))  # an empty shard: the identity

    @declared.out
    def _(y, x, dim, keepdim):
        kernel(x, () if dim is None else dim, keepdim, out=y)

    @declared.grad
    def _(dy, x, y, dim, keepdim):
        shape = tuple(x.shape)
        form = kept(shape, dim)
        hit = cast(eq(x, reshape(y, form)), dy.dtype)
        share = div(hit, sum(hit, dims_of(dim, len(shape)), True))
        return mul(share, reshape(dy, form))

    declared.samples(lambda rand: [(rand(4, 6),), (rand(4, 6), 1), (rand(2, 4, 6), (0, 2), True)])

    return declared


amax = _extreme("amax", torch.amax, "largest")
amin = _extreme("amin", torch.amin, "smallest")


def _along(name: str, kernel: Callable[..., Any], which: str) -> Op:
    def body(x: Tensor, dim: int, keepdim: bool = False) -> Any:
        return tuple(kernel(x, dim, keepdim))

    body.__name__ = name
    body.__doc__ = f"The {which} element of every slice along a dimension, and its index."
    declared = op(returns="values indices*")(body)
    declared.layout(lambda x, dim, keepdim: _whole_slices(len(x), dim, keepdim, 2))

    @declared.grad
    def _(dvalues, indices, x_shape, dim, keepdim):
        shape = tuple(x_shape)
        if not shape:
            return dvalues
        if not keepdim:
            dvalues, indices = unsqueeze(dvalues, dim), unsqueeze(indices, dim)
        return scatter_add_zeros(dvalues, dim_of(dim, len(shape)), indices, shape)

    declared.samples(lambda rand: [(rand(4, 6), 1), (rand(4, 6), 0, True)])

    return declared


def _whole_slices(ndim: int, dim: int | None, keepdim: bool, outputs: int) -> str:
    left, _, right = reduced(ndim, dim, keepdim, "!").partition("->")
    return f"{left}->{', '.join([right.strip()] * outputs)}" if right.strip() else "_ -> " + ", ".join([""] * outputs)


max = _along("max", torch.max, "largest")
min = _along("min", torch.min, "smallest")


def _where(name: str, kernel: Callable[..., Any], which: str) -> Op:
    def body(x: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
        return kernel(x, dim, keepdim)

    body.__name__ = name
    body.__doc__ = f"""The index of the {which} element, along a dimension or of all.

    >>> flow.{name}(flow.tensor([3., 1., 2.])).item()
    {0 if name == "argmax" else 1}
    """
    declared = op(returns="indices*")(body)
    declared.layout(lambda x, dim, keepdim: _whole_slices(len(x), dim, keepdim, 1))
    declared.samples(lambda rand: [(rand(4, 6),), (rand(4, 6), 1), (rand(4, 6), 0, True)])
    return declared


argmax = _where("argmax", torch.argmax, "largest")
argmin = _where("argmin", torch.argmin, "smallest")


def _of_all(name: str, kernel: Callable[..., Any], doc: str) -> Op:
    def body(x: Tensor, dim: int | Size | None = None, keepdim: bool = False) -> Tensor:
        dims = dims_of(dim, x.dim()) if dim is not None or keepdim else ()  # of all, the kernel takes sparse ones
        return kernel(x, dims, keepdim) if dims else kernel(x)

    body.__name__, body.__doc__ = name, doc
    declared = op(returns="y*")(body)
    declared.layout(lambda x, dim, keepdim: reduced(len(x), dim, keepdim, "!"))

    @declared.instead
    def _(x, dim, keepdim):
        """Counts of what is on each rank, where slices are split: less moves than of slices."""
        gone = dims_of(dim, x.ndim)
        if not {s.dim for s in x.sbp if s.is_split} & {*gone}:
            return NotImplemented
        counts = sum(cast((ne if name == "any" else eq)(x, 0), dtypes.int64), gone, keepdim)
        return cast((ne if name == "any" else eq)(counts, 0), dtypes.uint8 if x.dtype is dtypes.uint8 else dtypes.bool_)

    declared.samples(lambda rand: [(rand(4, 6) > 0,), (rand(4, 6) > -1, 1), (rand(2, 4, 6) > 1, (0, 2), True)])

    return declared


any = _of_all("any", torch.any, "Whether any element is true, over some dimensions or all.")
all = _of_all("all", torch.all, "Whether every element is true, over some dimensions or all.")
