"""Losses composed of ops, from which their gradients and layouts follow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weft.core.dtype import bool_
from weft.core.errors import DtypeError, OptionError, ShapeError
from weft.core.program_line import warn
from weft.functional.neural.similarity import pairwise_distance
from weft.functional.tensor.dtypes import promote_types
from weft.ops import ops
from weft.ops.explain import describe
from weft.ops.neural.bent_error import bent_error
from weft.ops.neural.square_error import square_error
from weft.tensor.tensor import Tensor, at_hand


def reduced(loss: Tensor, reduction: str) -> Tensor:
    if reduction == "mean":
        return ops.mean(loss)
    if reduction == "sum":
        return ops.sum(loss)
    if reduction == "none":
        return loss
    weight = "; a weight comes after it, or as a keyword: weight=w" if isinstance(reduction, Tensor) else ""
    raise OptionError(
        f"{describe(reduction)} is not a valid value for reduction; it is 'mean', 'sum' or 'none'{weight}"
    )


def _paired(x: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """Both in their common dtype: a one-element target takes part in promotion like any tensor."""
    if x.dtype is target.dtype:
        return x, target
    dtype = promote_types(x.dtype, target.dtype)
    return ops.cast(x, dtype), ops.cast(target, dtype)


def _floats(name: str, x: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """Both in their common floating dtype."""
    pair = _paired(x, target)
    if not pair[0].dtype.is_floating_point:
        raise DtypeError(f"{name} takes floats; got {x.dtype} and {target.dtype}. Cast them: x.float()")
    return pair


def _same_shape(name: str, x: Tensor, target: Tensor) -> None:
    if x.shape != target.shape:
        raise ShapeError(
            f"{name}: Target size ({tuple(target.shape)}) must be the same as input size ({tuple(x.shape)}); "
            "reshape or expand it so that every element has its target"
        )


def _warn_of_broadcast(x: Tensor, target: Tensor) -> None:
    """Warn of shapes that broadcast, which is seldom meant: (n, 1) and (n,) give n * n."""
    if x.shape != target.shape:
        warn(
            f"Using a target size ({target.shape}) that is different to the input size ({x.shape}): each is "
            f"repeated for the other, as they broadcast. Give them one shape, x.squeeze(1), say"
        )


def _weighted(loss: Tensor, weight: Tensor, input: Tensor, reduction: str) -> Tensor:
    """Each element's loss times its weight; the mean is weighted."""
    if weight.shape != input.shape:
        raise ShapeError(f"a weight for each element of the input, {list(input.shape)}; got {list(weight.shape)}")
    loss = ops.mul(loss, weight)
    return ops.div(ops.sum(loss), ops.sum(weight)) if reduction == "mean" else reduced(loss, reduction)


def mse_loss(input: Tensor, target: Tensor, reduction: str = "mean", weight: Tensor | None = None) -> Tensor:
    """The squared difference; with a weight, the mean is weighted.

    >>> flow.nn.functional.mse_loss(flow.tensor([1.0, 2.0]), flow.tensor([1.0, 4.0])).item()
    2.0
    """
    _warn_of_broadcast(input, target)
    if weight is not None:
        return _weighted(mse_loss(input, target, "none"), weight, input, reduction)
    if reduction in ("mean", "sum") and input.shape == target.shape:
        input, target = _floats("mse_loss", input, target)
        return square_error(input, target, reduction == "mean")
    return reduced(ops.square(ops.sub(*_floats("mse_loss", input, target))), reduction)


def l1_loss(input: Tensor, target: Tensor, reduction: str = "mean", weight: Tensor | None = None) -> Tensor:
    """The absolute difference; with a weight, the mean is weighted."""
    if weight is not None:
        return _weighted(l1_loss(input, target, "none"), weight, input, reduction)
    _warn_of_broadcast(input, target)
    if bool_ not in (input.dtype, target.dtype):  # for these, sub() raises
        input, target = _paired(input, target)
    return reduced(ops.abs(ops.sub(input, target)), reduction)


def smooth_l1_loss(input: Tensor, target: Tensor, reduction: str = "mean", beta: float = 1.0) -> Tensor:
    """Quadratic below `beta`, linear above it."""
    if beta < 0:
        raise OptionError(f"smooth_l1_loss does not support negative values for beta; got {beta}")
    if beta == 0:
        return l1_loss(input, target, reduction)
    _warn_of_broadcast(input, target)
    if reduction in ("mean", "sum") and input.shape == target.shape:
        return bent_error(*_floats("smooth_l1_loss", input, target), beta, 1.0, reduction == "mean")
    d = ops.sub(*_floats("smooth_l1_loss", input, target))
    size = ops.abs(d)
    far = ops.ge(size, beta)
    near = ops.masked_fill(d, far, 0.0)  # whose square is finite
    bent = ops.div(ops.mul(0.5, ops.mul(near, near)), beta)
    return reduced(ops.where(far, ops.sub(size, 0.5 * beta), bent), reduction)


def huber_loss(
    input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0, weight: Tensor | None = None
) -> Tensor:
    """Quadratic below `delta`, linear above it, with a continuous derivative; each element times its weight."""
    if weight is not None:
        return reduced(_weighted(huber_loss(input, target, "none", delta), weight, input, "none"), reduction)
    if not delta > 0:
        raise OptionError(f"huber_loss does not support non-positive values for delta; got {delta}")
    if not input.dtype.is_floating_point:
        raise DtypeError(f"huber_loss needs a floating input; got {input.dtype}: x.float()")
    _warn_of_broadcast(input, target)
    if reduction in ("mean", "sum") and input.shape == target.shape and input.dtype is target.dtype:
        return bent_error(input, target, delta, delta, reduction == "mean")
    d = ops.sub(*_floats("huber_loss", input, target))
    size = ops.abs(d)
    far = ops.gt(size, delta)
    near = ops.masked_fill(d, far, 0.0)  # whose square is finite
    loss = ops.where(far, ops.mul(delta, ops.sub(size, 0.5 * delta)), ops.mul(0.5, ops.mul(near, near)))
    return reduced(loss if loss.dtype is input.dtype else ops.cast(loss, input.dtype), reduction)


def binary_cross_entropy(
    input: Tensor, target: Tensor, weight: Tensor | None = None, reduction: str = "mean"
) -> Tensor:
    """The negative log probability of the target, 0 or 1 or between, under probability `input`."""
    _same_shape("binary_cross_entropy", input, target)
    for name, t in (("input", input), ("target", target)):
        data = at_hand(t)
        if data is not None and data.numel() and not 0 <= data.min() <= data.max() <= 1:
            raise OptionError(
                f"binary_cross_entropy: all elements of {name} should be between 0 and 1; they lie from "
                f"{float(data.min()):g} to {float(data.max()):g}. Of scores, take binary_cross_entropy_with_logits"
            )
    least = -100.0  # as torch: log(0) is clamped
    yes = ops.mul(target, ops.clamp(ops.log(input), least))
    no = ops.mul(ops.sub(1.0, target), ops.clamp(ops.log(ops.sub(1.0, input)), least))
    loss = ops.neg(ops.add(yes, no))
    return reduced(loss if weight is None else ops.mul(loss, weight), reduction)


def binary_cross_entropy_with_logits(
    input: Tensor, target: Tensor, weight: Tensor | None = None, reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """binary_cross_entropy(sigmoid(input), target), numerically stable."""
    _same_shape("binary_cross_entropy_with_logits", input, target)
    behind = ops.logsigmoid(input)
    rest = ops.mul(ops.sub(1.0, target), input)
    if pos_weight is None:
        loss = ops.sub(rest, behind)
    else:
        loss = ops.sub(rest, ops.mul(behind, ops.add(1.0, ops.mul(ops.sub(pos_weight, 1.0), target))))
    return reduced(loss if weight is None else ops.mul(loss, weight), reduction)


def kl_div(input: Tensor, target: Tensor, reduction: str = "mean", log_target: bool = False) -> Tensor:
    """The Kullback-Leibler divergence from log probabilities `input` to `target`; "batchmean" divides by the batch
    size."""
    if log_target:
        loss = ops.mul(ops.exp(target), ops.sub(target, input))
    else:
        safe = ops.where(ops.eq(target, 0), 1.0, target)
        loss = ops.sub(ops.mul(target, ops.log(safe)), ops.mul(target, input))
    if reduction == "batchmean":
        return ops.div(ops.sum(loss), float(input.shape[0]) if input.ndim else 1.0)
    return reduced(loss, reduction)


def soft_margin_loss(input: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """log(1 + exp(-target * input)), for targets 1 and -1."""
    return reduced(ops.softplus(ops.neg(ops.mul(target, input))), reduction)


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
    return reduced(ops.relu(gap), reduction)


def triplet_margin_loss(
    anchor: Tensor, positive: Tensor, negative: Tensor, margin: float = 1.0, p: float = 2.0, eps: float = 1e-6,
    swap: bool = False, reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """How much the distance to the positive, plus the margin, exceeds that to the negative."""

    def distance(a: Tensor, b: Tensor) -> Tensor:
        return pairwise_distance(a, b, p, eps)

    return triplet("triplet_margin_loss", anchor, positive, negative, distance, margin, swap, reduction)


def triplet(
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
    return reduced(ops.relu(ops.add(ops.sub(near, far), float(margin))), reduction)


__all__ = [
    "binary_cross_entropy", "binary_cross_entropy_with_logits", "huber_loss", "kl_div", "l1_loss",
    "margin_ranking_loss", "mse_loss", "smooth_l1_loss", "soft_margin_loss", "triplet_margin_loss",
]  # fmt: skip
