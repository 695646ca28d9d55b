"""Slicing: narrow, select, and basic indexing."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from weft.ops.create.constructors import zeros_like
from weft.ops.declaration import Size, op
from weft.ops.shape.views import axes_at, dim_of, unsqueeze

# ---- narrow ------------------------------------------------------------------------------------------


@op(linear="x", view=True)
def narrow(x: Tensor, dim: int, start: int, length: int, step: int = 1) -> Tensor:
    """`length` elements along a dimension: start, start + step, ...

    >>> flow.narrow(flow.arange(5), 0, 1, 3).tolist()
    [1, 2, 3]
    """
    if step == 1:
        return x.narrow(dim, start, length)
    at = [slice(None)] * x.dim()
    at[dim_of(dim, x.dim())] = slice(start, start + (length - 1) * step + 1 if length else start, step)
    return x[tuple(at)]


@narrow.layout
def _(x, dim, start, length, step):
    whole = start == 0 and length == x[dim_of(dim, len(x))] and step == 1
    return axes_at("<@> -> <@>" if whole else "<!> -> <o!>", len(x), dim)


@narrow.ranked
def _(where, x, dim, start, length, step):
    return x.narrow(dim, 0, x.shape[dim])  # the whole dimension, so all of each shard


@narrow.grad
def _(dy, x_shape, dim, start, length, step):
    if tuple(dy.shape) == tuple(x_shape):
        return dy
    return narrow_scatter_zeros(dy, tuple(x_shape), dim, start, length, step)


narrow.samples(lambda rand: [(rand(4, 6), 1, 1, 3), (rand(5, 6), 0, 0, 3, 2), (rand(4, 6), 0, 0, 4)])


@op(linear="x", returns="dx", shape_of="shape")
def narrow_scatter_zeros(x: Tensor, shape: Size, dim: int, start: int, length: int, step: int = 1) -> Tensor:
    """Zeros of `shape` with x at the elements that `narrow` would read."""
    y = x.new_zeros(tuple(shape))
    narrow.kernel(y, dim, start, length, step).copy_(x)
    return y


narrow_scatter_zeros.layout(lambda x, shape, dim, *_: axes_at("<!> -> <o!>", len(x), dim))
narrow_scatter_zeros.grad(lambda ddx, dim, start, length, step: narrow(ddx, dim, start, length, step))
narrow_scatter_zeros.samples(lambda rand: [(rand(4, 3), (4, 6), 1, 1, 3)])


@op(linear="base+part", promotes=True, memory_order="first")
def narrow_scatter(base: Tensor, part: Tensor, dim: int, start: int, length: int, step: int = 1) -> Tensor:
    """base with `part` at the elements that `narrow` would read.

    >>> flow._C.narrow_scatter(flow.zeros(3), flow.ones(1), 0, 1, 1).tolist()
    [0.0, 1.0, 0.0]
    """
    y = base.clone()
    narrow.kernel(y, dim, start, length, step).copy_(part)
    return y


narrow.scattered(narrow_scatter)
narrow_scatter.layout(lambda base, part, dim, *_: axes_at("<!>, <p!> -> <!>", len(base), dim))


@narrow_scatter.grad
def _(dy, dim, start, length, step, needs):
    part = narrow(dy, dim, start, length, step)
    return narrow_scatter(dy, zeros_like(part), dim, start, length, step) if needs[0] else None, part


narrow_scatter.samples(lambda rand: [(rand(4, 6), rand(4, 2), 1, 3, 2)])


@op(linear="x", view=True)
def select(x: Tensor, dim: int, index: int) -> Tensor:
    """One slice along a dimension, which is removed.

    >>> flow.select(flow.arange(6).view(2, 3), 0, 1).tolist()
    [3, 4, 5]
    """
    return x.select(dim, index)


select.layout(lambda x, dim, index: axes_at("<!> -> <>", len(x), dim))


@select.grad
def _(dy, x_shape, dim, index):
    shape = tuple(x_shape)
    return narrow_scatter_zeros(unsqueeze(dy, dim), shape, dim, index % shape[dim], 1)


@select.scattered
def _(base, part, dim, index):
    return narrow_scatter(base, unsqueeze(part, dim), dim, index % base.shape[dim], 1)


select.samples(lambda rand: [(rand(4, 6), 0, 2), (rand(4, 6), 1, -1)])


# ---- basic indexing ----------------------------------------------------------------------------------


@op(linear="x", view=True)
def basic_index(x: Tensor, key: Any) -> Tensor:
    """x[key], for a key of ints, slices, None and one Ellipsis, as one view in eager programs. Graphs and global
    tensors use `narrow`, `select` and `unsqueeze` instead.

    >>> flow._C.basic_index(flow.arange(6).view(2, 3), (1, slice(0, 2))).tolist()
    [3, 4]
    """
    return x[key]


basic_index.instead(lambda x, key: x[key])
basic_index.grad(lambda dy, x_shape, key: basic_index_zeros(dy, tuple(x_shape), key))


@op(linear="x", returns="dx", shape_of="shape")
def basic_index_zeros(x: Tensor, shape: Size, key: Any) -> Tensor:
    """Zeros of `shape` with x at the elements that `basic_index` would read."""
    y = x.new_zeros(tuple(shape))
    y[key] = x
    return y


basic_index_zeros.grad(lambda ddx, key: basic_index(ddx, key))


@op(linear="base+part", promotes=True, memory_order="first")
def basic_index_scatter(base: Tensor, part: Tensor, key: Any) -> Tensor:
    """base with `part` at the elements that `basic_index` would read.

    >>> flow._C.basic_index_scatter(flow.zeros(3), flow.tensor(1.), 1).tolist()
    [0.0, 1.0, 0.0]
    """
    y = base.clone()
    y[key] = part
    return y


basic_index.scattered(basic_index_scatter)
basic_index_scatter.inplace(lambda base, part, key: base.__setitem__(key, part))


@basic_index_scatter.grad
def _(dy, key, needs):
    return basic_index_fill(dy, 0, key) if needs[0] else None, basic_index(dy, key) if needs[1] else None


@op(memory_order="first")
def basic_index_fill(x: Tensor, value: float, key: Any) -> Tensor:
    """x with `value` at the elements that `basic_index` would read.

    >>> flow._C.basic_index_fill(flow.zeros(3), 1, slice(1, 3)).tolist()
    [0.0, 1.0, 1.0]
    """
    y = x.clone()
    y[key] = value
    return y


basic_index_fill.inplace(lambda x, value, key: x.__setitem__(key, value))
basic_index_fill.grad(lambda dy, key: basic_index_fill(dy, 0, key))


@basic_index.samples
def _(rand):
    yield rand(4, 6), (slice(None), slice(1, 5, 2))
    yield rand(4, 6), (None, 1, Ellipsis, slice(-2, None))
    yield rand(4, 6), -1


basic_index_zeros.samples(lambda rand: [(rand(4, 2), (4, 6), (slice(None), slice(1, 5, 2)))])

basic_index_scatter.samples(lambda rand: [(rand(4, 6), rand(4, 2), (slice(None), slice(1, 5, 2)))])

basic_index_fill.samples(lambda rand: [(rand(4, 6), 2.5, (slice(None), slice(1, 5, 2)))])
