"""Shape ops, most of them views, which share memory with their operand."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Sequence

import torch
from torch import Tensor

from weft.core.errors import IndexingError, ShapeError
from weft.core.sbp import split
from weft.ops.declaration import Size, op
from weft.ops.notation import Rule


def dim_of(dim: int, ndim: int) -> int:
    """A nonnegative dimension, or an error with the valid range."""
    if not -max(ndim, 1) <= dim < max(ndim, 1):
        raise IndexingError(
            f"Dimension out of range (expected to be in range of [{-max(ndim, 1)}, {max(ndim, 1) - 1}], but got {dim})"
        )
    return dim % max(ndim, 1)


def together(*shapes: Sequence[int]) -> tuple[int, ...]:
    """The shape that these shapes broadcast to. (torch's function loads sympy at its first call.)"""
    ndim = max(map(len, shapes), default=0)
    full = [1] * ndim
    for shape in shapes:
        for i, n in enumerate(shape, ndim - len(shape)):
            if n != 1 and full[i] not in (1, n):
                shown = ", ".join(map(str, map(list, shapes)))
                raise ShapeError(
                    f"The size of tensor a ({full[i]}) must match the size of tensor b ({n}) at non-singleton "
                    f"dimension {i}: shapes {shown} don't broadcast"
                )
            full[i] = n if full[i] == 1 else full[i]
    return tuple(full)


def axes(ndim: int, prefix: str = "a") -> list[str]:
    return [f"{prefix}{i}" for i in range(ndim)]


def axes_at(text: str, ndim: int, dims: int | Collection[int]) -> str:
    """The notation of an op along dimensions. `<name>` stands for every axis, with those at `dims` under that name:
    "<x!>, i! -> <i>". `<!>` marks them, and `<>` leaves them out."""
    chosen = {dim_of(d, ndim) for d in ([dims] if isinstance(dims, int) else dims)}

    def term(found: re.Match[str]) -> str:
        name = found[1]
        given = (a if i not in chosen else a + name if name in ("!", "@") else name for i, a in enumerate(axes(ndim)))
        return " ".join(filter(None, given))

    return re.sub("<([^<>]*)>", term, text)


# ---- reshape -----------------------------------------------------------------------------------------


@op(linear="x", shape_of="shape", view=True)
def view(x: Tensor, shape: Size) -> Tensor:
    """x with another shape, sharing memory; -1 is inferred.

    >>> flow.arange(6).view(2, 3).tolist()
    [[0, 1, 2], [3, 4, 5]]
    """
    return x.view(*shape) if shape else x.view(())


@op(linear="x", shape_of="shape", view=True)
def reshape(x: Tensor, shape: Size) -> Tensor:
    """x with another shape, sharing memory if strides allow; -1 is inferred.

    >>> flow.reshape(flow.arange(6), (3, -1)).tolist()
    [[0, 1], [2, 3], [4, 5]]
    """
    return torch.reshape(x, shape)


def resolve(x: Size, shape: Size) -> tuple[int, ...]:
    """The shape with -1 inferred."""
    if -1 not in shape:
        return tuple(shape)
    total, known = math.prod(x), math.prod(n for n in shape if n != -1)
    if known == 0 or total % known:
        raise ShapeError(f"shape {list(shape)} is invalid for a tensor of shape {list(x)}, {total} elements")
    return tuple(total // known if n == -1 else n for n in shape)


def _reshape_rules(x: tuple[int, ...], shape: Size) -> list[Rule]:
    """The leading dimension of a group of merged or divided dimensions may be split, if it divides evenly there."""
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


view.layout(_reshape_rules)
reshape.layout(_reshape_rules)
view.samples(lambda rand: [(rand(4, 6), (24,)), (rand(4, 6), (2, 2, 6))])


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
    """x with two dimensions swapped.

    >>> flow.transpose(flow.ones(2, 3), 0, 1).shape
    torch.Size([3, 2])
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


transpose.grad(lambda dy, dim0, dim1: transpose(dy, dim0, dim1))
transpose.scattered(lambda base, part, dim0, dim1: transpose(part, dim0, dim1))
transpose.samples(lambda rand: [(rand(4, 6), 0, 1), (rand(2, 4, 6), -1, 0)])


@op(linear="x", view=True)
def permute(x: Tensor, dims: Size) -> Tensor:
    """x with its dimensions permuted.

    >>> flow.permute(flow.ones(2, 3, 4), (2, 0, 1)).shape
    torch.Size([4, 2, 3])
    """
    return torch.permute(x, dims)


@permute.layout
def _(x, dims):
    names = axes(len(x))
    return f"{' '.join(names)} -> {' '.join(names[d] for d in dims)}"


permute.grad(lambda dy, dims: permute(dy, _inverse(dims)))
permute.scattered(lambda base, part, dims: permute(part, _inverse(dims)))


def _inverse(dims: Size) -> tuple[int, ...]:
    n = len(dims)
    places = [d % n for d in dims]
    return tuple(places.index(i) for i in range(n))


permute.samples(lambda rand: [(rand(2, 4, 6), (2, 0, 1))])


@op(linear="x", view=True)
def unsqueeze(x: Tensor, dim: int) -> Tensor:
    """x with a new dimension of size one.

    >>> flow.unsqueeze(flow.ones(3), 0).shape
    torch.Size([1, 3])
    """
    return x.unsqueeze(dim)


@unsqueeze.layout
def _(x, dim):
    names = axes(len(x))
    out = list(names)
    out.insert(dim_of(dim, len(x) + 1), "1")
    return f"{' '.join(names)} -> {' '.join(out)}"


unsqueeze.samples(lambda rand: [(rand(4, 6), 0), (rand(4, 6), -1)])


@op(linear="x", view=True)
def squeeze(x: Tensor, dim: int | Size | None = None) -> Tensor:
    """x without its dimensions of size one, or without the given ones of them.

    >>> flow.squeeze(flow.ones(1, 3)).shape
    torch.Size([3])
    """
    return x.squeeze() if dim is None else x.squeeze(dim)


@squeeze.layout
def _(x, dim):
    gone = _squeezed(x, dim)
    names = [f"{a}@" for a in axes(len(x))]
    return f"{' '.join(names)} -> {' '.join(a for i, a in enumerate(names) if i not in gone)}"


@squeeze.ranked
def _(where, x, dim):
    return x.squeeze(_squeezed(where.input_shapes[0], dim))  # a shard may have size one where the whole has more


def _squeezed(x: tuple[int, ...], dim: int | Size | None) -> tuple[int, ...]:
    chosen = range(len(x)) if dim is None else [dim_of(d, len(x)) for d in ([dim] if isinstance(dim, int) else dim)]
    return tuple(d for d in chosen if x and x[d] == 1)  # a number may name a dimension that it lacks


squeeze.samples(lambda rand: [(rand(4, 1, 6),), (rand(4, 1, 2), 1), (rand(4, 1, 3), (1, 2))])

for _op in (view, reshape, unsqueeze, squeeze):
    _op.grad(lambda dy, x_shape: reshape(dy, tuple(x_shape)))
    _op.scattered(lambda base, part, *_: reshape(part, tuple(base.shape)))
