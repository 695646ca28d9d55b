"""Losses composed of ops, from which their gradients and layouts follow."""

from __future__ import annotations

import math
from typing import Any

from weft.api.table import public
from weft.core.dtype import bool_
from weft.core.errors import DtypeError, OptionError, ShapeError
from weft.core.program_line import warn
from weft.functional.shape.broadcasting import broadcast_tensors
from weft.functional.tensor.dtypes import promote_types
from weft.ops import ops
from weft.ops.explain import describe
from weft.ops.neural.losses import bent_error, bent_errors, square_error
from weft.tensor.tensor import Tensor


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


def floats(name: str, x: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """Both in their common floating dtype."""
    pair = _paired(x, target)
    if not pair[0].dtype.is_floating_point:
        raise DtypeError(f"{name} takes floats; got {x.dtype} and {target.dtype}. Cast them: x.float()")
    return pair


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


@public("neural")
def mse_loss(input: Tensor, target: Tensor, reduction: str = "mean", weight: Tensor | None = None) -> Tensor:
    """The squared difference; with a weight, the mean is weighted.

    >>> flow.nn.functional.mse_loss(flow.tensor([1.0, 2.0]), flow.tensor([1.0, 4.0])).item()
    2.0
    """
    _warn_of_broadcast(input, target)
    if weight is not None:
        return _weighted(mse_loss(input, target, "none"), weight, input, reduction)
    if reduction in ("mean", "sum") and input.shape == target.shape:
        input, target = floats("mse_loss", input, target)
        return square_error(input, target, reduction == "mean")
    return reduced(ops.square(ops.sub(*floats("mse_loss", input, target))), reduction)


@public("neural")
def l1_loss(input: Tensor, target: Tensor, reduction: str = "mean", weight: Tensor | None = None) -> Tensor:
    """The absolute difference; with a weight, the mean is weighted."""
    if weight is not None:
        return _weighted(l1_loss(input, target, "none"), weight, input, reduction)
    _warn_of_broadcast(input, target)
    if bool_ not in (input.dtype, target.dtype):  # for these, sub() raises
        input, target = _paired(input, target)
    return reduced(ops.abs(ops.sub(input, target)), reduction)


@public("neural")
def smooth_l1_loss(input: Tensor, target: Tensor, reduction: str = "mean", beta: float = 1.0) -> Tensor:
    """Quadratic below `beta`, linear above it."""
    if isinstance(beta, str):  # OneFlow's order
        reduction, beta = beta, reduction  # type: ignore[assignment]
    if beta < 0:
        raise OptionError(f"smooth_l1_loss does not support negative values for beta; got {beta}")
    if beta == 0:
        return l1_loss(input, target, reduction)
    _warn_of_broadcast(input, target)
    return _bent(*floats("smooth_l1_loss", input, target), beta, 1.0, reduction)


def _bent(x: Tensor, target: Tensor, bend: float, slope: float, reduction: str) -> Tensor:
    if x.shape != target.shape:
        x, target = broadcast_tensors(x, target)
    if reduction in ("mean", "sum"):
        return bent_error(x, target, bend, slope, reduction == "mean")
    return reduced(bent_errors(x, target, bend, slope), reduction)


@public("neural")
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
    loss = _bent(*floats("huber_loss", input, target), delta, delta, reduction)
    return loss if loss.dtype is input.dtype else ops.cast(loss, input.dtype)


@public("neural flow")
def kl_div(input: Tensor, target: Tensor, reduction: str = "mean", log_target: bool = False) -> Tensor:
    """The Kullback-Leibler divergence from log probabilities `input` to `target`; "batchmean" divides by the batch
    size."""
    if isinstance(log_target, str):  # OneFlow's order
        reduction, log_target = log_target, reduction  # type: ignore[assignment]
    if log_target:
        loss = ops.mul(ops.exp(target), ops.sub(target, input))
    else:
        safe = ops.where(ops.eq(target, 0), 1.0, target)
        loss = ops.sub(ops.mul(target, ops.log(safe)), ops.mul(target, input))
    if reduction == "batchmean":
        return ops.div(ops.sum(loss), float(input.shape[0]) if input.ndim else 1.0)
    return reduced(loss, reduction)


@public("neural flow")
def poisson_nll_loss(
    input: Any, target: Any, log_input: bool = True, full: bool = False, eps: float = 1e-8, reduction: str = "mean"
) -> Tensor:
    """The negative log likelihood of counts, with `input` the Poisson mean, or its logarithm."""
    if isinstance(eps, bool):
        raise OptionError(
            f'eps is a small number; got {eps}. The deprecated argument there, size_average, is now reduction="mean" '
            'or "sum"'
        )
    loss = ops.exp(input) - target * input if log_input else input - target * ops.log(input + eps)
    if full:
        many = ops.where(target > 1, target, 2.0)
        stirling = many * ops.log(many) - many + 0.5 * ops.log(2 * math.pi * many)
        loss = loss + ops.where(target > 1, stirling, 0.0)
    return reduced(loss, reduction)


NEGATIVE = "gaussian_nll_loss: var has negative entry/entries: it holds variances"


@public("neural")
def gaussian_nll_loss(
    input: Any, target: Any, var: Any, full: bool = False, eps: float = 1e-6, reduction: str = "mean"
) -> Tensor:
    """The negative log likelihood of targets that are normal around `input` with these variances."""
    if isinstance(var, Tensor):
        width: Any = ops.require(var, ops.ge(var, 0), NEGATIVE)
        if width.ndim == input.ndim - 1:
            width = ops.unsqueeze(width, -1)
    elif var < 0:
        raise OptionError(f"{NEGATIVE}; got {var}")
    else:
        width = ops.full_like(input.detach(), float(var))
    # clamped without a gradient, as in torch
    width = width + (ops.clamp(width, eps) - width).detach()
    away = input - target
    loss = 0.5 * (ops.log(width) + away * away / width)
    return reduced(loss + 0.5 * math.log(2 * math.pi) if full else loss, reduction)
