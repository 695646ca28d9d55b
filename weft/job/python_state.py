"""What attributes hold besides tensors, as values that can be compared: launches don't change it."""

from __future__ import annotations

import contextlib
import itertools
from collections import deque
from collections.abc import Iterator
from types import BuiltinFunctionType, FunctionType, NoneType
from typing import Any, Final

import numpy as np
import torch

from weft.core.program_line import warn
from weft.core.stored import Stored
from weft.tensor.tensor import Tensor

PLAIN: Final = (bool, int, float, str, NoneType)
THINGS: Final = (Stored, FunctionType, BuiltinFunctionType, type)  # which are themselves, whatever they hold
DEPTH: Final = 4  # of containers in containers
TENSORS: Final = (Tensor, torch.Tensor)
LONG: Final = 1 << 12  # entries that are looked at; longer containers are known by their lengths


Snapshot = dict[str, Any]  # from the place in a value, "" or ".step" or "[0]", to the number or text there


def snapshot(value: Any) -> Snapshot:
    """What a value holds now: numbers and texts, of containers and objects too, and which modules and functions."""
    found: Snapshot = {}
    todo = deque([("", value, 0)])
    for _ in range(LONG):
        if not todo:
            break
        place, value, depth = todo.popleft()
        if isinstance(value, TENSORS) or getattr(type(value), "launches_read_it", False):
            continue  # tensors are judged by what is computed
        if type(value) in PLAIN or isinstance(value, np.generic):
            found[place] = value
        elif isinstance(value, THINGS):
            found[place] = THINGS, id(value)
        elif isinstance(value, np.ndarray):
            found[place] = value.shape, value.tobytes() if value.size <= LONG else None
        elif isinstance(value, (set, frozenset)):
            found[place] = len(value), {v for v in itertools.islice(value, LONG) if type(v) in PLAIN}
        elif isinstance(value, (list, tuple, deque, dict)):
            if depth == DEPTH or len(value) > LONG:
                found[place] = type(value), len(value)
            else:
                held = value.items() if isinstance(value, dict) else enumerate(value)
                todo.extend((f"{place}[{k!r}]", v, depth + 1) for k, v in held)
        elif depth < DEPTH:
            todo.extend((f"{place}.{k}", v, depth + 1) for k, v in _attributes(value).items())
    return found


def _attributes(value: Any) -> dict[str, Any]:
    try:
        return object.__getattribute__(value, "__dict__")
    except AttributeError:
        return {}


def change(before: Snapshot, now: Snapshot) -> str | None:
    """Where a value isn't as it was, and how; None if it is. What was None may be set by the first call."""
    for place in {**before, **now}:
        old, new = before.get(place, ...), now.get(place, ...)
        if old is None or (type(old) is type(new) and (old is new or old == new)):
            continue
        shown = type(old) in PLAIN and type(new) in PLAIN
        return f"{place} from {old!r} to {new!r}" if shown else place
    return None


def warn_of_change(name: str, how: str) -> None:
    warn(
        f"build() changes {name}{how} in Python. Launches don't: all go by what it was when the graph was "
        "traced. What shall change is a tensor, register_buffer(name, tensor)"
    )


@contextlib.contextmanager
def watched(graph: Any) -> Iterator[None]:
    """Warn of what `build` changes of its graph's own attributes."""
    before = _public(graph)
    yield
    for name, now in _public(graph).items():
        if (how := change(before.get(name, {}), now)) is not None:
            warn_of_change(f"{type(graph).__name__}.{name}", how)


def _public(graph: Any) -> dict[str, Snapshot]:
    return {name: snapshot(value) for name, value in vars(graph).items() if not name.startswith("_")}
