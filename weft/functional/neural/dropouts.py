"""Dropout of elements and of channels, and alpha dropout."""

from __future__ import annotations

from typing import Any

from weft.api.table import public
from weft.autograd.overwrite import assign, overwriting
from weft.core.errors import OptionError, ShapeError
from weft.functional.create import creation
from weft.functional.create.creation import drawing
from weft.functional.create.likeness import fitted
from weft.ops import OPS, ops
from weft.tensor.tensor import Tensor

_mul_ = overwriting(OPS["mul"])
LOWEST = -1.7580993408473766  # the limit of selu at minus infinity


def _checked(p: float) -> None:
    if not 0 <= p <= 1:
        raise OptionError(f"p is the probability of dropping, from 0 to 1; got {p}")


def _drawn(x: Tensor, p: float, dims: int | None) -> Tensor:
    """The dropout mask: 0 or 1 / (1 - p), for each element, or constant over the last `dims` dimensions."""
    if p == 1:
        return ops.zeros_like(x, None)
    if dims is None:
        return ops.dropout(ops.ones_like(x), p, True)
    shape = (*x.shape[: x.ndim - dims], *(1,) * dims)
    return ops.dropout(creation.ones(shape, **fitted(x, shape, None, None, None, None)), p, True)


def _drop(input: Tensor, p: float, training: bool, inplace: bool, dims: int) -> Tensor:
    _checked(p)
    if not training or p == 0:
        return input
    kept = _drawn(input, p, dims)
    return (_mul_ if inplace else ops.mul)(input, kept)


def _inside(name: str, x: Tensor) -> int:
    """The number of dimensions of a channel."""
    if x.ndim < 2:
        raise ShapeError(f"{name} takes (batch, channels, ...); got {list(x.shape)}")
    return x.ndim - 2


@public("flow")
def feature_dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Channels of (batch, channels, ...) zeroed with probability p, the others scaled by 1 / (1 - p)."""
    return _drop(input, p, training, inplace, _inside("feature_dropout", input))


@public("neural")
def dropout1d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Channels of ([batch,] channels, length) zeroed with probability p, the others scaled by 1 / (1 - p)."""
    if input.ndim not in (2, 3):
        raise ShapeError(f"dropout1d takes ([batch,] channels, length); got {list(input.shape)}")
    return _drop(input, p, training, inplace, 1)


@public("neural")
def dropout2d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Channels of (batch, channels, ...) zeroed, as in PyTorch also with other than two more dimensions."""
    return _drop(input, p, training, inplace, _inside("dropout2d", input))


@public("neural")
def dropout3d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Channels of (batch, channels, depth, height, width) zeroed; other shapes are taken as without a batch."""
    return _drop(input, p, training, inplace, _inside("dropout3d", input) + (input.ndim != 5))


def _alpha(input: Tensor, p: float, training: bool, inplace: bool, dims: int | None) -> Tensor:
    _checked(p)
    if not training or p == 0:
        return input
    scale = 0.0 if p == 1 else ((LOWEST**2 * p + 1) * (1 - p)) ** -0.5
    kept = ops.cast(ops.ne(_drawn(input.detach(), p, dims), 0), input.dtype)
    least = ops.add(ops.mul(ops.sub(kept, 1.0), -LOWEST * scale), -LOWEST * scale * p)
    made = ops.add(ops.mul(input, ops.mul(kept, scale)), least)
    return assign(input, made) if inplace else made


@public("neural flow")
def alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """Dropout that keeps the mean and variance of a SELU network.

    >>> flow.nn.functional.alpha_dropout(flow.ones(2), 1.0, training=True).tolist()
    [0.0, 0.0]
    """
    return _alpha(input, p, training, inplace, None)


@public("neural flow")
def feature_alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """Alpha dropout of channels of (batch, channels, ...)."""
    inside = _inside("feature_alpha_dropout", input) if training and p else None
    return _alpha(input, p, training, inplace, inside)


@public("neural bound")
def dropout(
    x: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False, generator: Any = None,
    addend: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """x with each element zeroed with probability p and the others scaled by 1 / (1 - p), while training.

    OneFlow's extra arguments: a generator, and a tensor to add to the result.
    """
    if not training or p == 0:
        return x if addend is None else ops.add(x, addend)
    if generator is None:
        y = ops.dropout(x, p, True)
    else:
        with drawing(generator):
            y = ops.dropout(x, p, True)
    if inplace:
        y = assign(x, y)
    return y if addend is None else ops.add(y, addend)
