"""Ops that only move elements around: most are views, which share memory with their operand."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import torch
from torch import Tensor

from weft.core.errors import IndexingError, ShapeError
from weft.core.sbp import split
from weft.ops.declaration import Size, op
from weft.ops.elementwise import sub
from weft.ops.notation import Rule


def dim_of(dim: int, ndim: int) -> int:
    """A dimension counted from the front, or an error that tells the range."""
    if not -max(ndim, 1) <= dim < max(ndim, 1):
        raise IndexingError(
            f"dimension out of range (expected to be in range of [{-max(ndim, 1)}, {max(ndim, 1) - 1}], but got {dim})"
        )
    return dim % max(ndim, 1)


def axes(ndim: int, prefix: str = "a") -> list[str]:
    return [f"{prefix}{i}" for i in range(ndim)]


# ---- reshape -----------------------------------------------------------------------------------------


@op(linear="x", shape_of="shape", view=True)
def view(x: Tensor, shape: Size) -> Tensor:
    """x in another shape, sharing memory; -1 stands for what is left.

    >>> flow.arange(6).view(2, 3).tolist()
    [[0, 1, 2], [3, 4, 5]]
    """
    return x.view(tuple(shape))


@op(linear="x", shape_of="shape", view=True)
def reshape(x: Tensor, shape: Size) -> Tensor:
    """x in another shape, sharing memory where strides allow; -1 stands for what is left.

    >>> flow.reshape(flow.arange(6), (3, -1)).tolist()
    [[0, 1], [2, 3], [4, 5]]
    """
    return x.reshape(tuple(shape))


def resolve(x: Size, shape: Size) -> tuple[int, ...]:
    """The shape with -1 worked out."""
    total = 1
    for n in x:
        total *= n
    known = 1
    for n in shape:
        known *= n if n != -1 else 1
    if -1 not in shape:
        return tuple(shape)
    if known == 0 or total % known:
        raise ShapeError(f"shape {list(shape)} is invalid for a tensor of shape {list(x)}, {total} elements")
    return tuple(total // known if n == -1 else n for n in shape)


def _reshape_rules(x: tuple[int, ...], shape: Size) -> list[Rule]:
    """A dimension that leads its group of merged or divided dimensions may be split, if it divides evenly there."""
    out = resolve(x, shape)
    found = []
    i = j = 0
    while i < len(x) and j < len(out):
        start_i, start_j, p, q = i, j, x[i], out[j]
        i, j = i + 1, j + 1
        while p != q:
            if p < q:
                if i >= len(x):
                    return found
                p, i = p * x[i], i + 1
            else:
                if j >= len(out):
                    return found
                q, j = q * out[j], j + 1
        a, b = start_i, start_j
        while a < i - 1 and x[a] == 1:
            a += 1
        while b < j - 1 and out[b] == 1:
            b += 1
        if x[a] == out[b]:
            found.append(Rule((split(a),), (split(b),)))
        elif x[a] > 1 and out[b] > 1:
            found.append(Rule((split(a),), (split(b),), even=(x[a], out[b])))
    return found


@view.layout
def _(x, shape):
    return _reshape_rules(x, shape)


@reshape.layout
def _(x, shape):
    return _reshape_rules(x, shape)


@view.grad
def _(dy, x_shape):
    return reshape(dy, tuple(x_shape))


@reshape.grad
def _(dy, x_shape):
    return reshape(dy, tuple(x_shape))


@view.scattered
def _(base, part, shape):
    return reshape(part, tuple(base.shape))


@reshape.scattered
def _(base, part, shape):
    return reshape(part, tuple(base.shape))


@view.samples
def _(rand):
    yield rand(4, 6), (24,)
    yield rand(4, 6), (2, 2, 6)


@reshape.samples
def _(rand):
    yield rand(4, 6), (24,)
    yield rand(4, 6), (4, 2, 3)
    yield rand(6, 4), (2, 12)
    yield rand(4, 6), (4, 1, -1)
    yield rand(3, 4, 6), (12, 6)


# ---- order of dimensions -----------------------------------------------------------------------------


@op(linear="x", view=True)
def transpose(x: Tensor, dim0: int, dim1: int) -> Tensor:
    """x with two dimensions exchanged.

    >>> flow.transpose(flow.ones(2, 3), 0, 1).shape
    weft.Size([3, 2])
    """
    return x.transpose(dim0, dim1)


@transpose.layout
def _(x, dim0, dim1):
    names = axes(len(x))
    out = list(names)
    if out:
        i, j = dim_of(dim0, len(x)), dim_of(dim1, len(x))
        out[i], out[j] = out[j], out[i]
    return f"{' '.join(names)} -> {' '.join(out)}"


@transpose.grad
def _(dy, dim0, dim1):
    return transpose(dy, dim0, dim1)


@transpose.scattered
def _(base, part, dim0, dim1):
    return transpose(part, dim0, dim1)


@transpose.samples
def _(rand):
    yield rand(4, 6), 0, 1
    yield rand(2, 4, 6), -1, 0


@op(linear="x", view=True)
def permute(x: Tensor, dims: Size) -> Tensor:
    """x with its dimensions in another order.

    >>> flow.permute(flow.ones(2, 3, 4), (2, 0, 1)).shape
    weft.Size([4, 2, 3])
    """
    return x.permute(tuple(dims))


@permute.layout
def _(x, dims):
    names = axes(len(x))
    return f"{' '.join(names)} -> {' '.join(names[d] for d in dims)}"


@permute.grad
def _(dy, dims):
    return permute(dy, _inverse(dims))


@permute.scattered
def _(base, part, dims):
    return permute(part, _inverse(dims))


def _inverse(dims: Size) -> tuple[int, ...]:
    n = len(dims)
    places = [d % n for d in dims]
    return tuple(places.index(i) for i in range(n))


@permute.samples
def _(rand):
    yield rand(2, 4, 6), (2, 0, 1)


@op(linear="x", view=True)
def unsqueeze(x: Tensor, dim: int) -> Tensor:
    """x with a dimension of size one put in.

    >>> flow.unsqueeze(flow.ones(3), 0).shape
    weft.Size([1, 3])
    """
    return x.unsqueeze(dim)


@unsqueeze.layout
def _(x, dim):
    names = axes(len(x))
    out = list(names)
    out.insert(dim_of(dim, len(x) + 1), "1")
    return f"{' '.join(names)} -> {' '.join(out)}"


@unsqueeze.grad
def _(dy, x_shape):
    return reshape(dy, tuple(x_shape))


@unsqueeze.scattered
def _(base, part, dim):
    return reshape(part, tuple(base.shape))


@unsqueeze.samples
def _(rand):
    yield rand(4, 6), 0
    yield rand(4, 6), -1


@op(linear="x", view=True)
def squeeze(x: Tensor, dim: int | Size | None = None) -> Tensor:
    """x without its dimensions of size one, or without those of them that are named.

    >>> flow.squeeze(flow.ones(1, 3)).shape
    weft.Size([3])
    """
    return x.squeeze() if dim is None else x.squeeze(dim)


@squeeze.layout
def _(x, dim):
    chosen = range(len(x)) if dim is None else [dim_of(d, len(x)) for d in ([dim] if isinstance(dim, int) else dim)]
    names = axes(len(x))
    return f"{' '.join(names)} -> {' '.join(a for i, a in enumerate(names) if not (i in chosen and x[i] == 1))}"


@squeeze.grad
def _(dy, x_shape):
    return reshape(dy, tuple(x_shape))


@squeeze.scattered
def _(base, part, dim):
    return reshape(part, tuple(base.shape))


@squeeze.samples
def _(rand):
    yield (rand(4, 1, 6),)
    yield rand(4, 1, 6), 1


# ---- parts -------------------------------------------------------------------------------------------


@op(linear="x", view=True)
def narrow(x: Tensor, dim: int, start: int, length: int, step: int = 1) -> Tensor:
    """The elements start, start + step, ... along a dimension, `length` of them.

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
    d = dim_of(dim, len(x))
    names = axes(len(x))
    whole = start == 0 and length == x[d] and step == 1
    left = [a if i != d or whole else f"{a}!" for i, a in enumerate(names)]
    right = [a if i != d or whole else f"{a}o!" for i, a in enumerate(names)]
    return f"{' '.join(left)} -> {' '.join(right)}"


@narrow.grad
def _(dy, x_shape, dim, start, length, step):
    return narrow_scatter_zeros(dy, tuple(x_shape), dim, start, length, step)


@narrow.scattered
def _(base, part, dim, start, length, step):
    return narrow_scatter(base, part, dim, start, length, step)


@narrow.samples
def _(rand):
    yield rand(4, 6), 1, 1, 3
    yield rand(5, 6), 0, 0, 3, 2
    yield rand(4, 6), 0, 0, 4


@op(linear="x", returns="dx", shape_of="shape")
def narrow_scatter_zeros(x: Tensor, shape: Size, dim: int, start: int, length: int, step: int = 1) -> Tensor:
    """Zeros of `shape` that hold x in the place `narrow` would read."""
    y = x.new_zeros(tuple(shape))
    narrow.kernel(y, dim, start, length, step).copy_(x)
    return y


@narrow_scatter_zeros.layout
def _(x, shape, dim, start, length, step):
    d = dim_of(dim, len(x))
    names = axes(len(x))
    return f"{' '.join(a if i != d else f'{a}!' for i, a in enumerate(names))} -> " + " ".join(
        a if i != d else f"{a}o!" for i, a in enumerate(names)
    )


@narrow_scatter_zeros.grad
def _(ddx, dim, start, length, step):
    return narrow(ddx, dim, start, length, step)


@narrow_scatter_zeros.samples
def _(rand):
    yield rand(4, 3), (4, 6), 1, 1, 3


@op(linear="base+part")
def narrow_scatter(base: Tensor, part: Tensor, dim: int, start: int, length: int, step: int = 1) -> Tensor:
    """base with `part` in the place `narrow` would read.

    >>> flow._C.narrow_scatter(flow.zeros(3), flow.ones(1), 0, 1, 1).tolist()
    [0.0, 1.0, 0.0]
    """
    y = base.clone()
    narrow.kernel(y, dim, start, length, step).copy_(part)
    return y


@narrow_scatter.layout
def _(base, part, dim, start, length, step):
    d = dim_of(dim, len(base))
    names = axes(len(base))
    left = " ".join(a if i != d else f"{a}!" for i, a in enumerate(names))
    return f"{left}, {' '.join(a if i != d else f'{a}p!' for i, a in enumerate(names))} -> {left}"


@narrow_scatter.grad
def _(dy, base_shape, dim, start, length, step, needs):
    zero = narrow_scatter_zeros(narrow(dy, dim, start, length, step), tuple(base_shape), dim, start, length, step)
    return sub(dy, zero) if needs[0] else None, narrow(dy, dim, start, length, step)


@narrow_scatter.samples
def _(rand):
    yield rand(4, 6), rand(4, 2), 1, 3, 2


@op(linear="x", view=True)
def select(x: Tensor, dim: int, index: int) -> Tensor:
    """One slice along a dimension, which goes away.

    >>> flow.select(flow.arange(6).view(2, 3), 0, 1).tolist()
    [3, 4, 5]
    """
    return x.select(dim, index)


@select.layout
def _(x, dim, index):
    d = dim_of(dim, len(x))
    names = axes(len(x))
    left = " ".join(a if i != d else f"{a}!" for i, a in enumerate(names))
    return f"{left} -> {' '.join(a for i, a in enumerate(names) if i != d)}"


@select.grad
def _(dy, x_shape, dim, index):
    shape = tuple(x_shape)
    return narrow_scatter_zeros(unsqueeze(dy, dim), shape, dim, index % shape[dim], 1)


@select.scattered
def _(base, part, dim, index):
    return narrow_scatter(base, unsqueeze(part, dim), dim, index % base.shape[dim], 1)


@select.samples
def _(rand):
    yield rand(4, 6), 0, 2
    yield rand(4, 6), 1, -1


# ---- several tensors ---------------------------------------------------------------------------------


@op()
def cat(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """The tensors one after another along a dimension.

    >>> flow.cat([flow.ones(1, 2), flow.zeros(1, 2)]).tolist()
    [[1.0, 1.0], [0.0, 0.0]]
    """
    return torch.cat(tensors, dim)


@cat.layout
def _(tensors, dim):
    n, d = len(tensors[0]), dim_of(dim, len(tensors[0]))
    term = [f"{a}!" if i == d else a for i, a in enumerate(axes(n))]
    left = ", ".join(" ".join(a if i != d else f"b{k}!" for i, a in enumerate(term)) for k in range(len(tensors)))
    return f"{left} -> {' '.join(term)}"


cat.linear = (("tensors",),)


@cat.out
def _(y, tensors, dim):
    torch.cat(tensors, dim, out=y)


@cat.grad
def _(dy, tensors_shapes, dim):
    d = dim % len(tensors_shapes[0])
    ends = list(itertools.accumulate(s[d] for s in tensors_shapes))
    return ([narrow(dy, d, end - s[d], s[d]) for s, end in zip(tensors_shapes, ends, strict=True)],)


@cat.samples
def _(rand):
    yield [rand(4, 6), rand(4, 2)], 1
    yield [rand(2, 6), rand(3, 6), rand(1, 6)], 0
