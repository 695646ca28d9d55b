"""expand and its inverse, sum_to, by which the gradients of broadcast operands are summed."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from weft.core.errors import ShapeError
from weft.ops.declaration import Size, op
from weft.ops.form import Form, alike


@op(linear="x", shape_of="shape")
def sum_to(x: Tensor, shape: Size) -> Tensor:
    """Sum over the dimensions along which `shape` was broadcast to x's.

    >>> flow._C.sum_to(flow.ones(2, 3), (3,)).tolist()
    [2.0, 2.0, 2.0]
    """
    lead = x.dim() - len(shape)
    if lead > 0 and x.shape[lead:] == tuple(shape):  # a bias, most often
        return torch.sum(x, 0) if lead == 1 else torch.sum(x, tuple(range(lead)))
    return x.sum_to_size(tuple(shape))


sum_to.layout(lambda x, shape: _undo(x, shape))


def _undo(x: tuple[int, ...], shape: Size) -> str:
    names = [f"a{i}" for i in range(len(x))]
    kept = names[len(x) - len(shape) :]
    out = ["1" if n == 1 and m != 1 else a for a, n, m in zip(kept, shape, x[len(x) - len(shape) :], strict=True)]
    return f"{' '.join(names)} -> {' '.join(out)}"


@sum_to.form
def _(x, shape):
    tail = zip(x.shape[len(x.shape) - len(shape) :], shape, strict=False)
    fits = len(shape) <= len(x.shape) and all(n in (m, 1) for m, n in tail)
    return Form(tuple(shape), x.dtype) if fits and alike(x) else None


@sum_to.out
def _(y, x, shape):
    dims, kept = _lost(x, shape)
    if dims:
        torch.sum(x, dims, True, out=y.view(kept))
    else:  # torch's sum over dim=() is over all
        y.copy_(x)


@sum_to.prepared
def _(y, x, shape):
    dims, kept = _lost(x, shape)
    if not dims:
        return None
    if dims == tuple(range(len(dims))) and 0 < len(dims) < x.dim() and _is_plain(x):
        # over few rows, a product with ones takes a third of a sum's time
        rows = x.shape[: len(dims)].numel()
        return torch.mv, (x.view(rows, -1).t(), x.new_ones(rows)), {"out": y.view(-1)}
    return torch.sum, (x, dims, True), {"out": y.view(kept)}


def _is_plain(x: Tensor) -> bool:
    return x.dtype in (torch.float32, torch.float64) and x.is_contiguous() and x.numel() > 0


def _lost(x: Tensor, shape: Size) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The broadcast dimensions, and the shape with each of them kept as one."""
    lead = x.dim() - len(shape)
    kept = (1,) * lead + tuple(shape)
    return tuple(i for i, n in enumerate(kept) if i < lead or (n == 1 and x.shape[i] != 1)), kept


sum_to.grad(lambda dy, x_shape: expand(dy, x_shape))
sum_to.samples(lambda rand: [(rand(4, 6), (6,)), (rand(4, 6), (4, 1)), (rand(3, 4, 6), (4, 1))])


@op(linear="x", shape_of="shape", view=True)
def expand(x: Tensor, shape: Size) -> Tensor:
    """x expanded to a larger shape, as a view; -1 keeps a dimension.

    >>> flow.expand(flow.tensor([[1.], [2.]]), (2, 3)).tolist()
    [[1.0, 1.0, 1.0], [2.0, 2.0, 2.0]]
    """
    try:
        return x.expand(*shape) if shape else x.expand(())
    except RuntimeError:
        _refuse(x, shape)
        raise


def _refuse(x: Tensor, shape: Size) -> None:
    """Raise an error that names the size that doesn't fit."""
    lead = len(shape) - x.dim()
    if lead < 0:
        raise ShapeError(
            f"expand(): the number of sizes provided ({len(shape)}) must be greater or equal to the number of "
            f"dimensions in the tensor ({x.dim()}): {list(x.shape)} to {list(shape)}"
        )
    for d, m in reversed([*enumerate(x.shape, lead)]):
        if m != 1 and shape[d] not in (m, -1):
            raise ShapeError(
                f"expand(): The expanded size of the tensor ({shape[d]}) must match the existing size ({m}) at "
                f"non-singleton dimension {d}: {list(x.shape)} to {list(shape)}. Only sizes of 1 grow; x.repeat() "
                "makes copies"
            )


@expand.layout
def _(x, shape):
    full = _full(x, shape)
    names = [f"a{i}" for i in range(len(full))]
    kept = names[len(full) - len(x) :]
    ins = ["1" if n == 1 and m != 1 else a for a, n, m in zip(kept, x, full[len(full) - len(x) :], strict=True)]
    made_up = [
        a if i >= len(full) - len(x) and ins[i - len(full) + len(x)] == a else f"{a}!" for i, a in enumerate(names)
    ]
    return f"{' '.join(ins)} -> {' '.join(made_up)}"


def _full(x: tuple[int, ...], shape: Size) -> tuple[int, ...]:
    lead = len(shape) - len(x)
    return tuple(x[i - lead] if n == -1 else n for i, n in enumerate(shape))


expand.grad(lambda dy, x_shape: sum_to(dy, tuple(x_shape)))
expand.samples(lambda rand: [(rand(4, 1), (4, 6)), (rand(6), (4, 6))])


def fit(g: Any, shape: Any) -> Any:
    """A gradient summed to the shape of its operand; None for a number."""
    if shape is None:
        return None
    now = g.blob.now
    if (now.shape if now is not None else g.shape) == shape:
        return g
    return sum_to(g, tuple(shape))
