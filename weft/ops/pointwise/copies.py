"""Copies, casts, and element-wise selection."""

from __future__ import annotations

import torch
from torch import Tensor

from weft.core import dtype as dtypes
from weft.core.dtype import DType
from weft.core.errors import OptionError
from weft.core.sbp import split
from weft.ops.create.constructors import zeros_like
from weft.ops.declaration import OPS, Scalar, op
from weft.ops.notation import Rule
from weft.ops.shape.broadcast import fit
from weft.ops.shape.views import axes


@op(linear="value", promotes=True)
def steady(value: Tensor, x: Tensor) -> Tensor:
    """The value, as a function of x whose gradient is zeros.

    >>> flow._C.steady(flow.tensor([2.]), flow.tensor([7.])).tolist()
    [2.0]
    """
    return value.clone()


@steady.layout
def _(value, x):
    names = " ".join(axes(len(x)))
    return f"{names}, {names} -> {names}"


steady.grad(lambda dy, needs: (dy if needs[0] else None, zeros_like(dy) if needs[1] else None))
steady.samples(lambda rand: [(rand(4, 6), rand(4, 6))])


@op("..., ... -> ...")
def require(x: Tensor, valid: Tensor, message: str) -> Tensor:
    """x, if `valid` holds for all of it; else an error, in a graph's launch, too.

    >>> x = flow.tensor([2.0])
    >>> flow._C.require(x, x > 0, "positive numbers only").tolist()
    [2.0]
    """
    if valid.device.type != "meta" and not bool(valid.all()):
        raise OptionError(f"{message}; {float(x[~valid][0]):g} is among {x.numel()}")
    return x.clone()


require.form(lambda x, valid, message: x if x.shape == valid.shape else None)
require.grad(lambda dy: (dy, None))
require.samples(lambda rand: [(x := rand(4, 6), x == x, "")])


@op("... -> ...")
def cast(x: Tensor, dtype: DType) -> Tensor:
    """x in another dtype.

    >>> flow.cast(flow.tensor([1.7]), flow.int32).tolist()
    [1]
    """
    return x.to(dtype.torch)


@cast.out
def _(y, x, dtype):
    y.copy_(x)


@cast.grad
def _(dy, x_dtype):
    if dy.dtype is x_dtype:
        return dy
    if dy.dtype.is_complex and not x_dtype.is_complex:
        dy = OPS["select"](OPS["view_as_real"](dy), -1, 0)
    return cast(dy, x_dtype)


cast.samples(lambda rand: [(rand(4, 6), dtypes.float64), (torch.arange(6).view(2, 3), dtypes.float64)])


@op("... -> ...", linear="x")
def clone(x: Tensor) -> Tensor:
    """A copy of x.

    >>> x = flow.ones(2); y = flow.clone(x); y[0] = 5; x.tolist()
    [1.0, 1.0]
    """
    return x.clone()


@clone.layout
def _(x):
    return (Rule((split(dim),), (split(dim),)) for dim in range(len(x)))  # as it lies, also if one rank has it all


clone.out(lambda y, x: y.copy_(x))
clone.grad(lambda dy: dy)
clone.samples(lambda rand: [(rand(4, 6),)])


@op("... -> ...", linear="x")
def to_dense(x: Tensor) -> Tensor:
    """The numbers of a sparse tensor, each in its place."""
    return x.clone() if x.layout is torch.strided else x.to_dense()


to_dense.grad(lambda dy: dy)
to_dense.samples(lambda rand: [(rand(4, 6),)])


@op("... -> ...", linear="x")
def coalesce(x: Tensor) -> Tensor:
    """A sparse tensor, each index once and in order."""
    return x.clone() if x.layout is torch.strided else x.coalesce()


coalesce.grad(lambda dy: dy)
coalesce.samples(lambda rand: [(rand(4, 6),)])


@op("..., ... -> ...", linear="x+value")
def copy(x: Tensor, value: Tensor) -> Tensor:
    """The value with x's shape and dtype: the result of `x.copy_(value)`."""
    return value.to(x.dtype).expand(x.shape).clone()


copy.inplace(lambda x, value: x.copy_(value))


@copy.form
def _(x, value):
    lead = len(x.shape) - len(value.shape)
    return x if lead >= 0 and all(n in (1, m) for n, m in zip(value.shape, x.shape[lead:], strict=True)) else None


@copy.grad
def _(dy, value_shape, value_dtype, needs):
    return zeros_like(dy) if needs[0] else None, fit(cast(dy, value_dtype), value_shape)


copy.samples(lambda rand: [(rand(4, 6), rand(4, 6))])


@op("..., ..., ... -> ...", linear="a+b")
def where(condition: Tensor, a: Tensor | Scalar, b: Tensor | Scalar) -> Tensor:
    """a where the condition is true, b elsewhere.

    >>> flow.where(flow.tensor([True, False]), flow.ones(2), 0.).tolist()
    [1.0, 0.0]
    """
    return torch.where(condition, a, b)


@where.grad
def _(dy, condition, a_shape, b_shape, needs):
    return (
        None,
        fit(where(condition, dy, 0.0), a_shape) if needs[1] else None,
        fit(where(condition, 0.0, dy), b_shape) if needs[2] else None,
    )


where.samples(lambda rand: [(rand(4, 6) > 0, rand(4, 6), rand(4, 6)), (rand(4, 1) > 0, rand(4, 6), 0.5)])


@op("..., ... -> ...", memory_order="contiguous")
def masked_fill(x: Tensor, mask: Tensor, value: Scalar) -> Tensor:
    """x with `value` where the mask is true.

    >>> flow.masked_fill(flow.ones(2), flow.tensor([True, False]), 0.).tolist()
    [0.0, 1.0]
    """
    return x.masked_fill(mask, value)


masked_fill.inplace(lambda x, mask, value: x.masked_fill_(mask, value))
masked_fill.grad(lambda dy, mask, x_shape: (fit(masked_fill(dy, mask, 0.0), x_shape), None))
masked_fill.samples(lambda rand: [(rand(4, 6), rand(4, 6) > 0, 0.5), (rand(4, 6), rand(6) > 0, -1.0)])


@op(view=True, returns="y*")
def reinterpret(x: Tensor, dtype: DType) -> Tensor:
    """x's memory reinterpreted as another dtype; sizes that differ scale the last dimension.

    >>> flow.ones(1).view(flow.int32).tolist()
    [1065353216]
    """
    return x.view(dtype.torch)


@reinterpret.layout
def _(x, dtype):
    names = [f"a{i}" for i in range(len(x))]
    return f"{' '.join([*names[:-1], 'k!'])} -> {' '.join([*names[:-1], 'j!'])}" if x else None


reinterpret.samples(lambda rand: [(rand(4, 6), dtypes.int64), (rand(4, 6), dtypes.int32)])
