"""A plan's streams on an asynchronous device: each of the plan's streams has a device stream for its tasks' kernels.

A readable register means that the writer's kernels were launched, not that they have finished. So the writer records an
event on its stream, and the reader's stream waits for it; likewise before the copy is written again. No host waits.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Container, Mapping
from typing import Any, Protocol

import torch

from weft.plan.plan import Plan, Port, Task
from weft.runtime.actor import Turn

Act = Callable[[Turn], None]


class Device(Protocol):
    """The interface of an asynchronous device."""

    def stream(self) -> Any: ...
    def own(self) -> Any: ...
    def event(self) -> Any: ...
    def on(self, stream: Any) -> contextlib.AbstractContextManager[Any]: ...


class Cuda:
    def __init__(self, device: torch.device) -> None:
        self.device = device

    def stream(self) -> Any:
        return torch.cuda.Stream(self.device)

    def own(self) -> Any:
        """A thread's current stream, which eager ops use."""
        return torch.cuda.default_stream(self.device)

    def event(self) -> Any:
        return torch.cuda.Event()

    def on(self, stream: Any) -> contextlib.AbstractContextManager[Any]:
        return torch.cuda.stream(stream)


def in_order(plan: Plan, acts: Mapping[int, Act], device: Device, on_host: Container[int] = ()) -> dict[int, Act]:
    """The acts, each on its device stream, after the acts of other streams on which it depends. Registers `on_host`
    need no events: an act has read and written these when it returns."""
    tasks = {t.id: t for t in plan.tasks}
    if len({t.stream for t in plan.tasks}) == 1:
        return dict(acts)
    streams = {s.index: device.own() if s.policy == "caller" else device.stream() for s in plan.streams}
    crossing = {
        r.id: r for r in plan.registers
        if len({tasks[end].stream for end in (r.producer, *r.consumers) if end in tasks}) > 1 and r.id not in on_host
    }  # fmt: skip
    events = {
        (r.id, slot, end): device.event()
        for r in crossing.values() for slot in range(r.copies) for end in (r.producer, *r.consumers) if end in tasks
    }  # fmt: skip
    recorded: set[tuple[int, int, int]] = set()  # events recorded so far: others are skipped

    def ordered(task: Task, act: Act) -> Act:
        mine = streams[task.stream]
        reads = [(i, p) for i, p in enumerate(task.consumes) if p.register in crossing]
        writes = [(i, p) for i, p in enumerate(task.produces) if p.register in crossing]

        def slots(turn: Turn) -> list[tuple[Port, int, tuple[int, ...]]]:
            """The registers' copies of this act, each with the tasks whose events it waits for."""
            found = [(p, turn.consumed[i], (crossing[p.register].producer,)) for i, p in reads]
            return found + [(p, turn.produced[i], crossing[p.register].consumers) for i, p in writes]

        def run(turn: Turn) -> None:
            used = slots(turn)
            for port, slot, ends in used:
                for end in ends:
                    if (port.register, slot, end) in recorded:
                        mine.wait_event(events[port.register, slot, end])
            with device.on(mine):
                act(turn)
            for port, slot, _ in used:
                key = port.register, slot, task.id
                events[key].record(mine)
                recorded.add(key)

        return run if reads or writes or task.stream else act

    return {id: ordered(tasks[id], act) for id, act in acts.items()}
