"""A plan's streams on an asynchronous device: each of the plan's streams has a device stream for its tasks' kernels.

A readable register means that the writer's kernels were launched, not that they have finished. So the writer records an
event on its stream, and the reader's stream waits for it; likewise before the copy is written again. No host waits.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Container, Iterator, Mapping
from types import MappingProxyType
from typing import Any

from weft.plan.plan import Plan, Port, Task
from weft.runtime.actor import Turn
from weft.transport.staged import Device, Staged

Act = Callable[[Turn], None]


class Streams:
    """The device streams of a plan's streams. The callers' is the `own` one: a thread's, unless the program chooses
    another."""

    def __init__(self, plan: Plan, device: Device) -> None:
        self.device, self.own = device, device.own()
        self.of = {s.index: self.own if s.policy == "caller" else device.stream() for s in plan.streams}

    @contextlib.contextmanager
    def between(self) -> Iterator[None]:
        """On the own stream, after what this thread has asked of its current one, and before what it will."""
        current = self.device.current()
        before, after = self.device.event(), self.device.event()
        before.record(current)
        self.own.wait_event(before)
        with self.device.on(self.own):
            yield
        after.record(self.own)
        current.wait_event(after)

    def fork(self) -> None:
        """Let all wait for what was asked of the own one: memory is taken from what that one has used."""
        self._each(lambda event, other: (event.record(self.own), other.wait_event(event)))

    def join(self) -> None:
        """Let the own one wait for all: it may be given their memory."""
        self._each(lambda event, other: (event.record(other), self.own.wait_event(event)))

    def _each(self, order: Callable[[Any, Any], object]) -> None:
        for other in self.of.values():
            if other is not self.own:
                order(self.device.event(), other)


def in_order(
    plan: Plan, acts: Mapping[int, Act], streams: Streams, on_host: Container[int] = (),
    staged: Mapping[int, Staged] = MappingProxyType({}),
) -> dict[int, Act]:  # fmt: skip
    """The acts, each on its device stream, whatever the current one of the thread that runs it, and after the acts of
    other streams on which it depends. Registers `on_host` need no events: an act has read and written these when it
    returns."""
    tasks = {t.id: t for t in plan.tasks}
    device = streams.device
    crossing = {
        r.id: r for r in plan.registers
        if len({tasks[end].stream for end in (r.producer, *r.consumers) if end in tasks}) > 1 and r.id not in on_host
    }  # fmt: skip
    events = {
        (r.id, slot, end): device.event()
        for r in crossing.values() for slot in range(r.copies) for end in (r.producer, *r.consumers) if end in tasks
    }  # fmt: skip
    recorded: set[tuple[int, int, int]] = set()  # events recorded so far: others are skipped
    for r in plan.registers:
        if r.id in staged:
            here = {tasks[end].stream for end in (r.producer, *r.consumers) if end in tasks}
            staged[r.id].streams = [streams.of[i] for i in here]

    def ordered(task: Task, act: Act) -> Act:
        mine = streams.of[task.stream]
        arriving = [(i, staged[p.register]) for i, p in enumerate(task.consumes) if p.register in staged]
        reads = [(i, p) for i, p in enumerate(task.consumes) if p.register in crossing]
        writes = [(i, p) for i, p in enumerate(task.produces) if p.register in crossing]

        def slots(turn: Turn) -> list[tuple[Port, int, tuple[int, ...]]]:
            """The registers' copies of this act, each with the tasks whose events it waits for."""
            found = [(p, turn.consumed[i], (crossing[p.register].producer,)) for i, p in reads]
            return found + [(p, turn.produced[i], crossing[p.register].consumers) for i, p in writes]

        def run(turn: Turn) -> None:
            used = slots(turn)
            for i, channel in arriving:
                mine.wait_event(channel.ready[turn.consumed[i]])
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

        return run

    return {id: ordered(tasks[id], act) for id, act in acts.items()}
