"""Cross entropies, of classes and of yes and no."""

from __future__ import annotations

from typing import Any

from weft.api.table import public
from weft.core.dtype import int64
from weft.core.errors import OptionError, ShapeError
from weft.functional.neural.losses import floats, reduced
from weft.functional.tensor.conversion import cast
from weft.ops import ops
from weft.tensor.tensor import Tensor


@public("neural")
def sparse_softmax_cross_entropy(labels: Tensor, logits: Tensor) -> Tensor:
    """The cross entropy of each row with its label.

    >>> flow.nn.functional.sparse_softmax_cross_entropy(flow.tensor([0]), flow.zeros(1, 2)).tolist()
    [0.693...]
    """
    shape = tuple(labels.shape)
    if shape != tuple(logits.shape)[:-1]:
        raise ShapeError(
            f"sparse_softmax_cross_entropy(): a label for each row of the logits, which are {list(logits.shape)}; got "
            f"labels of shape {list(shape)}"
        )
    rows = ops.reshape(ops.log_softmax(logits, -1), (-1, logits.shape[-1]))
    return ops.reshape(ops.neg(ops.pick(rows, ops.reshape(labels, (-1,)))), shape)


@public("neural")
def cross_entropy(
    input: Tensor, target: Tensor, weight: Tensor | None = None, ignore_index: int = -100, reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:  # fmt: skip
    """The cross entropy of scores with labels, or with class probabilities. Dimension 1 holds the classes.

    >>> round(flow.nn.functional.cross_entropy(flow.zeros(1, 2), flow.tensor([[0.5, 0.5]])).item(), 4)
    0.6931
    """
    if not 0 <= label_smoothing <= 1:
        raise OptionError(f"label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing}")
    if not (isinstance(target, Tensor) and target.dtype.is_floating_point):
        labels = _labels(input, target, ignore_index)
        loss = ops.cross_entropy(input, labels, weight, ignore_index, reduction, label_smoothing)
        return loss if reduction != "none" or labels.ndim == target.ndim else ops.unsqueeze(loss, 1)
    if tuple(target.shape) != tuple(input.shape):
        raise ShapeError(
            f"scores of shape {list(input.shape)} take probabilities of the same shape, or labels as integers; got "
            f"{target.dtype.name}{list(target.shape)}"
        )
    if ignore_index >= 0:
        raise OptionError(f"ignore_index is not supported for floating point target; got {ignore_index}")
    if reduction not in ("none", "mean", "sum"):
        raise OptionError(f"{reduction} is not a valid value for reduction; it is 'mean', 'sum' or 'none'")
    d = min(1, input.ndim - 1)
    count = input.shape[d]
    if label_smoothing:
        target = ops.add(ops.mul(target, 1 - label_smoothing), label_smoothing / count)
    terms = ops.mul(ops.log_softmax(input, d), target)
    if weight is not None:
        terms = ops.mul(terms, ops.reshape(weight, (-1, *(1,) * (input.ndim - 1 - d))))
    losses = ops.neg(ops.sum(terms, d))
    if reduction == "none":
        return losses
    total = ops.sum(losses)
    return total if reduction == "sum" else ops.mul(total, count / max(input.numel(), 1))


def _labels(input: Any, target: Any, ignore_index: Any) -> Any:
    """Labels as int64; also with a dimension of 1 in the place of the classes, as in OneFlow."""
    if ignore_index is None or ignore_index is True or ignore_index is False:
        raise OptionError(
            f"ignore_index is a class's number; got {ignore_index}. The deprecated argument there, size_average, "
            'is now reduction="mean" or "sum"'
        )
    if not isinstance(target, Tensor) or target.dtype.differentiable:
        return target
    if isinstance(input, Tensor) and 2 <= target.ndim == input.ndim and target.shape[1] == 1:
        target = ops.squeeze(target, 1)
    return target if target.dtype is int64 else cast(target, int64)


@public("neural")
def nll_loss(
    input: Tensor, target: Tensor, weight: Tensor | None = None, ignore_index: int = -100, reduction: str = "mean"
) -> Tensor:
    """-input at the label, input being log probabilities. Dimension 1 holds the classes.

    >>> flow.nn.functional.nll_loss(flow.tensor([[-1., -2.]]), flow.tensor([1])).item()
    2.0
    """
    return ops.nll_loss(input, _labels(input, target, ignore_index), weight, ignore_index, reduction)


@public("neural")
def binary_cross_entropy(
    input: Tensor, target: Tensor, weight: Tensor | None = None, reduction: str = "mean"
) -> Tensor:
    """The negative log probability of the target, 0 or 1 or between, under probability `input`."""
    _same_shape("binary_cross_entropy", input, target)
    loss = ops.binary_cross_entropy_each(*floats("binary_cross_entropy", input, target))
    return reduced(loss if weight is None else ops.mul(loss, weight), reduction)


@public("neural flow")
def binary_cross_entropy_with_logits(
    input: Tensor, target: Tensor, weight: Tensor | None = None, reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """binary_cross_entropy(sigmoid(input), target), numerically stable."""
    if isinstance(pos_weight, str):  # OneFlow's order
        reduction, pos_weight = pos_weight, reduction  # type: ignore[assignment]
    _same_shape("binary_cross_entropy_with_logits", input, target)
    if pos_weight is None:
        loss = ops.binary_cross_entropy_of_scores(input, target)
    else:
        rest, heavier = ops.mul(ops.sub(1.0, target), input), ops.mul(ops.sub(pos_weight, 1.0), target)
        loss = ops.sub(rest, ops.mul(ops.logsigmoid(input), ops.add(1.0, heavier)))
    return reduced(loss if weight is None else ops.mul(loss, weight), reduction)


def _same_shape(name: str, x: Tensor, target: Tensor) -> None:
    if x.shape != target.shape:
        raise ShapeError(
            f"{name}: Target size ({tuple(target.shape)}) must be the same as input size ({tuple(x.shape)}); "
            "reshape or expand it so that every element has its target"
        )
