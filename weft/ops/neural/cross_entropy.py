"""Losses against class labels. Local tensors use one kernel; a mean over a split batch, and scores split along their
classes, are compositions whose partial sums and maxima boxing reduces.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from weft.core.dispatch import here
from weft.core.dtype import int64
from weft.core.errors import OptionError, ShapeError
from weft.ops.create.constructors import ones_like
from weft.ops.declaration import op
from weft.ops.form import Form, alike
from weft.ops.index.pick import class_dim, pick, terms, unpick, wrong_label
from weft.ops.kernels import aten
from weft.ops.neural.embedding import embedding
from weft.ops.neural.softmax import log_softmax
from weft.ops.pointwise.arithmetic import add, div, mul, neg, sub
from weft.ops.pointwise.copies import cast, where
from weft.ops.pointwise.elementary import exp, log
from weft.ops.pointwise.logic import ne
from weft.ops.reduce.extremes import amax
from weft.ops.reduce.sums import mean, sum
from weft.ops.shape.views import reshape, squeeze, unsqueeze

REDUCTIONS = ("none", "mean", "sum")


def _check(x: Tensor, target: Tensor, reduction: str) -> int:
    if reduction not in REDUCTIONS:
        raise OptionError(f"{reduction} is not a valid value for reduction; it is 'mean', 'sum' or 'none'")
    d = class_dim(x.dim())
    expected = (*x.shape[:d], *x.shape[d + 1 :])
    if x.dim() == 0 or tuple(target.shape) != expected:
        raise ShapeError(
            f"Expected input batch_size ({x.shape[0] if x.dim() > 1 else 1}) to match target batch_size "
            f"({target.shape[0] if target.dim() else 1}), and the other sizes: scores of shape {list(x.shape)} "
            f"(dimension {d} holds the classes) take labels of shape {list(expected)}; "
            f"got {list(target.shape)}"
        )
    return d


def _rows(logp: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """Log probabilities and labels as torch's kernels take them: rows, or images."""
    if logp.dim() <= 2:
        return logp, target
    n, c, *more = logp.shape
    return logp.reshape(n, c, 1, math.prod(more)), target.reshape(n, 1, math.prod(more))


def _back(dy: Tensor, logp: Tensor, target: Tensor, weight: Any, count: Tensor, ignore: int, reduction: str) -> Tensor:
    """The gradient of log probabilities."""
    at = REDUCTIONS.index(reduction)
    if logp.dim() <= 2:
        return aten.nll_loss_backward(dy, logp, target, weight, at, ignore, count)
    rows, labels = _rows(logp, target)
    dy = dy.reshape(labels.shape) if reduction == "none" else dy
    return aten.nll_loss2d_backward(dy, rows, labels, weight, at, ignore, count).view(logp.shape)


def _scored(
    logp: Tensor, target: Tensor, weight: Tensor | None, ignore: int, reduction: str, smoothing: float
) -> tuple[Tensor, Tensor]:
    """The loss, and the divisor of a mean, from log probabilities."""
    d = class_dim(logp.dim())
    if not smoothing:
        rows, labels = _rows(logp, target)
        forward = aten.nll_loss2d_forward if rows.dim() == 4 else aten.nll_loss_forward
        try:
            loss, count = forward(rows, labels, weight, REDUCTIONS.index(reduction), ignore)
        except (IndexError, RuntimeError) as error:
            raise wrong_label(target, logp.shape[d], ignore) or error from None
        return (loss.view(target.shape) if reduction == "none" else loss), count
    wrong = wrong_label(target, logp.shape[d], ignore)
    if wrong is not None:
        raise wrong
    keep = target != ignore
    label = torch.where(keep, target, 0)
    loss = -logp.gather(d, label.unsqueeze(d)).squeeze(d)
    share = keep.to(logp.dtype)
    if weight is not None:
        share = share * weight[label]
        loss = loss * weight[label]
    if smoothing:
        every = logp if weight is None else logp * _column(weight, logp.dim())
        loss = loss * (1 - smoothing) - every.sum(d) * (smoothing / logp.shape[d])
    loss = torch.where(keep, loss, 0.0)
    count = share.sum()
    if reduction == "none":
        return loss, torch.zeros_like(count)
    return (loss.sum() / count if reduction == "mean" else loss.sum()), count


def _column(weight: Any, ndim: int) -> Any:
    return weight.reshape((-1, *(1,) * (ndim - 2))) if ndim > 2 else weight


@op(returns="y | logp count", promotes=True)
def cross_entropy(
    x: Tensor, target: Tensor, weight: Tensor | None = None, ignore_index: int = -100, reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:  # fmt: skip
    """The cross entropy of scores and labels: -log(softmax(x)) at the label. Dimension 1 holds the classes.

    >>> round(flow._C.cross_entropy(flow.zeros(1, 2), flow.tensor([1])).item(), 4)
    0.6931
    """
    d = _check(x, target, reduction)
    logp = torch.log_softmax(x, d)
    y, count = _scored(logp, target, weight, ignore_index, reduction, label_smoothing)
    return y, logp, count  # type: ignore[return-value]


def _forms(x: Form, target: Form, weight: Form | None, reduction: str) -> tuple[Form, Form] | None:
    """The forms of the loss and of the divisor of a mean."""
    if reduction not in REDUCTIONS or not alike(x, weight) or target.dtype is not int64 or not x.shape:
        return None
    d = class_dim(len(x.shape))
    if (*x.shape[:d], *x.shape[d + 1 :]) != target.shape or (weight is not None and weight.shape != x.shape[d : d + 1]):
        return None
    return Form(target.shape if reduction == "none" else (), x.dtype), Form((), x.dtype)


@cross_entropy.form
def _(x, target, weight, ignore_index, reduction, label_smoothing):
    forms = _forms(x, target, weight, reduction)
    return (forms[0], x, forms[1]) if forms else None


@cross_entropy.out
def _(outs, x, target, weight, ignore_index, reduction, label_smoothing):
    d = _check(x, target, reduction)
    torch.log_softmax(x, d, out=outs[1])
    for out, made in zip(
        outs[::2], _scored(outs[1], target, weight, ignore_index, reduction, label_smoothing), strict=True
    ):
        out.copy_(made)


@cross_entropy.prepared
def _(y, logp, count, x, target, weight, ignore_index, reduction, label_smoothing):
    if x.dim() != 2 or label_smoothing:
        return None
    labelled = (logp, target, weight, REDUCTIONS.index(reduction), ignore_index)
    return [
        (torch.log_softmax, (x, 1), {"out": logp}),
        (aten.nll_loss_forward.output, labelled, {"output": y, "total_weight": count}),
    ]


def _layout(x: tuple[int, ...], reduction: str, hidden: bool, weighted: bool) -> str | None:
    if reduction == "mean":
        return None  # a mean over a split batch is a composition
    scores, labels = terms(x, "!")
    ins = f"{scores}, {labels}" + (", w!" if weighted else "")
    y = labels if reduction == "none" else ""
    return f"{ins} -> {y}, {scores}, " if hidden else f"{ins} -> {y}, "


@cross_entropy.layout
def _(x, target, weight, ignore_index, reduction, label_smoothing):
    return _layout(x, reduction, True, weight is not None)


@cross_entropy.instead
def _(x: Any, target: Any, weight: Any, ignore_index: int, reduction: str, label_smoothing: float) -> Any:
    d = class_dim(len(x.shape))
    if all(s.is_broadcast for t in (x, target) for s in t.sbp):
        return NotImplemented
    classes_split = any(s.dim == d for s in x.sbp)
    if classes_split and weight is None:
        losses = _split_over_classes(x, target, d, ignore_index, label_smoothing)
        if reduction == "none":
            return losses
        total = sum(losses)
        return total if reduction == "sum" else div(total, _count(target, weight, ignore_index, losses.dtype))
    if reduction != "mean":
        return NotImplemented
    total = cross_entropy(x, target, weight, ignore_index, "sum", label_smoothing)
    return div(total, _count(target, weight, ignore_index, total.dtype))


def _count(target: Any, weight: Any, ignore: int, dtype: Any) -> Any:
    keep = ne(target, ignore)
    return sum(cast(keep, dtype) if weight is None else mul(_weights(weight.detach(), target, keep), cast(keep, dtype)))


def _weights(weight: Any, target: Any, keep: Any) -> Any:
    """The weight of each label's class; class 0's for ignored labels."""
    return squeeze(embedding(reshape(weight, (-1, 1)), where(keep, target, 0)), -1)


def _split_over_classes(x: Any, target: Any, d: int, ignore: int, smoothing: float) -> Any:
    """The losses of scores that are split along their classes: only a maximum, a sum and a pick per row are
    communicated."""
    z = sub(x, amax(x.detach(), d, True))
    total = log(sum(exp(z), d))
    keep = ne(target, ignore)
    losses = sub(total, pick(z, where(keep, target, 0)))
    if smoothing:
        losses = add(mul(losses, 1 - smoothing), mul(sub(total, mean(z, d)), smoothing))
    return where(keep, losses, 0.0)


@cross_entropy.grad
def _(dy, x, target, weight, logp, count, ignore_index, reduction, label_smoothing):
    if here.grad:  # for second derivatives, x must be reachable
        logp = log_softmax(x, class_dim(len(x.shape)))
    attributes = ignore_index, reduction, label_smoothing
    return cross_entropy_grad(dy, logp, target, weight, count, *attributes), None, None


@cross_entropy.samples
def _(rand):
    target = torch.tensor([0, 4, 2, -100])
    yield rand(4, 5), target
    yield rand(4, 5), target, None, -100, "sum"
    yield rand(4, 5), torch.tensor([0, 4, 2, 3]), rand(5).abs(), 4, "none"
    yield rand(4, 5), torch.tensor([0, 4, 2, 1]), rand(5).abs(), 4, "mean", 0.2
    yield rand(2, 5, 3), torch.tensor([[0, 4, 2], [1, 1, -1]]), None, -1, "sum", 0.1
    yield rand(2, 5, 3), torch.tensor([[0, 4, 2], [1, 1, -1]]), None, -1
    yield rand(5), torch.tensor(3)


@op(returns="dx", promotes=True)
def cross_entropy_grad(
    dy: Tensor, logp: Tensor, target: Tensor, weight: Tensor | None, count: Tensor, ignore_index: int, reduction: str,
    label_smoothing: float,
) -> Tensor:  # fmt: skip
    """The gradient of cross_entropy: (softmax - labels) times each row's weight."""
    d = class_dim(logp.dim())
    if not label_smoothing:
        dlogp = _back(dy, logp, target, weight, count, ignore_index, reduction)
        return aten._log_softmax_backward_data(dlogp, logp, d, logp.dtype)
    keep = target != ignore_index
    label = torch.where(keep, target, 0)
    row = torch.where(keep, dy / count if reduction == "mean" else dy, 0.0)
    at_label = row * (1 - label_smoothing) * (1.0 if weight is None else weight[label])
    even = row * (label_smoothing / logp.shape[d])
    factor = at_label + even * (logp.shape[d] if weight is None else weight.sum())
    dx = logp.exp() * factor.unsqueeze(d)
    if label_smoothing:
        dx = dx - even.unsqueeze(d) * (1.0 if weight is None else _column(weight, logp.dim()))
    return dx.scatter_add(d, label.unsqueeze(d), -at_label.unsqueeze(d))


cross_entropy_grad.form(lambda dy, logp, target, weight, *_: logp if _forms(logp, target, weight, "sum") else None)


@cross_entropy_grad.out
def _(dx, *args):
    dx.copy_(cross_entropy_grad.kernel(*args))


@cross_entropy_grad.prepared
def _(dx, dy, logp, target, weight, count, ignore_index, reduction, label_smoothing):
    if logp.dim() != 2 or label_smoothing or dx.device.type != "cpu":
        return None
    labelled = (dy, logp, target, weight, REDUCTIONS.index(reduction), ignore_index, count)
    return [
        (aten.nll_loss_backward.grad_input, labelled, {"grad_input": dx}),
        (aten._log_softmax_backward_data, (dx, logp, 1, logp.dtype), {"out": dx}),  # row by row, so in place
    ]


@cross_entropy_grad.layout
def _(dy, logp, target, weight, count, ignore_index, reduction, label_smoothing):
    scores, labels = terms(logp, "!")
    rows = labels if reduction == "none" else ""
    # the count is broadcast: for a mean it was reduced before
    return f"{rows}, {scores}, {labels}{', w!' if weight is not None else ''},  -> {scores}"


@cross_entropy_grad.grad
def _(ddx, dy, logp, target, weight, count, ignore_index, reduction, label_smoothing, needs):
    d = class_dim(len(logp.shape))
    attributes = ignore_index, reduction, label_smoothing
    d_dy = d_logp = None
    if needs[0]:
        unit = cross_entropy_grad(ones_like(dy), logp, target, weight, count, *attributes)
        d_dy = sum(mul(ddx, unit), d if reduction == "none" else None)
    if needs[1]:
        keep = ne(target, ignore_index)
        row = div(dy, count) if reduction == "mean" else dy
        if weight is not None:
            at_label = mul(_weights(weight, target, keep), 1 - label_smoothing)
            row = mul(row, add(at_label, mul(sum(weight), label_smoothing / logp.shape[d])))
        row = mul(row, cast(keep, row.dtype))
        d_logp = mul(mul(ddx, exp(logp)), unsqueeze(row, d))
    return d_dy, d_logp, None, None, None


@cross_entropy_grad.samples
def _(rand):
    target = torch.tensor([0, 4, 2, -100])
    logp = torch.log_softmax(rand(4, 5), 1)
    yield rand(), logp, target, None, torch.tensor(3.0, dtype=torch.float64), -100, "mean", 0.0
    yield rand(4), logp, target, rand(5).abs(), torch.tensor(0.0, dtype=torch.float64), -100, "none", 0.1


# ---- negative log likelihood -------------------------------------------------------------------------


@op(returns="y | count", steady="x")
def nll_loss(
    x: Tensor, target: Tensor, weight: Tensor | None = None, ignore_index: int = -100, reduction: str = "mean"
) -> Tensor:
    """-x at the label, x being log probabilities. Dimension 1 holds the classes.

    >>> flow._C.nll_loss(flow.tensor([[-1., -2.]]), flow.tensor([1])).item()
    2.0
    """
    _check(x, target, reduction)
    return _scored(x, target, weight, ignore_index, reduction, 0.0)  # type: ignore[return-value]


nll_loss.layout(lambda x, target, weight, ignore_index, reduction: _layout(x, reduction, False, weight is not None))
nll_loss.form(lambda x, target, weight, ignore_index, reduction: _forms(x, target, weight, reduction))


@nll_loss.instead
def _(x: Any, target: Any, weight: Any, ignore_index: int, reduction: str) -> Any:
    if reduction != "mean" or all(s.is_broadcast for t in (x, target) for s in t.sbp):
        return NotImplemented
    total = nll_loss(x, target, weight, ignore_index, "sum")
    return div(total, _count(target, weight, ignore_index, total.dtype))


@nll_loss.grad
def _(dy, x_shape, target, weight, count, ignore_index, reduction):
    d = class_dim(len(x_shape))
    if not here.grad:
        return nll_loss_grad(dy, target, weight, count, x_shape[d], ignore_index, reduction), None, None
    keep = ne(target, ignore_index)
    row = neg(div(dy, count) if reduction == "mean" else dy)
    row = where(keep, row if weight is None else mul(row, _weights(weight, target, keep)), 0.0)
    return unpick(row, where(keep, target, 0), x_shape[d]), None, None


@nll_loss.samples
def _(rand):
    target = torch.tensor([0, 4, 2, -100])
    yield rand(4, 5), target
    yield rand(4, 5), target, rand(5).abs(), -100, "none"
    yield rand(2, 5, 3), torch.tensor([[0, 4, 2], [1, 1, -1]]), None, -1, "sum"


@op(returns="dx", promotes=True)
def nll_loss_grad(
    dy: Tensor, target: Tensor, weight: Tensor | None, count: Tensor, classes: int, ignore_index: int, reduction: str
) -> Tensor:
    """The gradient of nll_loss."""
    if target.device.type == "cpu" and (error := wrong_label(target, classes, ignore_index)):
        raise error  # which torch's kernel would take for an address
    x = dy.new_empty(()).expand(_scores(target, classes))  # only its shape counts
    return _back(dy, x, target, weight, count, ignore_index, reduction)


def _scores(target: Any, classes: int) -> tuple[int, ...]:
    d = class_dim(len(target.shape) + 1)
    return *target.shape[:d], classes, *target.shape[d:]


nll_loss_grad.form(lambda dy, target, weight, count, classes, *_: Form(_scores(target, classes), dy.dtype))


@nll_loss_grad.layout
def _(dy, target, weight, count, classes, ignore_index, reduction):
    scores, labels = terms((0,) * (len(target) + 1), "!")
    rows = labels if reduction == "none" else ""
    return f"{rows}, {labels}{', w!' if weight is not None else ''},  -> {scores}"


@nll_loss_grad.samples
def _(rand):
    target = torch.tensor([0, 4, 2, -100])
    yield rand(), target, None, torch.tensor(3.0, dtype=torch.float64), 5, -100, "mean"
    yield rand(4), target, rand(5).abs(), torch.tensor(0.0, dtype=torch.float64), 5, -100, "none"
