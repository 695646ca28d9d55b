"""Arithmetic with more arguments than the ops take."""

from __future__ import annotations

import builtins
import functools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch

from weft.api.fast_path import in_one
from weft.api.table import named, overwriting, public
from weft.core.dtype import bool_, float32
from weft.core.errors import ArgumentError
from weft.functional.tensor.conversion import SHORT, cast, in_float32
from weft.functional.tensor.dtypes import common_type
from weft.functional.tensor.in_place import into
from weft.ops import OPS, ops
from weft.tensor.tensor import Tensor

_add_to, _add_scaled_to, _clamp_, _div_to, _round_to = (
    overwriting(OPS[name]) for name in ("add", "add_scaled", "clamp", "div", "round")
)


def _scaled(other: Any, alpha: Any) -> Any:
    if alpha == 1:
        return other
    numbers = isinstance(other, (int, float, complex)) and isinstance(alpha, (int, float, complex))
    return other * alpha if numbers else ops.mul(other, alpha)


@public("flow tensor")
def add(x: Any, other: Any = None, *, alpha: Any = 1) -> Tensor:
    """x + alpha * other, element-wise; of a list of tensors alone, their sum.

    >>> flow.add(flow.ones(2), 1, alpha=3).tolist(), flow.add([flow.ones(2)] * 3).tolist()
    ([4.0, 4.0], [3.0, 3.0])
    """
    if other is None:
        return _sum(x)
    return ops.add(x, other) if alpha == 1 else _added(x, other, alpha)


def _added(x: Any, other: Any, alpha: Any) -> Tensor:
    return ops.add_scaled(x, other, alpha) if _fits(x, alpha) else ops.add(x, _scaled(other, alpha))


def _fits(x: Any, alpha: Any) -> bool:
    """Whether the kernel that scales takes the factor: it adds no fractions to integers."""
    if not isinstance(x, Tensor):
        return False
    kind = x.dtype
    return kind.is_floating_point if alpha.__class__ is float else alpha.__class__ is int and kind is not bool_


def _sum(tensors: Any) -> Tensor:
    if not isinstance(tensors, (list, tuple)) or not tensors:
        raise ArgumentError("add(): missing required argument 'other'; a list of tensors needs none: add([a, b])")
    return functools.reduce(ops.add, tensors)


@public("flow tensor")
def sub(x: Any, other: Any, *, alpha: Any = 1) -> Tensor:
    """x - alpha * other, element by element.

    >>> flow.sub(flow.ones(2), 1, alpha=3).tolist()
    [-2.0, -2.0]
    """
    return ops.sub(x, other) if alpha == 1 else _added(x, other, -alpha)


@public("flow tensor")
def div(x: Any, other: Any, *, rounding_mode: str | None = None) -> Tensor:
    """x / other, element by element; rounded down with "floor", towards zero with "trunc".

    >>> flow.div(flow.tensor([-7.]), 2, rounding_mode="trunc").tolist()
    [-3.0]
    """
    if rounding_mode is None:
        return ops.div(x, other)
    if rounding_mode == "floor":
        return ops.floor_divide(x, other)
    if rounding_mode != "trunc":
        raise ArgumentError(f'div(): rounding_mode is None, "trunc" or "floor"; got {rounding_mode!r}')
    return ops.trunc_divide(x, other)


def _accumulating(plain: Callable[..., Tensor]) -> None:
    name = plain.__name__
    overwrite, sign = overwriting(OPS[name]), 1 if plain is add else -1

    @named(f"{name}_", f"`{name}`, in place.")
    def f(x: Tensor, other: Any, *, alpha: Any = 1) -> Tensor:
        if alpha != 1 and _fits(x, alpha):
            return _add_scaled_to(x, other, sign * alpha)
        return overwrite(x, _scaled(other, alpha))

    plain.overwriting = public("tensor")(f)  # type: ignore[attr-defined]


_accumulating(add)
_accumulating(sub)


def _sum_into_first(x: Any, other: Any = None, *, alpha: Any = 1) -> Tensor:
    first, rest, alpha = (x, [other], alpha) if other is not None else (x[0], x[1:], 1)
    return functools.reduce(lambda y, t: _add_to(y, _scaled(t, alpha)), rest, first)


add.overwriting = _sum_into_first  # type: ignore[attr-defined]


@public("flow")
def rsub(x: Any, other: Any, *, alpha: Any = 1) -> Tensor:
    """other - alpha * x."""
    return ops.sub(other, _scaled(x, alpha))


def _promoted(x: Tensor, *factors: Tensor) -> Iterator[Tensor]:
    """The factors in the common dtype of all three; 0-d tensors don't widen it."""
    if len({t.dtype for t in (x, *factors)}) == 1:
        return iter(factors)
    common = common_type((x, *factors))
    return (cast(t, common) for t in factors)


@public("flow tensor")
@in_one(torch.addcmul)
@in_float32
def addcmul(x: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Any = 1) -> Tensor:
    """x + value * tensor1 * tensor2."""
    return ops.add(x, _scaled(ops.mul(*_promoted(x, tensor1, tensor2)), value))


@public("flow tensor")
@in_one(torch.addcdiv)
@in_float32
def addcdiv(x: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Any = 1) -> Tensor:
    """x + value * tensor1 / tensor2."""
    return ops.add(x, _scaled(ops.div(*_promoted(x, tensor1, tensor2)), value))


def _wide(factors: Iterable[Tensor]) -> Iterator[Tensor]:
    """As in `in_float32`; the sum is rounded as it is written."""
    return (cast(t, float32) if t.dtype in SHORT else t for t in factors)


@public("tensor")
@in_one(torch.Tensor.addcmul_, writes=True)
def addcmul_(x: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Any = 1) -> Tensor:
    """In-place `addcmul`."""
    return _add_to(x, _scaled(ops.mul(*_wide(_promoted(x, tensor1, tensor2))), value))


@public("tensor")
@in_one(torch.Tensor.addcdiv_, writes=True)
def addcdiv_(x: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Any = 1) -> Tensor:
    """In-place `addcdiv`."""
    return _add_to(x, _scaled(ops.div(*_wide(_promoted(x, tensor1, tensor2))), value))


@public("flow tensor")
def round(x: Tensor, decimals: int = 0) -> Tensor:
    """The nearest integer, ties to even; or the nearest number with so many decimals.

    >>> flow.round(flow.tensor([1.26, -0.5]), decimals=1).tolist()
    [1.2999..., -0.5]
    """
    if not decimals:
        return ops.round(x)
    by = 10.0 ** builtins.abs(decimals)
    return ops.div(ops.round(ops.mul(x, by)), by) if decimals > 0 else ops.mul(ops.round(ops.div(x, by)), by)


@public("flow tensor")
def round_(x: Tensor, *, decimals: int = 0) -> Tensor:
    """In-place `round`."""
    return into(x, round, decimals=decimals) if decimals else _round_to(x)


@public("flow")
@public("tensor", "div_ divide_ true_divide_")
def div_(x: Tensor, other: Any, rounding_mode: str | None = None) -> Tensor:
    """In-place `div`."""
    if rounding_mode is None:
        return _div_to(x, other)
    return into(x, div, other, rounding_mode=rounding_mode)
