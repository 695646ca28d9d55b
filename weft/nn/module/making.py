"""Uninitialized parameters and buffers."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any

from weft.core import dtype as dtypes
from weft.core.errors import OptionError
from weft.functional.create.creation import get_default_dtype, place
from weft.ops import ops
from weft.tensor.parameter import Parameter
from weft.tensor.tensor import Tensor


def made(shape: Sequence[int], device: Any = None, dtype: Any = None) -> Parameter:
    """An uninitialized parameter."""
    return Parameter(filled(shape, None, device, dtype))


def filled(shape: Sequence[int], value: float | None, device: Any = None, dtype: Any = None) -> Tensor:
    kind = get_default_dtype() if dtype is None else dtypes.of(dtype)
    check_shape(shape)
    size = tuple(map(int, shape))
    where = place("a layer", device, None, None, len(size))
    return ops.empty(size, kind, *where) if value is None else ops.full(size, value, kind, *where)


def check_shape(shape: Sequence[Any]) -> None:
    for n in shape:
        if not isinstance(n, Integral) or isinstance(n, bool) or n < 0:
            raise OptionError(f"a layer's sizes must be nonnegative integers; got {list(shape)}")
