"""In-place methods: `copy_`, `fill_`, `zero_`."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import torch

from weft.api.fast_path import in_one, shortened
from weft.api.signature import overloaded
from weft.api.table import named, overwriting, public
from weft.autograd.inplace import held
from weft.autograd.overwrite import assign
from weft.autograd.trees import leaves
from weft.core.dispatch import here, in_own_dtypes
from weft.core.errors import ArgumentError
from weft.core.sbp import broadcast
from weft.functional.create import creation
from weft.functional.create.likeness import device_of
from weft.functional.random.draws_in_place import _between, _uniform
from weft.functional.tensor.conversion import to
from weft.ops import OPS, ops
from weft.ops.create import constructors
from weft.tensor.data import local_data
from weft.tensor.tensor import Tensor, of_torch

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
        value = creation.placed("copy_", local_data(value, "copy_()"), None, x.placement, _flat(x), False)
    elif x.spec is not None and value.placement is not x.placement:
        value = to(value, x)
    elif x.spec is value.spec is None and value.device is not x.device:
        value = to(value, x.device)
    return assign(x, value)


def into(x: Tensor, f: Callable[..., Tensor], *args: Any, **options: Any) -> Tensor:
    """Overwrite x with the result of a function composed of ops, whose gradients read x's old value."""
    before = x
    given = (v for v in leaves((x, args, options)) if isinstance(v, Tensor))
    if here.grad and here.trace is None and any(v.requires_grad for v in given):
        before = ops.clone(x)
    made = in_own_dtypes(f)(before, *args, **options)
    held(f.__name__, made.dtype, x.dtype)
    return copy_(x, made)


def with_in_place(f: Callable[..., Any]) -> Callable[..., Any]:
    """Bind a function composed of ops: as function, as method, and as the in-place method `name_`."""
    name = f.__name__

    @named(f"{name}_", f"`{name}`, in place.")
    def overwrite(x: Tensor, *args: Any, **options: Any) -> Tensor:
        refuse_out(name, options)
        return into(x, f, *args, **options)

    if hasattr(f, "in_one"):
        overwrite.__signature__ = inspect.signature(f)
        over = f.in_one.over or getattr(torch.Tensor, f"{name}_")  # type: ignore[attr-defined]
        overwrite = in_one(over, writes=True)(overwrite)
    public("tensor")(overwrite)
    return public("flow tensor")(f)


def refuse_out(name: str, options: dict[str, Any]) -> None:
    if "out" in options:
        raise ArgumentError(
            f"{name}_() got an unexpected keyword argument 'out': it writes into the tensor itself; {name}() takes one"
        )


def _flat(x: Tensor) -> Any:
    return (broadcast,) * x.placement.ndim


def number_like(x: Tensor, value: Any) -> Tensor:
    """A number as a 0-d tensor with x's dtype and device or layout."""
    if isinstance(value, Tensor):
        return value
    memory = x.blob.now
    if here.plain and memory is not None and x.spec is None:
        return of_torch(torch.full((), value, dtype=memory.dtype, device=memory.device))
    if x.is_global:
        return constructors.full((), value, x.dtype, None, x.placement, _flat(x))
    return creation.full((), value, dtype=x.dtype, device=x.device)


def filling(x: Tensor, value: Any) -> Tensor:
    """A number as a vector of one, refused where x's dtype doesn't hold it: `full` of one element isn't checked."""
    return ops.narrow(creation.full((2,), value, dtype=x.dtype, **device_of(x)), 0, 0, 1)


@public("tensor")
def fill_(x: Tensor, value: Any) -> Tensor:
    """Overwrite every element with one value.

    >>> flow.empty(2).fill_(3).tolist()
    [3.0, 3.0]
    """
    return _fill(x, value)


@public("flow tensor")
def zero_(x: Tensor) -> Tensor:
    """Overwrite every element with zero."""
    return _fill(x, 0)


public("tensor", "uniform_")(shortened(_uniform, overloaded("uniform_", _uniform, _between)))
