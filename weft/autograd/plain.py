"""Numpy's numbers among an op's arguments: Python's in their place, which ops declare, print and compare."""

from __future__ import annotations

from typing import Any

import numpy as np


def plain(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments, each number a Python one."""
    for a in args:
        if isinstance(a, np.generic):
            return tuple(a.item() if isinstance(a, np.generic) else a for a in args)
    return args
