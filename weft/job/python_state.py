"""What attributes hold besides tensors, as values that can be compared: launches don't change it."""

from __future__ import annotations

import contextlib
import itertools
from collections import deque
from collections.abc import Iterator
from functools import cached_property
from logging import Logger
from types import BuiltinFunctionType, FunctionType, ModuleType, NoneType
from typing import Any, Final

import numpy as np
import torch

from weft.core.program_line import warn
from weft.core.stored import Stored
from weft.tensor.tensor import Tensor

PLAIN: Final = (bool, int, float, str, NoneType)
# Which are themselves, whatever they hold.
THINGS: Final = (Stored, FunctionType, BuiltinFunctionType, ModuleType, Logger, type)
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
                held = dict.items(value) if isinstance(value, dict) else enumerate(value)
                held = itertools.islice(enumerate(held), max(LONG - len(todo), 0))  # more won't be looked at
                todo.extend((f"{place}[{_key(k, i)}]", v, depth + 1) for i, (k, v) in held)
        elif depth < DEPTH:
            todo.extend((f"{place}.{k}", v, depth + 1) for k, v in _attributes(value).items())
    return found


def _key(key: Any, number: int) -> str:
    """A key as text; of a tensor, say, which would be read for that, its number."""
    return repr(key) if type(key) in PLAIN else f"<{type(key).__name__} {number}>"


def _attributes(value: Any) -> dict[str, Any]:
    """What an object holds, in slots too; but not what is computed once, when it is first read."""
    found: dict[str, Any] = {}
    for name in ("__dict__", *(n for c in type(value).__mro__ for n in _names(vars(c).get("__slots__", ())))):
        with contextlib.suppress(AttributeError):
            found[name] = object.__getattribute__(value, name)
    found |= found.pop("__dict__", {})
    return {name: v for name, v in found.items() if not is_cached(value, name)}


def _names(slots: Any) -> tuple[str, ...]:
    return (slots,) if isinstance(slots, str) else tuple(slots)


def is_cached(value: Any, name: str) -> bool:
    """Whether an object's class computes an attribute once, when it is first read."""
    return any(isinstance(vars(c).get(name), cached_property) for c in type(value).__mro__)


def change(before: Snapshot, now: Snapshot) -> str | None:
    """Where a value isn't as it was, and how; None if it is. What was None may be set by the first call, and so may a
    private attribute that wasn't there: a path keeps its text so."""
    unset = [place for place, old in before.items() if old is None]
    within = tuple(place + begin for place in unset for begin in ".[")
    for place in {**before, **now}:
        old, new = before.get(place, ...), now.get(place, ...)
        made = old is ... and place.rpartition(".")[2].startswith("_")
        if old is None or made or place.startswith(within) or (type(old) is type(new) and (old is new or old == new)):
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
