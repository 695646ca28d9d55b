"""What attributes hold besides tensors, as values that can be compared: launches don't change it."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Iterator
from types import BuiltinFunctionType, FunctionType, NoneType
from typing import Any, Final

import numpy as np
import torch

from weft.core.program_line import warn
from weft.core.stored import Stored
from weft.tensor.tensor import Tensor

NUMBERS: Final = (bool, int, float)
PLAIN: Final = (*NUMBERS, str, NoneType)
THINGS: Final = (Stored, FunctionType, BuiltinFunctionType, type)  # which are themselves, whatever they hold
NOTHING: Final = NoneType, None
DEPTH: Final = 4  # of containers in containers
TENSORS: Final = (Tensor, torch.Tensor)
LONG: Final = 1 << 12  # containers and arrays with more than so much are known by their lengths


def snapshot(value: Any, depth: int = DEPTH) -> Any:
    """What a value holds now: numbers and texts, of containers and objects too, and which modules and functions."""
    kind = type(value)
    if isinstance(value, TENSORS):  # they are judged by what is computed
        return NOTHING
    if kind in PLAIN or isinstance(value, np.generic):
        return kind, value
    if isinstance(value, THINGS):
        return id(value)
    if isinstance(value, np.ndarray):
        return value.shape, value.tobytes() if value.size <= LONG else None
    if isinstance(value, (list, tuple, deque, set, frozenset, dict)):
        if depth == 0 or len(value) > LONG:
            return kind, len(value)
        if isinstance(value, dict):
            return kind, [(str(k), snapshot(v, depth - 1)) for k, v in value.items() if not isinstance(v, TENSORS)]
        held = [snapshot(v, depth - 1) for v in value if not isinstance(v, TENSORS)]
        return kind, sorted(held, key=repr) if isinstance(value, (set, frozenset)) else held
    if depth == 0:
        return kind
    try:
        return kind, snapshot(object.__getattribute__(value, "__dict__"), depth - 1)
    except AttributeError:
        return kind


def warn_of_change(name: str, before: Any, now: Any) -> None:
    """Warn that a snapshot isn't as it was before the trace."""
    change = ""
    if isinstance(before, tuple) and isinstance(now, tuple) and {before[0], now[0]} <= {*PLAIN}:
        change = f" from {before[1]!r} to {now[1]!r}"
    warn(
        f"build() changes {name}{change} in Python. Launches don't: all go by what it was when the graph was traced. "
        "What shall change is a tensor, register_buffer(name, tensor)"
    )


@contextlib.contextmanager
def watched(graph: Any) -> Iterator[None]:
    """Warn of what `build` changes of its graph's own attributes."""
    was = _public(graph)
    yield
    for name, left in _public(graph).items():
        if left != was.get(name, NOTHING):
            warn_of_change(f"{type(graph).__name__}.{name}", was.get(name, NOTHING), left)


def _public(graph: Any) -> dict[str, Any]:
    return {name: snapshot(value) for name, value in vars(graph).items() if not name.startswith("_")}
