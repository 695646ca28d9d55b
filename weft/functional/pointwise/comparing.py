"""Comparisons of tensors: equal, allclose, isclose, isin."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

from weft.api.fast_path import in_one
from weft.api.signature import Signature, door
from weft.api.table import public
from weft.core.dtype import bool_
from weft.core.errors import OptionError
from weft.core.program_line import warn
from weft.functional.create import creation
from weft.functional.create.likeness import device_of
from weft.ops import ops
from weft.tensor.data import whole_data
from weft.tensor.tensor import Tensor


@public("flow tensor")
@in_one(torch.equal)
def equal(x: Tensor, other: Tensor) -> bool:
    """Whether two tensors have the same shape and elements."""
    return x.shape == other.shape and bool((whole_data(x, "equal") == whole_data(other, "equal")).all())


def _tolerances(f: Callable[..., Any]) -> Callable[..., Any]:
    """Warn if tolerances are positional, as PyTorch and OneFlow order them differently."""
    behind = door(f)

    @functools.wraps(f)
    def call(*args: Any, **kwargs: Any) -> Any:
        if len(args) == 3 or (len(args) > 3 and args[2] != args[3]):
            warn(
                f"{f.__name__}(x, other, {', '.join(map(repr, args[2:4]))}): read as rtol, atol, as in PyTorch; "
                f"OneFlow reads atol, rtol. Name them: rtol={args[2]!r}"
            )
        return behind(*args, **kwargs)

    call.signatures = (Signature(f).text(f.__name__),)  # type: ignore[attr-defined]
    return call


@public("flow tensor")
@_tolerances
def allclose(x: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> bool:
    """Whether |x - other| <= atol + rtol * |other| for every element."""
    if isinstance(rtol, Tensor) or isinstance(atol, Tensor):  # torch would ask for this function again, without end
        raise TypeError("tolerances are numbers")
    return whole_data(x, "allclose").allclose(whole_data(other, "allclose"), rtol, atol, equal_nan)


@public("flow tensor")
@_tolerances
def isclose(x: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> Tensor:
    """Whether |x - other| <= atol + rtol * |other|, element by element."""
    for name, given in (("rtol", rtol), ("atol", atol)):
        if given < 0:
            raise OptionError(f"{name} must be greater than or equal to zero, but got {given}")
    if x.dtype is bool_ and other.dtype is bool_:
        return ops.eq(x, other)
    apart = ops.abs(ops.sub(x, other))
    near = ops.logical_and(ops.le(apart, ops.add(ops.mul(ops.abs(other), rtol), atol)), ops.isfinite(apart))
    near = ops.logical_or(near, ops.eq(x, other))
    both = ops.logical_and(ops.isnan(x), ops.isnan(other))
    return ops.logical_or(near, both) if equal_nan else near


@public("flow")
@in_one(torch.isin)
def isin(elements: Any, test_elements: Any, *, assume_unique: bool = False, invert: bool = False) -> Tensor:
    """Whether each element is among the test elements.

    >>> flow.isin(flow.tensor([1, 2, 3]), flow.tensor([3, 1])).tolist()
    [True, False, True]
    """
    like = elements if isinstance(elements, Tensor) else test_elements
    x, others = (
        v if isinstance(v, Tensor) else creation.tensor(v, **device_of(like)) for v in (elements, test_elements)
    )
    same = ops.eq(ops.unsqueeze(x, -1), ops.reshape(others, (-1,)))
    found = ops.any(same, -1) if others.numel() else ops.ne(x, x)
    return ops.logical_not(found) if invert else found
