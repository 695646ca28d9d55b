"""`profile()`: record one rank, and return what was recorded."""

from __future__ import annotations

import contextlib
import enum
import os
import time
from collections.abc import Callable, Iterator
from typing import Any, Final

import torch

from weft.core.errors import ArgumentError
from weft.core.idle import IDLE, idle
from weft.core.rank import Rank, current
from weft.profiler import chrome
from weft.profiler.averages import Averages, average
from weft.profiler.schedule import RECORDED, ProfilerAction, always
from weft.profiler.spans import RECORDING
from weft.vm.machine import vm_of
from weft.vm.trace import Event, Trace, document, trace, write


class ProfilerActivity(enum.Enum):
    """What a profile records. For compatibility only: a profile always records everything."""

    CPU = "cpu"
    CUDA = "cuda"


def supported_activities() -> set[ProfilerActivity]:
    """The activities that this machine has."""
    return {ProfilerActivity.CPU, *[ProfilerActivity.CUDA] * torch.cuda.is_available()}


UNHEARD: Final = tuple(name[len("profile(") : -1] for name in IDLE if name.startswith("profile("))


class profile:
    """Record what this rank does inside the block: this thread's eager ops, instructions, the acts of its graphs.

    Each rank profiles itself; `flow.profiler.merge` joins them. `schedule` says which steps are recorded, and `step()`
    begins the next one; `on_trace_ready(profile)` is called with each complete record. PyTorch's and OneFlow's other
    options are accepted without effect.

    >>> with flow.profiler.profile(schedule=flow.profiler.schedule(wait=1, warmup=0, active=1)) as p:
    ...     for _ in range(2):
    ...         _ = flow.ones(2).exp()
    ...         p.step()
    >>> [row.calls for row in p.key_averages() if row.name == "exp"]
    [1]
    """

    def __init__(
        self, activities: Any = None, record_shapes: bool = False, *,
        schedule: Callable[[int], ProfilerAction] | None = None, on_trace_ready: Callable[[Any], Any] | None = None,
        profile_memory: bool = False, with_stack: bool = False, with_flops: bool = False, with_modules: bool = False,
        experimental_config: Any = None, execution_trace_observer: Any = None, acc_events: bool = False,
        use_cuda: bool | None = None, custom_trace_id_callback: Any = None, post_processing_timeout_s: Any = None,
        record_bandwidth_for_cuda: bool = False,
    ) -> None:  # fmt: skip
        given = locals()
        for name in UNHEARD:
            idle(f"profile({name})", given[name])
        self.step_num = 0
        self.on_trace_ready = on_trace_ready
        self._schedule = always if schedule is None else schedule
        self._named = schedule is not None  # whether steps show in the record
        self._action: ProfilerAction | None = None
        self._trace: Trace | None = None
        self._inside: contextlib.ExitStack | None = None
        self._began = 0

    def __enter__(self) -> profile:
        self.start()
        return self

    def __exit__(self, *error: Any) -> None:
        if error[0] is None:
            self.stop()
        elif self._inside is not None:
            self._inside.close()

    def start(self) -> None:
        """Begin recording, like entering the block."""
        if self._action is not None:
            raise ArgumentError("this profile was used already: write `with flow.profiler.profile() as p:` for each")
        self._turn_to(self._schedule(0))

    def step(self) -> None:
        """Begin the next step of the program."""
        if self._action is None:
            raise ArgumentError("step(): this profile has not begun: `with profile() as p:`, or p.start()")
        self._mark()
        self.step_num += 1
        self._turn_to(self._schedule(self.step_num))

    def stop(self) -> None:
        """End recording, like leaving the block."""
        if self._inside is not None:
            self._mark()
            self._end(whole=True)

    def _turn_to(self, action: ProfilerAction) -> None:
        before, self._action = self._action, action
        if self._inside is not None and (before is ProfilerAction.RECORD_AND_SAVE or action not in RECORDED):
            self._end(whole=before is ProfilerAction.RECORD_AND_SAVE)
        if action in RECORDED and self._inside is None:
            self._begin()
        self._began = time.perf_counter_ns()

    def _mark(self) -> None:
        """Record the step that ends as a named span."""
        if self._named and self._inside is not None and self._trace is not None:
            name = f"ProfilerStep#{self.step_num}"
            self._trace.span(name, "function", "compute", self._began, time.perf_counter_ns())

    def _begin(self) -> None:
        rank = current()
        if RECORDING in rank.resources:
            self._action = None
            raise ArgumentError(f"{rank} is being profiled already; profiles don't nest, record_function does")
        with contextlib.ExitStack() as stack:
            recorded = self._trace = stack.enter_context(trace(rank))
            stack.enter_context(_kept(rank, RECORDING, recorded))
            self._inside = stack.pop_all()

    def _end(self, whole: bool) -> None:
        inside, self._inside = self._inside, None
        assert inside is not None
        with inside:
            vm_of().drain()  # pending work belongs to the block
        if whole and self.on_trace_ready is not None:
            self.on_trace_ready(self)

    def events(self) -> list[Event]:
        """Ops, instructions, named functions and acts, in the order of their ends."""
        return list(self._recorded().events)

    def key_averages(self, group_by_input_shape: bool = False, group_by_stack_n: int = 0) -> Averages:
        """Counts and times of events by name, and perhaps by the forms of their operands. Print it, or its
        `.table(sort_by="own")`."""
        if group_by_stack_n:
            raise ArgumentError("key_averages(): groups are by name and shapes; stacks aren't part of a record")
        return average(self.events(), group_by_input_shape)

    def chrome_trace(self) -> chrome.Document:
        return document([self._recorded()])

    def export_chrome_trace(self, path: str | os.PathLike[str]) -> None:
        """Write a file for ui.perfetto.dev or chrome://tracing."""
        write(path, self.chrome_trace())

    def _recorded(self) -> Trace:
        if self._trace is None:
            raise ArgumentError("nothing was profiled yet: run the program inside `with p:` first")
        return self._trace


@contextlib.contextmanager
def _kept(rank: Rank, name: str, value: Any) -> Iterator[None]:
    rank.resources[name] = value
    try:
        yield
    finally:
        rank.resources.pop(name, None)
