"""Which registers of a plan are never needed at the same time, in whatever order its tasks act: they may share memory.

A copy of a register holds an item from the act that writes it to the last that reads it. One item is over before
another begins if tokens say so. A path of data and of credits without a token leads from each reader of the first to
the writer of the second within a launch, and one with at most one token leads back: the first isn't written for the
next launch before the second has been read. And an all-reduce may overwrite what it alone reads.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import gcd, lcm
from typing import Any, Final, NamedTuple

import numpy as np
import rustworkx
from msgspec.structs import replace

from weft.core.errors import CompileError
from weft.plan.plan import Plan, Port, Register, Task

ALIGN: Final = 64
MOST_ACTS: Final = 5000  # that are looked at
NEVER: Final = np.iinfo(np.int32).max


class Held(NamedTuple):
    """What one copy of a register holds in a launch: of each item the lane and the place of the act that begins it, and
    the first places of each lane after all its readers, in this launch and in the next."""

    lanes: Any
    begins: Any
    over: Any
    again: Any


class Lifetimes:
    """The order of the acts of a launch that holds in every run; a plan that stands still has none.

    Acts of which each leads to the next form a lane. So an act leads to all of a lane from some place on, and that is
    what is kept of it: for this launch, and for the next.
    """

    def __init__(self, plan: Plan) -> None:
        self._tasks = _in_a_row(plan)
        self._first: dict[int, int] = {}
        count = 0
        for t in self._tasks.values():
            self._first[t.id], count = count, count + t.acts
        graph: rustworkx.PyDiGraph[int, None] = rustworkx.PyDiGraph()
        graph.add_nodes_from(range(count))
        later: list[list[int]] = [[] for _ in range(count)]  # over one token
        for before, after, tokens in self._edges(plan):
            if tokens == 0:
                graph.add_edge(before, after, None)
            elif tokens == 1:
                later[before].append(after)
        order = rustworkx.topological_sort(graph) if rustworkx.is_directed_acyclic_graph(graph) else []
        self._overwritten = dict(_overwritten(plan))
        self._follow(graph, list(order), later)

    def _edges(self, plan: Plan) -> Iterator[tuple[int, int, int]]:
        """Pairs of acts of which the first is over when the second begins, so many launches later."""
        for t in self._tasks.values():
            for k in range(t.acts):
                yield self._act(t.id, k), self._act(t.id, (k + 1) % t.acts), (k + 1) // t.acts
        for r in plan.registers:
            for consumer in r.consumers:
                if r.producer in self._tasks and consumer in self._tasks:
                    writes, reads = _port(self._tasks[r.producer], r), _port(self._tasks[consumer], r)
                    n = writes.items(self._tasks[r.producer].acts)
                    for i in range(n):
                        data, credit = i + r.full, i + r.copies - r.full
                        a, b = self._act(r.producer, writes.last(i)), self._act(consumer, reads.first(data % n))
                        yield a, b, data // n
                        a, b = self._act(consumer, reads.last(i)), self._act(r.producer, writes.first(credit % n))
                        yield a, b, credit // n

    def _act(self, task: int, number: int) -> int:
        return self._first[task] + number

    def _follow(self, graph: Any, order: list[int], later: Sequence[Sequence[int]]) -> None:
        ends: list[int] = []  # the last act of each lane
        self._lane, self._place = np.zeros(len(later), int), np.zeros(len(later), int)
        for i in order:
            before = {*graph.predecessor_indices(i)}
            lane = next((n for n, end in enumerate(ends) if end in before), len(ends))
            if lane == len(ends):
                ends.append(i)
            else:
                self._place[i] = self._place[ends[lane]] + 1
            self._lane[i], ends[lane] = lane, i
        within = np.full((len(later), max(1, len(ends))), NEVER, np.int32)
        for i in reversed(order):
            for j in graph.successor_indices(i):
                self._lead(within[i], within[j], j)
        beyond = within.copy()
        for i in reversed(order):
            for j in later[i]:
                self._lead(beyond[i], within[j], j)
            for j in graph.successor_indices(i):
                np.minimum(beyond[i], beyond[j], out=beyond[i])
        self._within, self._beyond = within, beyond

    def _lead(self, mine: Any, its: Any, act: int) -> None:
        """Note that an act leads to another one, and to what follows that."""
        np.minimum(mine, its, out=mine)
        mine[self._lane[act]] = min(mine[self._lane[act]], self._place[act])

    def shareable(self, r: Register) -> bool:
        """Whether a register holds data of this rank, and the launches that are looked at use its copies alike."""
        ends = (r.producer, *r.consumers)
        if r.full or not r.bytes or any(e not in self._tasks for e in ends):
            return False
        return self._items(r) % r.copies == 0

    def _items(self, r: Register) -> int:
        task = self._tasks[r.producer]
        return _port(task, r).items(task.acts)

    def held(self, r: Register, copy: int, over: Register | None = None) -> Held:
        """What a copy of a shareable register holds; or it and the copy of another one that it overwrites."""
        items, first = range(copy, self._items(r), r.copies), over or r
        begun = [self._act(first.producer, _port(self._tasks[first.producer], first).first(i)) for i in items]
        last = r.consumers or (r.producer,)
        ended = [[self._act(end, _port(self._tasks[end], r).last(i)) for end in last] for i in items]
        tables = [np.stack([table[acts].max(0) for acts in ended]) for table in (self._within, self._beyond)]
        return Held(self._lane[begun], self._place[begun], *tables)

    def in_place(self, a: Register, b: Register) -> bool:
        """Whether b, at the same places, may overwrite a."""
        if self._overwritten.get(b.id) != a.id or not (a.copies == b.copies and self.shareable(a)):
            return False
        both = (self.held(b, n, a) for n in range(a.copies))
        return all((_apart(h, h) | np.eye(len(h.lanes), dtype=bool) & _in_next(h, h)).all() for h in both)

    def apart(self, a: int, b: int) -> bool:
        """Whether of these tasks neither acts while the other one does."""
        one, other = (slice(self._first[t], self._first[t] + self._tasks[t].acts) for t in (a, b))
        acts = (Held(self._lane[at], self._place[at], self._within[at], self._beyond[at]) for at in (one, other))
        return bool(_apart(*acts).all())

    def overwritten(self, b: Register) -> int:
        """The register that b may overwrite, if any, by what its writer does."""
        return self._overwritten.get(b.id, -1)


def _in_a_row(plan: Plan) -> dict[int, Task]:
    """The tasks as if so many launches were one that each copy of a register has the same use in every one, if that
    isn't too many."""
    tasks, count = {t.id: t for t in plan.tasks}, 1
    acts = sum(t.acts for t in plan.tasks)
    for r in plan.registers:
        if r.bytes and not r.full and r.producer in tasks and (n := tasks[r.producer].acts) > 1:
            more = lcm(count, r.copies // gcd(_port(tasks[r.producer], r).items(n), r.copies))
            count = more if more * acts <= MOST_ACTS else count
    return {t.id: _repeated(t, count) for t in plan.tasks}


def _repeated(t: Task, count: int) -> Task:
    def ports(given: Sequence[Port]) -> tuple[Port, ...]:
        return tuple(replace(p, at=tuple(n * t.acts + act for n in range(count) for act in p.at)) for p in given)

    return replace(t, acts=t.acts * count, consumes=ports(t.consumes), produces=ports(t.produces))


def _port(t: Task, r: Register) -> Port:
    return next(p for p in (t.produces if t.id == r.producer else t.consumes) if p.register == r.id)


def together(held: Sequence[Held]) -> Held:
    """The items of several copies, in a row."""
    return Held(*map(np.concatenate, zip(*held, strict=True)))


def clashes(one: Held, others: Held) -> Any:
    """For each item of others, whether it may be needed while one of the first is."""
    return ~_apart(one, others).all(0)


def _apart(a: Held, b: Held) -> Any:
    first, then = a.over[:, b.lanes] <= b.begins, (b.over[:, a.lanes] <= a.begins).T
    return (first | then) & _in_next(a, b) & _in_next(b, a).T


def _in_next(a: Held, b: Held) -> Any:
    """Whether each item of a is over when each one of b begins in the next launch."""
    return a.again[:, b.lanes] <= b.begins


def _overwritten(plan: Plan) -> Iterator[tuple[int, int]]:
    """Pairs of registers: a task all-reduces into the first what lies at the same offsets of the second, which it alone
    reads."""
    alone = {r.id for r in plan.registers if len(r.consumers) == 1}
    for t in plan.tasks:
        calls = [c for c in t.step.calls if c.op != "read"] if t.kind == "collective" else []
        reads = {r.name: r.place for c in t.step.calls if c.op == "read" for r in c.results}
        pairs = [(reads.get(v), r.place) for c in calls for v, r in zip(c.operands(), c.results, strict=False)]
        if all(c.op == "box.all_reduce" for c in calls) and all(a and a.offset == b.offset for a, b in pairs):
            given, made = {a.register for a, _ in pairs if a}, {b.register for _, b in pairs}
            if len(given) == len(made) == 1 and given <= alone and all(b.kind == "register" for _, b in pairs):
                yield made.pop(), given.pop()


def verify(plan: Plan) -> None:
    """Raise CompileError if registers share memory that they may need at the same time."""
    placed = sorted((at, r.id, n, r) for r in plan.registers for n, at in enumerate(r.offsets))
    lifetimes = Lifetimes(plan) if placed else None
    held: list[Held] = []
    for i, (at, _, n, b) in enumerate(placed):
        assert lifetimes is not None
        _check_place(plan, lifetimes, b, at)
        held.append(lifetimes.held(b, n))
        for (begin, _, m, a), other in zip(placed[:i], held, strict=False):
            if begin + a.bytes <= at or not clashes(held[i], other).any():
                continue
            if not (begin == at and m == n and (lifetimes.in_place(a, b) or lifetimes.in_place(b, a))):
                raise CompileError(
                    f"registers {a.name} and {b.name} share memory, and nothing keeps one from being written while the "
                    "other is needed; place them apart, or let every reader of one lead to the writer of the other"
                )


def _check_place(plan: Plan, lifetimes: Lifetimes, r: Register, at: int) -> None:
    if at % ALIGN:
        raise CompileError(f"register {r.name} begins at {at} of shared memory, no multiple of {ALIGN}")
    if r.device != plan.shared_on:
        raise CompileError(
            f"register {r.name} shares memory on {plan.shared_on or 'cpu:0'}, and lies on another device"
        )
    if len(r.offsets) != r.copies or not lifetimes.shareable(r):
        raise CompileError(
            f"register {r.name} lies in shared memory, where only data of this rank can be, with a place for each copy "
            "and as many uses of each in every launch"
        )
