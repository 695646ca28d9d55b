"""Arguments that are one number for all dimensions, or one for each."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from operator import index
from typing import Any

from weft.core.errors import OptionError
from weft.tensor.tensor import Tensor


def sizes(value: Any) -> tuple[int, ...]:
    """The sizes of several dimensions, or of the only one."""
    return (int(value),) if isinstance(value, Integral) else tuple(value)


def several(value: Any, count: int, name: str) -> tuple[int, ...]:
    """One number per dimension, from one for all of them or one for each."""
    if isinstance(value, Integral) and not isinstance(value, bool):
        return (int(value),) * count
    if isinstance(value, Tensor) and not value.ndim:  # as programs compute it from sizes
        return (index(value),) * count
    given: tuple[Any, ...] = tuple(value) if isinstance(value, Sequence) and not isinstance(value, str) else ()
    given = tuple(index(v) if isinstance(v, Tensor) and not v.ndim else v for v in given)
    if len(given) != count:
        raise OptionError(f"{name} is one number, or {count}; got {value!r}")
    return given
