"""Losses that compare scores or distances with a margin."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from weft.api.fast_path import in_one
from weft.api.table import public
from weft.core import dtype as dtypes
from weft.core.errors import DtypeError, OptionError, ShapeError
from weft.functional.neural.losses import reduced
from weft.functional.neural.similarity import pairwise_distance
from weft.ops import ops
from weft.tensor.tensor import Tensor

REDUCTION = '("none", "mean", "sum").index(reduction)'  # as kernels number it


def _hinge(x: Any) -> Any:
    """max(x, 0), with a derivative of 1 at 0: what is equal to begin with is moved apart."""
    return ops.clamp(x, 0.0)


@public("neural flow")
def cosine_embedding_loss(
    input1: Any, input2: Any, target: Any, margin: float = 0.0, reduction: str = "mean"
) -> Tensor:
    """1 - cosine where the target is 1, the cosine above the margin where it is -1."""
    first, second = (ops.add(ops.sum(ops.mul(x, x), -1), 1e-12) for x in (input1, input2))
    cosine: Any = ops.div(ops.sum(ops.mul(input1, input2), -1), ops.sqrt(ops.mul(first, second)))
    apart = ops.where(target == -1, _hinge(cosine - margin), 0.0)  # other targets have no loss
    return reduced(ops.where(target == 1, 1 - cosine, apart), reduction)


@public("neural flow")
def hinge_embedding_loss(input: Any, target: Any, margin: float = 1.0, reduction: str = "mean") -> Tensor:
    """The input, a distance, where the target is 1; how far it is below the margin, where it is -1."""
    loss = ops.where(target == -1, 0.0, input) + ops.where(target == 1, 0.0, _hinge(margin - input))
    return reduced(loss, reduction)


@public("neural")
def soft_margin_loss(input: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """log(1 + exp(-target * input)), for targets 1 and -1."""
    return reduced(ops.softplus(ops.neg(ops.mul(target, input))), reduction)


@public("neural flow")
def margin_ranking_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: str = "mean"
) -> Tensor:
    """max(0, -target * (input1 - input2) + margin)."""
    if not input1.ndim == input2.ndim == target.ndim:
        raise ShapeError(
            "margin_ranking_loss : All input tensors should have same dimension but got sizes: "
            f"input1: {list(input1.shape)}, input2: {list(input2.shape)}, target: {list(target.shape)}"
        )
    gap = ops.add(ops.mul(ops.neg(target), ops.sub(input1, input2)), float(margin))
    return reduced(_hinge(gap), reduction)


@public("neural")
@in_one(
    torch._C._nn.multi_margin_loss,  # type: ignore[attr-defined]
    f"d_input, d_target, p, margin, d_weight, {REDUCTION}", derived=True,
)  # fmt: skip
def multi_margin_loss(
    input: Any, target: Any, p: int = 1, margin: float = 1.0, weight: Any = None, reduction: str = "mean"
) -> Any:
    """How much other classes' scores exceed the target's minus the margin."""
    alone = input.ndim < 2
    x, labels = (ops.reshape(input, (1, -1)), ops.reshape(target, (1,))) if alone else (input, target)
    index = ops.unsqueeze(labels, 1)
    right = ops.gather(x, 1, index)
    lacks = ops.relu(margin - right + x)
    lacks = lacks if p == 1 else ops.pow(lacks, float(p))
    if weight is not None:
        lacks = lacks * ops.unsqueeze(ops.index_select(weight, 0, labels), 1)
    others = ops.scatter(ops.ones_like(x.detach()), 1, index, 0.0)
    loss = ops.mean(lacks * others, 1)
    return reduced(ops.squeeze(loss, 0) if alone else loss, reduction)


@public("neural")
@in_one(torch._C._nn.multilabel_margin_loss, f"d_input, d_target, {REDUCTION}", derived=True)  # type: ignore
def multilabel_margin_loss(input: Any, target: Any, reduction: str = "mean") -> Any:
    """How much other classes' scores exceed each target's minus 1; a row's targets end with -1."""
    alone = input.ndim < 2
    x, labels = (ops.reshape(input, (1, -1)), ops.reshape(target, (1, -1))) if alone else (input, target)
    if x.shape != labels.shape:
        raise ShapeError(
            f"multilabel_margin_loss: a target has the input's shape, {list(input.shape)}; got {list(target.shape)}"
        )
    if labels.dtype.differentiable:
        raise DtypeError(f"multilabel_margin_loss: expected scalar type Long for targets; got {labels.dtype}")
    given = ops.cumsum(ops.cast(labels < 0, dtypes.int64), 1) == 0
    index = ops.cast(ops.where(given, labels, 0), dtypes.int64)
    counts = ops.cast(given, x.dtype)
    hits = ops.scatter_add(ops.zeros_like(x.detach()), 1, index, counts)
    is_target = ops.cast(hits > 0, x.dtype)
    scores = ops.gather(x, 1, index)
    lacks = ops.relu(1 - (ops.unsqueeze(scores, 2) - ops.unsqueeze(x, 1)))
    lacks = lacks * ops.unsqueeze(counts, 2) * ops.unsqueeze(1 - is_target, 1)
    loss = ops.sum(lacks, (1, 2)) / x.shape[1]
    return reduced(ops.squeeze(loss, 0) if alone else loss, reduction)


@public("neural")
def multilabel_soft_margin_loss(input: Any, target: Any, weight: Any = None, reduction: str = "mean") -> Any:
    """Binary cross entropy of each class, averaged over classes."""
    loss = -(target * ops.logsigmoid(input) + (1 - target) * ops.logsigmoid(-input))
    loss = loss if weight is None else loss * weight
    return reduced(ops.mean(loss, -1), reduction)


@public("neural flow")
def triplet_margin_loss(
    anchor: Tensor, positive: Tensor, negative: Tensor, margin: float = 1.0, p: float = 2.0, eps: float = 1e-6,
    swap: bool = False, reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """How much the distance to the positive, plus the margin, exceeds that to the negative."""

    def distance(a: Tensor, b: Tensor) -> Tensor:
        return pairwise_distance(a, b, p, eps)

    return _triplet("triplet_margin_loss", anchor, positive, negative, distance, margin, swap, reduction)


@public("neural")
def triplet_margin_with_distance_loss(
    anchor: Any, positive: Any, negative: Any, *, distance_function: Callable[[Any, Any], Any] | None = None,
    margin: float = 1.0, swap: bool = False, reduction: str = "mean",
) -> Any:  # fmt: skip
    """How much the distance to the positive, plus the margin, exceeds that to the negative, for a custom distance."""
    distance = distance_function or pairwise_distance
    name = "triplet_margin_with_distance_loss"
    return _triplet(name, anchor, positive, negative, distance, margin, swap, reduction)


def _triplet(
    name: str, anchor: Any, positive: Any, negative: Any, distance: Callable[[Any, Any], Any], margin: float,
    swap: bool, reduction: str,
) -> Any:  # fmt: skip
    """The common part of triplet losses."""
    if not margin > 0:
        raise OptionError(f"{name}(): margin must be greater than 0, got {margin}: any points would satisfy the loss")
    if not anchor.ndim == positive.ndim == negative.ndim:
        raise ShapeError(
            f"{name}(): The anchor, positive, and negative tensors are expected to have the same number of dimensions, "
            f"but got: anchor {anchor.ndim}D, positive {positive.ndim}D, and negative {negative.ndim}D inputs"
        )
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = ops.minimum(far, distance(positive, negative))
    return reduced(_hinge(ops.add(ops.sub(near, far), float(margin))), reduction)


@public("bound")
def combined_margin_loss(x: Any, label: Any, m1: float = 1.0, m2: float = 0.0, m3: float = 0.0) -> Any:
    """Cosines with an angular margin for the target class, cos(m1 * angle + m2) - m3, as in face recognition.

    >>> flow._C.combined_margin_loss(flow.tensor([[1.0, 0.5]]), flow.tensor([0]), 1.0, 0.0, 0.25).tolist()
    [[0.75, 0.5]]
    """
    index = ops.unsqueeze(label, 1)
    cosine = ops.gather(x, 1, index)
    if (m1, m2) == (1.0, 0.0):
        harder = cosine - m3
    else:
        harder = ops.cos(ops.acos(cosine) * m1 + m2) - m3
    return ops.scatter(x, 1, index, harder)
