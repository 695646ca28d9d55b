"""Numpy's numbers, and sequences of others' kinds, among an op's arguments: Python's own in their place, which ops
declare, print and compare."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from weft.core.device import Device
from weft.core.dtype import DType
from weft.ops.declaration import Op
from weft.ops.explain import explain
from weft.tensor.parameter import Parameter
from weft.tensor.tensor import Tensor

PLAIN: Final = frozenset({Tensor, Parameter, int, float, bool, str, tuple, list, type(None), DType, Device})


def plain(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments, each number a Python one, each sequence a tuple."""
    for a in args:
        if type(a) not in PLAIN and (isinstance(a, np.generic) or is_others(a)):
            return tuple(a.item() if isinstance(a, np.generic) else tuple(a) if is_others(a) else a for a in args)
    return args


def is_others(a: Any) -> bool:
    """Whether it is a sequence of a kind of its own, such as a list of a configuration."""
    return isinstance(a, Sequence) and not isinstance(a, (tuple, list, str, bytes))


def again(op: Op, cause: Exception, args: tuple[Any, ...], run: Callable[[Op, tuple[Any, ...]], Any]) -> Any:
    """The call that a kernel refused, with Python's numbers for numpy's; the error, where there are none."""
    numbers = plain(args)
    if numbers is args:
        raise explain(op, cause, args) from cause
    return run(op, numbers)
