"""Numpy's numbers among an op's arguments: Python's in their place, which ops declare, print and compare."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from weft.ops.declaration import Op
from weft.ops.explain import explain


def plain(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments, each number a Python one."""
    for a in args:
        if isinstance(a, np.generic):
            return tuple(a.item() if isinstance(a, np.generic) else a for a in args)
    return args


def again(op: Op, cause: Exception, args: tuple[Any, ...], run: Callable[[Op, tuple[Any, ...]], Any]) -> Any:
    """The call that a kernel refused, with Python's numbers for numpy's; the error, where there are none."""
    numbers = plain(args)
    if numbers is args:
        raise explain(op, cause, args) from cause
    return run(op, numbers)
