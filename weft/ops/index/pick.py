"""The element of each row at its label, for losses. Rows may be split along their classes: each rank then has the
elements that it holds, a partial sum.
"""

from __future__ import annotations

import torch
from torch import Tensor

from weft.core.dtype import int64
from weft.core.errors import IndexingError
from weft.core.sbp import broadcast, partial_sum, split
from weft.ops import notation
from weft.ops.declaration import op
from weft.ops.form import Form
from weft.ops.notation import Rule
from weft.ops.shape.views import axes


def wrong_label(target: Tensor, classes: int, ignore: int | None = None) -> IndexingError | None:
    """The error for a label outside of [0, classes), or None."""
    if target.device.type == "meta":
        return None
    if target.dtype is torch.uint8:  # in which other numbers wrap around
        target = target.to(torch.int64)
    bad = (target < 0) | (target >= classes)
    if ignore is not None:
        bad &= target != ignore
    if not bad.any():
        return None
    place = bad.nonzero()[0].tolist()
    label = int(target[tuple(place)])
    hint = "" if ignore is None else f"; {ignore} would be ignored"
    return IndexingError(
        f"Target {label} is out of bounds: label {label}, at position {place}, is out of range: there are "
        f"{classes} classes, 0 to {classes - 1}{hint}"
    )


def class_dim(ndim: int) -> int:
    return 1 if ndim > 1 else 0


def terms(x: tuple[int, ...], mark: str = "") -> tuple[str, str]:
    """The notation of scores and of labels, which lack the class dimension."""
    d = class_dim(len(x))
    names = axes(len(x))
    scores = " ".join(f"{a}{mark}" if i == d else a for i, a in enumerate(names))
    return scores, " ".join(a for i, a in enumerate(names) if i != d)


@op(linear="x")
def pick(x: Tensor, target: Tensor) -> Tensor:
    """x[n, target[n]] for every n: dimension 1 (0 of a vector) holds the classes.

    >>> flow._C.pick(flow.tensor([[1., 2.], [3., 4.]]), flow.tensor([1, 0])).tolist()
    [2.0, 3.0]
    """
    d = class_dim(x.dim())
    try:
        return x.gather(d, target.unsqueeze(d)).squeeze(d)
    except (RuntimeError, IndexError) as error:
        raise wrong_label(target, x.shape[d]) or error from None


@pick.layout
def _(x, target):
    scores, labels = terms(x, "@")
    return f"{scores}, {labels} -> {labels}"


@pick.form
def _(x, target):
    d = class_dim(len(x.shape))
    fits = x.shape and (*x.shape[:d], *x.shape[d + 1 :]) == target.shape and target.dtype is int64
    return Form(target.shape, x.dtype) if fits else None


@pick.ranked
def _(where, x, target):
    d = class_dim(x.dim())
    start, stop = where.inputs[0][d]
    wrong = wrong_label(target, where.input_shapes[0][d])
    if wrong is not None:
        raise wrong
    if start == stop:
        return x.new_zeros(target.shape)
    elsewhere = (target < start) | (target >= stop)
    place = (target - start).masked_fill_(elsewhere, 0)
    return x.gather(d, place.unsqueeze(d)).squeeze(d).masked_fill_(elsewhere, 0)


pick.grad(lambda dy, target, x_shape: (unpick(dy, target, x_shape[class_dim(len(x_shape))]), None))


@pick.samples
def _(rand):
    yield rand(4, 5), torch.tensor([0, 4, 2, 2])
    yield rand(3, 5, 2), torch.tensor([[0, 4], [2, 2], [1, 3]])
    yield rand(5), torch.tensor(3)


@op(returns="dx")
def unpick(dy: Tensor, target: Tensor, classes: int) -> Tensor:
    """The gradient of `pick`: zeros with dy at the labels."""
    d = class_dim(target.dim() + 1)
    shape = (*target.shape[:d], classes, *target.shape[d:])
    return dy.new_zeros(shape).scatter_(d, target.unsqueeze(d), dy.unsqueeze(d))


@unpick.layout
def _(dy, target, classes):
    d = class_dim(len(target) + 1)
    shape = (*target[:d], classes, *target[d:])
    scores, labels = terms(shape, "!")
    return (
        *notation.rules(f"{labels}, {labels} -> {scores}", (dy, target), (shape,)),
        Rule((broadcast, broadcast), (split(d),), ranked=True),
        Rule((partial_sum, broadcast), (partial_sum,)),
    )


@unpick.form
def _(dy, target, classes):
    d = class_dim(len(target.shape) + 1)
    fits = dy.shape == target.shape and target.dtype is int64 and classes >= 0
    return Form((*target.shape[:d], classes, *target.shape[d:]), dy.dtype) if fits else None


@unpick.ranked
def _(where, dy, target, classes):
    d = class_dim(target.dim() + 1)
    start, stop = where.outputs[0][d]
    dx = dy.new_zeros((*target.shape[:d], stop - start, *target.shape[d:]))
    if start == stop:
        return dx
    elsewhere = (target < start) | (target >= stop)
    place = (target - start).masked_fill_(elsewhere, 0)
    return dx.scatter_(d, place.unsqueeze(d), dy.masked_fill(elsewhere, 0).unsqueeze(d))


unpick.grad(lambda ddx, target: (pick(ddx, target), None))


@unpick.samples
def _(rand):
    yield rand(4), torch.tensor([0, 4, 2, 2]), 5
    yield rand(3, 2), torch.tensor([[0, 4], [2, 2], [1, 3]]), 5
