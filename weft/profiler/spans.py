"""What the profiler adds to a trace of the virtual machine: named stretches of the program, and actors' acts."""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable
from typing import Any, Final

from weft.core.errors import ArgumentError
from weft.core.rank import current
from weft.plan.plan import Task
from weft.vm.trace import Event, Trace

RECORDING: Final = "profile"  # the resource under which a rank keeps the trace of the profile in progress


def add(trace: Trace, name: str, kind: str, stream: str, start: int, end: int) -> None:
    """A span of this thread; `start` and `end` are by time.perf_counter_ns."""
    start, end = start + trace.anchor, end + trace.anchor
    thread = threading.current_thread().name
    trace.events.append(Event(0, name, kind, stream, "inline", thread, start, start, end, (), (), (), False))


def acts_into(trace: Trace, plan: str) -> Callable[[Task, int, int, int], None]:
    """What an executor calls after each act."""
    stream = f"graph {plan}"

    def record(task: Task, act: int, start: int, end: int) -> None:
        add(trace, task.name, task.kind, stream, start, end)

    return record


class record_function:
    """Give a stretch of the program a name in the profile: a context manager, and a decorator.

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
            add(trace, self.name, "function", "compute", start, time.perf_counter_ns())

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def named(*args: Any, **kwargs: Any) -> Any:
            with record_function(self.name):
                return function(*args, **kwargs)

        return named


class _Open(threading.local):
    """The stretches of a thread that were pushed and not popped yet."""

    def __init__(self) -> None:
        self.stretches: list[record_function] = []


_open = _Open()


def range_push(name: str) -> None:
    """Begin a named stretch of the program, which `range_pop` ends."""
    _open.stretches.append(record_function(name).__enter__())


def range_pop() -> None:
    """End the stretch that was begun last."""
    if not _open.stretches:
        raise ArgumentError("range_pop(): no range_push() is open in this thread")
    _open.stretches.pop().__exit__()
