"""Methods that overwrite a tensor: `copy_`, `fill_`, `zero_`, and draws in place."""

from __future__ import annotations

from typing import Any

import torch

from weft.autograd.inplace import assign
from weft.core.sbp import broadcast
from weft.functional import creation
from weft.functional.conversion import cast, to
from weft.functional.creation import drawing
from weft.functional.likeness import form
from weft.functional.table import overwriting, public
from weft.ops import OPS, create
from weft.tensor.tensor import Tensor

_fill, _copy = overwriting(OPS["fill"]), overwriting(OPS["copy"])


@public("tensor")
def copy_(x: Tensor, value: Any, non_blocking: bool = False) -> Tensor:
    """Overwrite x with the value, which may have another dtype, device or layout, and broadcasts."""
    if isinstance(value, Tensor):
        mine, other = x.blob.now, value.blob.now
        if mine is not None and other is not None and mine.device == other.device:
            return _copy(x, value)
    else:
        if isinstance(value, (int, float)):
            return fill_(x, value)
        value = creation.as_tensor(value)
    if value.spec is None and x.spec is not None:  # data that every rank has alike
        value = creation.placed("copy_", value._local("copy_()"), None, x.placement, _flat(x), False)
    elif x.spec is None and value.device is not x.device:
        value = to(value, x.device)
    elif x.spec is not None and value.placement is not x.placement:
        value = to(value, x)
    return assign(x, value)


def _flat(x: Tensor) -> Any:
    return (broadcast,) * x.placement.ndim


def number_like(x: Tensor, value: Any) -> Tensor:
    """A number as a tensor that broadcasts to x: x's dtype, where x lies."""
    if isinstance(value, Tensor):
        return value
    if x.spec is not None:
        return create.full((), value, x.dtype, None, x.placement, _flat(x))
    return create.full((), value, x.dtype, x.device)


@public("tensor", straight=True)
def fill_(x: Tensor, value: Any) -> Tensor:
    """Overwrite every element with one value.

    >>> flow.empty(2).fill_(3).tolist()
    [3.0, 3.0]
    """
    return _fill(x, value)


@public("flow tensor", straight=True)
def zero_(x: Tensor) -> Tensor:
    """Overwrite every element with zero."""
    return _fill(x, 0)


def _draw(x: Tensor, op: Any, generator: Any, scale: float, shift: float) -> Tensor:
    kind = {k: v for k, v in form(x, None, None, None, None).items() if k != "dtype"}
    with drawing(generator):
        y = op(tuple(x.shape), x.dtype, kind.get("device"), kind.get("placement"), kind.get("sbp"))
    return assign(x, y * scale + shift if (scale, shift) != (1, 0) else y)  # type: ignore[operator]


@public("tensor")
def uniform_(x: Tensor, a: float = 0.0, b: float = 1.0, *, generator: Any = None) -> Tensor:
    """Overwrite x with draws from the uniform distribution over [a, b)."""
    return _draw(x, create.rand, generator, b - a, a)


@public("tensor")
def normal_(x: Tensor, mean: float = 0.0, std: float = 1.0, *, generator: Any = None) -> Tensor:
    """Overwrite x with draws from the normal distribution."""
    return _draw(x, create.randn, generator, std, mean)


@public("tensor")
def exponential_(x: Tensor, lambd: float = 1.0, *, generator: Any = None) -> Tensor:
    """Overwrite x with draws from the exponential distribution."""
    uniform = creation.rand(tuple(x.shape), generator=generator, **form(x, None, None, None, None))
    return assign(x, (1.0 - uniform).log() * (-1.0 / lambd))  # type: ignore[operator]


@public("tensor")
def bernoulli_(x: Tensor, p: float = 0.5, *, generator: Any = None) -> Tensor:
    """Overwrite x with ones, each with probability p, and zeros."""
    uniform = creation.rand(tuple(x.shape), generator=generator, **(form(x, torch.float32, None, None, None)))
    return assign(x, cast(uniform < p, x.dtype))  # type: ignore[operator]
