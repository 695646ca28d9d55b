"""Indexing by tensors: gather, scatter, index_put."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from weft.ops.create.constructors import zeros_like
from weft.ops.declaration import OPS, Scalar, Size, op
from weft.ops.pointwise.arithmetic import mul
from weft.ops.shape.broadcast import fit
from weft.ops.shape.views import axes_at, dim_of, reshape, together
from weft.tensor.counters import counters

Shapes = Sequence[tuple[int, ...] | None]


def _terms(x: int, indices: Shapes, mark: str = "") -> tuple[str, list[str], str]:
    """The notation of x, of each index tensor and of the result; `mark` is appended to the index axes."""
    at = [d for d, s in enumerate(indices) if s is not None]
    given = [s for s in indices if s is not None]
    form = together(*given)
    positions = [f"i{k}{mark}" for k in range(len(form))]
    lists = []
    for s in given:
        lead = len(form) - len(s)
        lists.append(" ".join("1" if n == 1 and form[lead + k] != 1 else positions[lead + k] for k, n in enumerate(s)))
    left = [f"g{d}!" if d in at else f"a{d}" for d in range(x)]
    out = [a for d, a in enumerate(left) if d not in at]
    start = at[0] if at and at[-1] - at[0] == len(at) - 1 else 0
    return " ".join(left), lists, " ".join([*out[:start], *positions, *out[start:]])


MASKS = (torch.bool, torch.uint8)  # masks select where they are true


# the first call with meta tensors takes a while
@op(linear="x", memory_order=lambda x, indices: "contiguous" if x.is_contiguous() else "meta")
def index(x: Tensor, indices: Sequence[Tensor | None]) -> Tensor:
    """x[indices]: the elements at these indices; None keeps a dimension.

    >>> flow._C.index(flow.tensor([[1, 2], [3, 4]]), [None, flow.tensor([1])]).tolist()
    [[2], [4]]
    """
    for i in indices:
        if i is not None and not i.dim():  # a 0-d index would be read now, and the result be a view of x
            return torch.ops.aten.index(x, _all_places(x, indices))
    return x[tuple(slice(None) if i is None else i for i in indices)]


@index.layout
def _(x, indices):
    left, lists, out = _terms(len(x), indices)
    return f"{', '.join([left, *lists])} -> {out}"


index.grad(lambda dy, indices, x_shape: (index_put_zeros(dy, indices, tuple(x_shape)), [None] * len(indices)))


@index.samples
def _(rand):
    yield rand(4, 6), [torch.tensor([3, 0, 3])]
    yield rand(4, 6), [None, torch.tensor([[1, 5], [0, 0]])]
    yield rand(3, 4, 5), [torch.tensor([2, 0]), None, torch.tensor([[1], [4]])]


@op(linear="value", shape_of="shape")
def index_put_zeros(value: Tensor, indices: Sequence[Tensor | None], shape: Size, sparse: bool = False) -> Tensor:
    """Zeros of `shape` with the value added at these indices; `sparse` in memory, which local eager tensors may be.

    >>> flow._C.index_put_zeros(flow.ones(3), [flow.tensor([1, 1, 0])], (3,)).tolist()
    [1.0, 2.0, 0.0]
    """
    if sparse:
        counters.sparse = True
        return torch.sparse_coo_tensor(torch.stack(indices), value, shape, check_invariants=True)  # type: ignore
    y = value.new_zeros(tuple(shape))
    return torch.ops.aten.index_put_(y, _all_places(y, indices), value, True)


def _all_places(x: Tensor, indices: Sequence[Tensor | None]) -> list[Tensor | None]:
    covered = sum(i.dim() if i is not None and i.dtype in MASKS else 1 for i in indices)
    return [*indices, *[None] * (x.dim() - covered)]


@index_put_zeros.layout
def _(value, indices, shape, sparse):
    left, lists, out = _terms(len(shape), indices)
    return f"{', '.join([out, *lists])} -> {left}"


index_put_zeros.grad(lambda dy, indices: (index(dy, indices), [None] * len(indices)))


@index_put_zeros.samples
def _(rand):
    yield rand(3, 6), [torch.tensor([3, 0, 3])], (4, 6)
    yield rand(4, 2, 2), [None, torch.tensor([[1, 5], [0, 0]])], (4, 6)


@op(linear="x+value", memory_order="first")
def index_put(x: Tensor, indices: Sequence[Tensor | None], value: Tensor, accumulate: bool = False) -> Tensor:
    """x with the value at these indices, or added there.

    >>> flow._C.index_put(flow.zeros(3), [flow.tensor([1])], flow.tensor(5.)).tolist()
    [0.0, 5.0, 0.0]
    """
    return torch.ops.aten.index_put(x, _all_places(x, indices), value, accumulate)


FEW = 32  # indices, of which Python finds the extremes sooner


def check_places(index: Tensor, dim: int, x: Tensor, negative: bool = False) -> None:
    """Raise for the first index out of range, before a kernel overwrites x."""
    if -x.dim() <= dim < x.dim():  # else the kernel says so itself
        check_range(index, x.shape[dim], negative, dim)


def check_range(index: Tensor, n: int, negative: bool, dim: int = 0) -> None:
    if not index.is_cpu or index.is_complex() or not (count := index.numel()):
        return  # no index, or one that the kernel checks itself
    if count > FEW:
        low, high = (int(v) for v in index.aminmax())
    else:
        few = (index if index.dim() == 1 else index.flatten()).tolist()
        low, high = int(min(few)), int(max(few))
    if low < (-n if negative else 0) or high >= n:
        raise IndexError(f"index {high if high >= n else low} is out of bounds for dimension {dim} with size {n}")


@index_put.layout
def _(x, indices, value, accumulate):
    left, lists, out = _terms(len(x), indices, "!")
    form = together(*(s for s in indices if s is not None))
    names = out.split()
    sizes = [form[int(a[1:-1])] if a[0] == "i" else x[int(a[1:])] for a in names]
    lead = len(names) - len(value)
    part = ["1" if n == 1 and sizes[lead + k] != 1 else names[lead + k] for k, n in enumerate(value)]
    return f"{', '.join([left, *lists, ' '.join(part)])} -> {left}"


@index_put.instead
def _(x, indices, value, accumulate):
    if not any(i is not None and i.dtype.torch in MASKS for i in indices):
        return NotImplemented
    places: list[Any] = []
    for i in indices:
        if i is None or i.dtype.torch not in MASKS:
            places.append(i)
        else:  # where it is true: how often depends on data
            found = OPS["nonzero"](i)
            places += (OPS["select"](found, 1, d) for d in range(len(i.shape)))
    return index_put(x, places, value, accumulate)


@index_put.inplace
def _(x, indices, value, accumulate):
    at = 0
    for i in indices:
        mask = i is not None and i.dtype in MASKS
        if i is not None and not mask:
            check_places(i, at, x, negative=True)
        at += i.dim() if i is not None and mask else 1
    if all(i is not None for i in indices):
        return x.index_put_(tuple(indices), value, accumulate)
    return torch.ops.aten.index_put_(x, _all_places(x, indices), value, accumulate)


@index_put.grad
def _(dy, indices, value_shape, accumulate, needs):
    dx = None
    if needs[0]:
        dx = dy if accumulate else index_put(dy, indices, zeros_like(index(dy, indices)))
    return dx, [None] * len(indices), fit(index(dy, indices), value_shape) if needs[-1] else None


@index_put.samples
def _(rand):
    yield rand(4, 6), [torch.tensor([3, 0])], rand(2, 6)
    yield rand(4, 6), [torch.tensor([3, 3])], rand(6), True
    yield rand(4, 6), [None, torch.tensor([1])], rand(4, 1)


# ---- along one dimension -----------------------------------------------------------------------------


def _along(x: Size, index: Size, dim: int) -> tuple[str, str]:
    """The notation of x and of an index tensor along one dimension; other dimensions may be split if they are equal."""
    d = dim_of(dim, len(x))
    sizes = (*index, *[None] * len(x))  # an empty index may have another number of dimensions
    left = ["g!" if i == d else f"a{i}" if n == sizes[i] else f"b{i}!" for i, n in enumerate(x)]
    right = ["i" if i == d else a if a[0] == "a" else f"c{i}!" for i, a in enumerate(left)]
    return " ".join(left), " ".join(right)


def scattering(x: Size, dim: int, index: Size, src: Any, *_: Any) -> str | None:
    """The notation of an op that writes src, a tensor or a number, to x along one dimension."""
    if not x or (isinstance(src, tuple) and tuple(index) != tuple(src)):
        return None
    left, right = _along(x, index, dim)
    right = right.replace("i", "i!")
    return f"{left}, {right}{f', {right}' if isinstance(src, tuple) else ''} -> {left}"


@op(linear="x")
def gather(x: Tensor, dim: int, index: Tensor) -> Tensor:
    """The elements of x selected along a dimension by an index: y[i][j] = x[index[i][j]][j] for dim 0.

    >>> flow.gather(flow.tensor([[1, 2], [3, 4]]), 1, flow.tensor([[1], [0]])).tolist()
    [[2], [3]]
    """
    return torch.gather(x, dim, index)


@gather.layout
def _(x, dim, index):
    if not x or not index:
        return None
    left, right = _along(x, index, dim)
    return f"{left}, {right} -> {right}"


gather.grad(lambda dy, dim, index, x_shape: (scatter_add_zeros(dy, dim, index, tuple(x_shape)), None))


@gather.samples
def _(rand):
    yield rand(4, 6), 1, torch.tensor([[1, 5, 0]] * 4)
    yield rand(4, 6), 0, torch.tensor([[3, 0, 1]])


@op(linear="src", shape_of="shape")
def scatter_add_zeros(src: Tensor, dim: int, index: Tensor, shape: Size) -> Tensor:
    """Zeros of `shape` with src added along a dimension at the index."""
    return src.new_zeros(tuple(shape)).scatter_add_(dim, index, src)


@scatter_add_zeros.layout
def _(src, dim, index, shape):
    if not shape or not index:
        return None
    left, right = _along(shape, index, dim)
    return f"{right}, {right} -> {left}"


scatter_add_zeros.grad(lambda dy, dim, index: (gather(dy, dim, index), None))
scatter_add_zeros.samples(lambda rand: [(rand(4, 3), 1, torch.tensor([[1, 5, 1]] * 4), (4, 6))])


def scatter_back(dvalues: Any, indices: Any, x_shape: Any, dim: int, keepdim: bool) -> Any:
    """The gradient of elements that were selected along a dimension."""
    d = dim_of(dim, len(x_shape))
    if not keepdim:
        form = (*tuple(x_shape)[:d], 1, *tuple(x_shape)[d + 1 :])
        dvalues, indices = dvalues.reshape(form), indices.reshape(form)
    return scatter_add_zeros(dvalues, d, indices, tuple(x_shape))


@op(linear="x+src")
def scatter_add(x: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    """x with src added along a dimension at the index.

    >>> flow.scatter_add(flow.ones(3), 0, flow.tensor([2, 2]), flow.ones(2)).tolist()
    [1.0, 1.0, 3.0]
    """
    return torch.scatter_add(x, dim, index, src)


scatter_add.layout(scattering)


@scatter_add.inplace
def _(x, dim, index, src):
    check_places(index, dim, x)
    return x.scatter_add_(dim, index, src)


scatter_add.reads(lambda node: node.edges[2] is not None)
scatter_add.grad(lambda dy, dim, index, needs: (dy, None, gather(dy, dim, index) if needs[2] else None))
scatter_add.samples(lambda rand: [(rand(4, 6), 1, torch.tensor([[1, 5, 1]] * 4), rand(4, 3))])


@op()
def scatter(x: Tensor, dim: int, index: Tensor, src: Tensor | Scalar) -> Tensor:
    """x with src written along a dimension at the index.

    >>> flow.scatter(flow.zeros(3), 0, flow.tensor([2]), 7.).tolist()
    [0.0, 0.0, 7.0]
    """
    return torch.scatter(x, dim, index, src)


scatter.layout(scattering)


@scatter.inplace
def _(x, dim, index, src):
    check_places(index, dim, x)
    return x.scatter_(dim, index, src)


@scatter.grad
def _(dy, dim, index, needs):
    return (scatter(dy, dim, index, 0.0) if needs[0] else None, None, gather(dy, dim, index) if needs[2] else None)


@scatter.samples
def _(rand):
    yield rand(4, 6), 1, torch.tensor([[1, 5, 0]] * 4), rand(4, 3)
    yield rand(4, 6), 1, torch.tensor([[1, 5, 0]] * 4), 0.5


@op(linear="x")
def index_select(x: Tensor, dim: int, index: Tensor) -> Tensor:
    """The slices of x along a dimension at these indices.

    >>> flow.index_select(flow.tensor([[1, 2], [3, 4]]), 0, flow.tensor([1, 1])).tolist()
    [[3, 4], [3, 4]]
    """
    return torch.index_select(x, dim, index)


index_select.layout(lambda x, dim, index: axes_at(f"<g!>, {'i' * len(index)} -> <i>", len(x), dim))


@index_select.grad
def _(dy, dim, index, x_shape):
    shape = tuple(x_shape)
    if not shape:  # a scalar
        return dy, None
    places = [None] * (dim % len(shape)) + [reshape(index, (-1,))]
    return index_put_zeros(dy, places, shape), None


index_select.samples(lambda rand: [(rand(4, 6), 1, torch.tensor([5, 0, 0])), (rand(4, 6), 0, torch.tensor([2]))])


@op(linear="x+source")
def index_add(x: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: Scalar = 1) -> Tensor:
    """x with alpha * source added to its slices along a dimension at these indices.

    >>> flow.index_add(flow.zeros(3), 0, flow.tensor([0, 0]), flow.ones(2)).tolist()
    [2.0, 0.0, 0.0]
    """
    return torch.index_add(x, dim, index, source, alpha=alpha)


index_add.layout(lambda x, dim, *_: axes_at("<g!>, i!, <i!> -> <g!>", len(x), dim))


@index_add.inplace
def _(x, dim, index, source, alpha):
    check_places(index, dim, x)
    return x.index_add_(dim, index, source, alpha=alpha)


index_add.reads(lambda node: node.edges[2] is not None)


@index_add.grad
def _(dy, dim, index, alpha, needs):
    return dy, None, mul(index_select(dy, dim, index), alpha) if needs[2] else None


index_add.samples(lambda rand: [(rand(4, 6), 1, torch.tensor([5, 0, 0]), rand(4, 3))])


# ---- where the shape depends on data -----------------------------------------------------------------


@op(dynamic=True, returns="positions*")
def nonzero(x: Tensor) -> Tensor:
    """The indices of the nonzero elements, one per row.

    >>> flow.nonzero(flow.tensor([[0, 3], [1, 0]])).tolist()
    [[0, 1], [1, 0]]
    """
    if x.device.type == "meta":  # the count depends on data
        return torch.empty(0, x.dim(), dtype=torch.int64, device="meta")
    return torch.nonzero(x)


nonzero.samples(lambda rand: [((rand(4, 6) > 0),)])
