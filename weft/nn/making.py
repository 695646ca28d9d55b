"""Parameters and buffers before they have values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft.core import dtype as dtypes
from weft.core.device import Device
from weft.core.errors import OptionError
from weft.functional.creation import get_default_dtype
from weft.ops import OPS
from weft.tensor.parameter import Parameter
from weft.tensor.tensor import Tensor


def made(shape: Sequence[int], device: Any = None, dtype: Any = None) -> Parameter:
    """A parameter of whatever the memory held."""
    return Parameter(filled(shape, None, device, dtype))


def filled(shape: Sequence[int], value: float | None, device: Any = None, dtype: Any = None) -> Tensor:
    kind = get_default_dtype() if dtype is None else dtypes.of(dtype)
    where = None if device is None else Device(device).check()
    for n in shape:
        if not isinstance(n, int) or isinstance(n, bool) or n < 0:
            raise OptionError(f"a layer's sizes are whole numbers, at least 0; got {list(shape)}")
    return OPS["empty"](tuple(shape), kind, where) if value is None else OPS["full"](tuple(shape), value, kind, where)


def several(value: Any, count: int, name: str) -> tuple[int, ...]:
    """One number per dimension, from one for all of them or one for each."""
    if isinstance(value, int) and not isinstance(value, bool):
        return (value,) * count
    given = tuple(value) if isinstance(value, (tuple, list)) else ()
    if len(given) != count:
        raise OptionError(f"{name} is one number, or {count}; got {value!r}")
    return given
