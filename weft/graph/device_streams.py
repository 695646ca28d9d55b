"""A plan's streams on a device that computes by itself: each task's kernels go on a stream of its own stream's.

That a register's copy is readable tells a host that its writer was called, and the device has yet to do what it was
told. So the writer leaves a mark on its stream, an event, and the reader's stream waits for it; the same on the way
back, before the copy is written again. No host waits.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import torch

from weft.plan.plan import Plan, Port, Task
from weft.runtime.actor import Turn

Act = Callable[[Turn], None]


class Device(Protocol):
    """What is needed of one."""

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
        """That of a thread which was told of no other: eager ops use it."""
        return torch.cuda.default_stream(self.device)

    def event(self) -> Any:
        return torch.cuda.Event()

    def on(self, stream: Any) -> contextlib.AbstractContextManager[Any]:
        return torch.cuda.stream(stream)


def in_order(plan: Plan, acts: Mapping[int, Act], device: Device) -> dict[int, Act]:
    """The acts, each on its stream of the device, and after those of other streams that it needs."""
    tasks = {t.id: t for t in plan.tasks}
    if len({t.stream for t in plan.tasks}) == 1:
        return dict(acts)
    streams = {s.index: device.own() if s.policy == "caller" else device.stream() for s in plan.streams}
    crossing = {
        r.id: r for r in plan.registers
        if len({tasks[end].stream for end in (r.producer, *r.consumers) if end in tasks}) > 1
    }  # fmt: skip
    marks = {
        (r.id, slot, end): device.event()
        for r in crossing.values() for slot in range(r.copies) for end in (r.producer, *r.consumers) if end in tasks
    }  # fmt: skip
    made: set[tuple[int, int, int]] = set()  # an event that was never recorded holds nobody up, but may mean nothing

    def ordered(task: Task, act: Act) -> Act:
        mine = streams[task.stream]
        reads = [(i, p) for i, p in enumerate(task.consumes) if p.register in crossing]
        writes = [(i, p) for i, p in enumerate(task.produces) if p.register in crossing]

        def slots(turn: Turn) -> list[tuple[Port, int, tuple[int, ...]]]:
            """Registers' copies of this act, with those whose marks it waits for."""
            found = [(p, turn.consumed[i], (crossing[p.register].producer,)) for i, p in reads]
            return found + [(p, turn.produced[i], crossing[p.register].consumers) for i, p in writes]

        def run(turn: Turn) -> None:
            used = slots(turn)
            for port, slot, ends in used:
                for end in ends:
                    if (port.register, slot, end) in made:
                        mine.wait_event(marks[port.register, slot, end])
            with device.on(mine):
                act(turn)
            for port, slot, _ in used:
                key = port.register, slot, task.id
                marks[key].record(mine)
                made.add(key)

        return run if reads or writes or task.stream else act

    return {id: ordered(tasks[id], act) for id, act in acts.items()}
