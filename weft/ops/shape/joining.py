"""Concatenation: `cat`, `stack`."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import torch
from torch import Tensor

from weft.ops.declaration import op
from weft.ops.form import Form
from weft.ops.shape.slicing import narrow, select
from weft.ops.shape.views import axes, axes_at, dim_of, reshape


@op(linear="tensors", memory_order="channels_last of all")
def cat(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """The tensors concatenated along a dimension.

    >>> flow.cat([flow.ones(1, 2), flow.zeros(1, 2)]).tolist()
    [[1.0, 1.0], [0.0, 0.0]]
    """
    return torch.cat(tensors, dim)  # type: ignore[arg-type]


@cat.layout
def _(tensors, dim):
    parts = ", ".join("_" if s == (0,) else f"<b{k}!>" for k, s in enumerate(tensors))  # empty vectors fit anything
    return axes_at(f"{parts} -> <!>", max(map(len, tensors)), dim)


@cat.form
def _(tensors, dim):
    first, n = tensors[0], len(tensors[0].shape)
    if not -n <= dim < n or any(len(t.shape) != n or t.dtype is not first.dtype for t in tensors):
        return None
    d = dim % n
    around = {(t.shape[:d], t.shape[d + 1 :]) for t in tensors}
    shape = (*first.shape[:d], sum(t.shape[d] for t in tensors), *first.shape[d + 1 :])
    return Form(shape, first.dtype) if len(around) == 1 else None


@cat.out
def _(y, tensors, dim):
    torch.cat(tensors, dim, out=y)


cat.prepared(lambda y, tensors, dim: (torch.cat, (tensors, dim), {"out": y}))


@cat.grad
def _(dy, tensors_shapes, dim):
    ndim = max(map(len, tensors_shapes))
    sizes = [s[dim % ndim] if len(s) == ndim else 0 for s in tensors_shapes]  # empty vectors fit anything
    ends = itertools.accumulate(sizes)
    parts = [narrow(dy, dim % ndim, end - n, n) for n, end in zip(sizes, ends, strict=True)]
    return ([p if len(s) == ndim else reshape(p, s) for s, p in zip(tensors_shapes, parts, strict=True)],)


@op(linear="tensors")
def in_a_row(tensors: Sequence[Tensor]) -> Tensor:
    """All elements of several tensors, concatenated into a vector.

    >>> flow._C.in_a_row([flow.ones(2, 1), flow.zeros(())]).tolist()
    [1.0, 1.0, 0.0]
    """
    return torch.cat([t.reshape(-1) for t in tensors])


@in_a_row.layout
def _(tensors):
    each = (" ".join(f"a{k}x{i}!" for i in range(len(shape))) for k, shape in enumerate(tensors))
    return f"{', '.join(each)} -> row!"


@in_a_row.grad
def _(dy, tensors_shapes):
    sizes = [math.prod(s) for s in tensors_shapes]
    ends = itertools.accumulate(sizes)
    parts = [narrow(dy, 0, end - n, n) for n, end in zip(sizes, ends, strict=True)]
    return ([reshape(p, tuple(s)) for p, s in zip(parts, tensors_shapes, strict=True)],)


in_a_row.samples(lambda rand: [([rand(4, 6), rand(3)],), ([rand(2, 1, 2)],)])


@op(linear="tensors")
def stack(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """The tensors stacked along a new dimension.

    >>> flow.stack([flow.ones(2), flow.zeros(2)]).tolist()
    [[1.0, 1.0], [0.0, 0.0]]
    """
    return torch.stack(tensors, dim)  # type: ignore[arg-type]


@stack.layout
def _(tensors, dim):
    names = axes(len(tensors[0]))
    d = dim_of(dim, len(names) + 1)
    return f"{', '.join([' '.join(names)] * len(tensors))} -> {' '.join([*names[:d], 'new!', *names[d:]])}"


@stack.form
def _(tensors, dim):
    first, n = tensors[0], len(tensors[0].shape) + 1
    if not -n <= dim < n or any(t.shape != first.shape or t.dtype is not first.dtype for t in tensors):
        return None
    return Form((*first.shape[: dim % n], len(tensors), *first.shape[dim % n :]), first.dtype)


@stack.out
def _(y, tensors, dim):
    torch.stack(tensors, dim, out=y)


stack.grad(lambda dy, tensors_shapes, dim: ([select(dy, dim, i) for i in range(len(tensors_shapes))],))
stack.samples(lambda rand: [([rand(4, 6), rand(4, 6)], 1), ([rand(4), rand(4), rand(4)], -1)])

cat.samples(lambda rand: [([rand(4, 6), rand(4, 2)], 1), ([rand(2, 6), rand(3, 6), rand(1, 6)], 0)])
