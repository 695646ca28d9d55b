"""Named spans of the program in a trace."""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable
from typing import Any, Final

from weft.core.errors import ArgumentError
from weft.core.rank import current

RECORDING: Final = "profile"  # the resource under which a rank keeps the trace of the profile in progress


class record_function:
    """A named span of the program in the profile: a context manager, and a decorator.

    >>> with record_function("forward"):
    ...     pass
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._starts: list[int] = []

    def __enter__(self) -> record_function:
        self._starts.append(time.perf_counter_ns())
        return self

    def __exit__(self, *_: object) -> None:
        start, trace = self._starts.pop(), current().resources.get(RECORDING)
        if trace is not None:
            trace.span(self.name, "function", "compute", start, time.perf_counter_ns())

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def named(*args: Any, **kwargs: Any) -> Any:
            with record_function(self.name):
                return function(*args, **kwargs)

        return named


class _Open(threading.local):
    """The open spans of a thread: pushed and not popped yet."""

    def __init__(self) -> None:
        self.stretches: list[record_function] = []


_open = _Open()


def range_push(range_name: str) -> None:
    """Begin a named span of the program, which `range_pop` ends."""
    _open.stretches.append(record_function(range_name).__enter__())


def range_pop() -> None:
    """End the span that was begun last."""
    if not _open.stretches:
        raise ArgumentError("range_pop(): no range_push() is open in this thread")
    _open.stretches.pop().__exit__()
