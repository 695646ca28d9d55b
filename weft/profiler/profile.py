"""`profile()`: switches recording on for one rank, and hands out what was recorded."""

from __future__ import annotations

import contextlib
import enum
import os
from collections.abc import Iterator
from typing import Any

from weft.core.errors import ArgumentError
from weft.core.rank import Rank, current
from weft.graph.run import TRACED, Running
from weft.profiler import chrome
from weft.profiler.averages import Averages, average
from weft.profiler.spans import RECORDING, acts_into
from weft.vm.machine import vm_of
from weft.vm.trace import Event, Trace, trace


class ProfilerActivity(enum.Enum):
    """What a profile records. Kept for programs that name it: a profile records all there is."""

    CPU = "cpu"
    CUDA = "cuda"


class profile:
    """Record what this rank does inside the block: this thread's eager ops, instructions, the acts of its graphs.

    Each rank profiles itself; `flow.profiler.merge` joins them. Options of other profilers are taken and not needed.
    """

    def __init__(self, activities: Any = None, record_shapes: bool = False, **options: Any) -> None:
        self._trace: Trace | None = None
        self._inside = contextlib.ExitStack()

    def __enter__(self) -> profile:
        if self._trace is not None:
            raise ArgumentError("this profile was used already: write `with flow.profiler.profile() as p:` for each")
        rank = current()
        if RECORDING in rank.resources:
            raise ArgumentError(f"{rank} is being profiled already; profiles don't nest, record_function does")
        with contextlib.ExitStack() as stack:
            recorded = self._trace = stack.enter_context(trace(rank))
            stack.enter_context(_kept(rank, RECORDING, recorded))
            stack.enter_context(_kept(rank, TRACED, lambda plan: acts_into(recorded, plan)))
            stack.callback(_follow, rank, None)
            _follow(rank, recorded)
            self._inside = stack.pop_all()
        return self

    def __exit__(self, *error: Any) -> None:
        with self._inside:
            if error[0] is None:
                vm_of().drain()  # what is under way belongs to the block

    @property
    def events(self) -> list[Event]:
        """Ops, instructions, named functions and acts, in the order of their ends."""
        return list(self._recorded().events)

    def key_averages(self) -> Averages:
        """How often each of them ran, and how long it took. Print it, or its `.table(sort_by="own")`."""
        return average(self.events)

    def chrome_trace(self) -> chrome.Document:
        return chrome.document(self._recorded())

    def export_chrome_trace(self, path: str | os.PathLike[str]) -> None:
        """Write a file for ui.perfetto.dev or chrome://tracing."""
        chrome.write(path, self.chrome_trace())

    def _recorded(self) -> Trace:
        if self._trace is None:
            raise ArgumentError("nothing was profiled yet: run the program inside `with p:` first")
        return self._trace


def _follow(rank: Rank, recorded: Trace | None) -> None:
    """The graphs that are there already; those made later ask when they are made."""
    for running in [r for r in rank.resources.values() if isinstance(r, Running)]:
        running.executor.trace = None if recorded is None else acts_into(recorded, running.lowered.plan.name)


@contextlib.contextmanager
def _kept(rank: Rank, name: str, value: Any) -> Iterator[None]:
    rank.resources[name] = value
    try:
        yield
    finally:
        rank.resources.pop(name, None)
