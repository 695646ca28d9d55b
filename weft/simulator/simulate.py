"""Simulate the plans of all ranks with a virtual clock: what overlaps, what waits, and what another copy would gain.

The article's example: three actors in a line, each on its own stream, two copies per register, an act takes one unit.

>>> from weft.plan.net import line
>>> print(simulate(line("a", "b", "c", copies=2, apart=True).plans(), launches=3).gantt())
time  0 1 2 3 4
a     0 1 2 . .
b     . 0 1 2 .
c     . . 0 1 2
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from weft.core.errors import GraphError
from weft.plan.plan import Plan, Task
from weft.runtime.actor import Actor
from weft.runtime.message import FOREVER, LAUNCH, NONE, Message


class Timed(NamedTuple):
    """One act with its times, and the copies that it read and wrote, in the order of the task's ports."""

    rank: int
    task: str
    act: int
    start: float
    end: float
    consumed: tuple[int, ...]
    produced: tuple[int, ...]


class Timeline:
    """All acts, in the order in which they began."""

    def __init__(self, acts: list[Timed], tasks: list[Task], launches: int) -> None:
        self.acts, self.tasks, self.launches = acts, tasks, launches

    @property
    def span(self) -> float:
        """The end of the last act."""
        return max((a.end for a in self.acts), default=0.0)

    def of(self, task: str) -> list[Timed]:
        return [a for a in self.acts if a.task == task]

    def busy(self, task: str) -> float:
        return sum(a.end - a.start for a in self.of(task))

    def period(self, task: str, skip: int = 0) -> float:
        """Time per act of a task in the steady state, without its first `skip` acts."""
        ends = [a.end for a in self.of(task)][skip:]
        if len(ends) < 2:
            raise GraphError(f"{task} acted {len(ends)} times after the first {skip}; a period needs at least 2")
        return (ends[-1] - ends[0]) / (len(ends) - 1)

    def gantt(self, unit: float | None = None) -> str:
        """A Gantt chart as text: a row per actor, a column per unit of time, with the number of the act, or a dot."""
        if not self.acts:
            return "nothing happened"
        unit = unit or min((a.end - a.start for a in self.acts if a.end > a.start), default=1.0)
        rows = [(t.name, [(a.start, a.end, str(a.act)) for a in self.of(t.name)]) for t in self.tasks]
        return chart(rows, unit, max(1, round(self.span / unit)), gap=2)


def chart(rows: Sequence[tuple[str, list[tuple[float, float, str]]]], unit: float, columns: int, gap: int = 1) -> str:
    """Named rows of (start, end, label) as text: a column per unit of time, and a dot where nothing happens."""
    wide = max([len(str(columns - 1)), *(len(label) for _, parts in rows for _, _, label in parts)])
    left = max([len("time"), *(len(name) for name, _ in rows)]) + gap - 1
    table: list[tuple[str, Iterable[object]]] = [("time", range(columns))]
    for name, parts in rows:
        cells = ["."] * columns
        for start, end, label in parts:
            first = round(start / unit)
            for i in range(first, min(max(round(end / unit), first + 1), columns)):
                cells[i] = label
        table.append((name, cells))
    return "\n".join(name.ljust(left) + "".join(f" {c!s:>{wide}}" for c in cells) for name, cells in table)


class _Stream:
    """A stream, on which one actor acts at a time."""

    __slots__ = ("ready", "busy")

    def __init__(self) -> None:
        self.ready: deque[Actor] = deque()
        self.busy = False


def simulate(
    plans: Plan | Iterable[Plan],
    durations: Mapping[str, float] | Callable[[Task, int], float] = {},  # noqa: B006
    *,
    launches: int = 1,
    latency: float | Callable[[Message], float] = 0.0,
) -> Timeline:
    """Simulate so many launches at time 0. Acts take `durations` by task name (or as a function of task and act), 1.0
    by default; messages take `latency`. Ends when the launches are over."""
    given = (plans,) if isinstance(plans, Plan) else tuple(plans)
    registers = {r.id: r for p in given for r in p.registers}
    tasks = [t for p in given for t in p.tasks]
    actors = {t.id: Actor(t, registers) for t in tasks}
    streams = {(t.rank, t.stream): _Stream() for t in tasks}
    events: list[tuple[float, int, Actor | Message]] = []  # an actor whose act ends, or a message that arrives
    acts: list[Timed] = []
    left = {t.id: launches * t.acts for t in tasks if not t.ahead}
    now, order = 0.0, 0

    def at(time: float, what: Actor | Message) -> None:
        nonlocal order
        order += 1
        heapq.heappush(events, (time, order, what))

    def say(messages: Iterable[Message]) -> None:
        for m in messages:
            at(now + (latency(m) if callable(latency) else latency), m)

    def consider(actor: Actor) -> None:
        ready = streams[actor.task.rank, actor.task.stream].ready
        if not actor.blocked and actor not in ready:
            ready.append(actor)

    def start(actor: Actor) -> None:
        t = actor.task
        turn = actor.begin()
        takes = durations(t, turn.act) if callable(durations) else durations.get(t.name, 1.0)
        acts.append(Timed(t.rank, t.name, turn.act, now, now + takes, turn.consumed, turn.produced))
        at(now + takes, actor)

    for t in tasks:
        if not t.consumes:
            say([Message(LAUNCH, t.id, NONE, FOREVER if t.ahead else launches * t.acts)])
        else:
            consider(actors[t.id])  # all its inputs may be full from the start
    while any(left.values()):
        if not events:
            waiting = [f"{a.task.name} for {r.name}" for a in actors.values() for r, _ in a.waits_for()]
            raise GraphError(f"the run stands still at {now:g}: {', '.join(waiting)}; verify(plans) shows the cycle")
        now = events[0][0]
        while events and events[0][0] == now:
            what = heapq.heappop(events)[2]
            if isinstance(what, Actor):
                say(what.finish())
                streams[what.task.rank, what.task.stream].busy = False
                if what.id in left:
                    left[what.id] -= 1
                consider(what)
            else:
                say(actors[what.to].on_message(what))
                consider(actors[what.to])
        for stream in streams.values():
            if stream.ready and not stream.busy:
                stream.busy = True
                start(stream.ready.popleft())
    return Timeline([a for a in acts if a.end <= now], tasks, launches)  # one that ran ahead may be in the middle
