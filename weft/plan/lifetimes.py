"""Which registers of a plan are never needed at the same time, in whatever order its tasks act: they may share memory.

One is over before another begins if tokens say so. A path of data and of credits without a token leads from each reader
of the first to the writer of the second within a launch, and one with at most one token leads back: the first isn't
written for the next launch before the second has been read. And an all-reduce may overwrite what it alone reads.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import rustworkx

from weft.core.errors import CompileError
from weft.plan.plan import Plan, Register

ALIGN: Final = 64


class Lifetimes:
    """Tasks that act more than once a launch are left out, and what they would order with them; a plan that stands
    still orders nothing."""

    def __init__(self, plan: Plan) -> None:
        self._tasks = {t.id: i for i, t in enumerate(t for t in plan.tasks if t.acts == 1)}
        graph: rustworkx.PyDiGraph[int, None] = rustworkx.PyDiGraph()
        graph.add_nodes_from(range(len(self._tasks)))
        later: list[list[int]] = [[] for _ in self._tasks]  # over one token
        for before, after, tokens in self._edges(plan):
            if tokens == 0:
                graph.add_edge(before, after, None)
            elif tokens == 1:
                later[before].append(after)
        order = rustworkx.topological_sort(graph)[::-1] if rustworkx.is_directed_acyclic_graph(graph) else []
        self.over = dict(_overwritten(plan))
        self._within = [0] * len(self._tasks)  # the tasks that follow each, as bits: in this launch,
        self._beyond = [*self._within]
        for i in order:
            for j in graph.successor_indices(i):
                self._within[i] |= self._within[j] | 1 << j
        for i in order:  # and in the next
            self._beyond[i] = self._within[i]
            for j in later[i]:
                self._beyond[i] |= self._within[j] | 1 << j
            for j in graph.successor_indices(i):
                self._beyond[i] |= self._beyond[j]

    def _edges(self, plan: Plan) -> Iterator[tuple[int, int, int]]:
        for r in plan.registers:
            for consumer in r.consumers:
                if r.producer in self._tasks and consumer in self._tasks:
                    a, b = self._tasks[r.producer], self._tasks[consumer]
                    yield a, b, r.full
                    yield b, a, r.copies - r.full

    def shareable(self, r: Register) -> bool:
        """Whether a register has one copy, of data of this rank, written and read once a launch."""
        ends = (r.producer, *r.consumers)
        return r.copies == 1 and not r.full and bool(r.bytes) and all(e in self._tasks for e in ends)

    def apart(self, a: Register, b: Register) -> bool:
        """Whether two registers that are shareable are never needed at the same time."""
        return self._precedes(a, b) or self._precedes(b, a)

    def in_place(self, a: Register, b: Register) -> bool:
        """Whether b, at the same place, may overwrite a."""
        again = self._tasks[a.producer]
        return self.over.get(b.id) == a.id and all(self._beyond[self._tasks[c]] >> again & 1 for c in b.consumers)

    def _precedes(self, a: Register, b: Register) -> bool:
        last, first = ([self._tasks[c] for c in r.consumers] or [self._tasks[r.producer]] for r in (a, b))
        begins, again = self._tasks[b.producer], self._tasks[a.producer]
        return all(self._within[i] >> begins & 1 for i in last) and all(self._beyond[i] >> again & 1 for i in first)


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
    placed = sorted((r for r in plan.registers if r.offset is not None), key=_offset)
    lifetimes = Lifetimes(plan) if placed else None
    for i, b in enumerate(placed):
        assert lifetimes is not None
        if _offset(b) % ALIGN:
            raise CompileError(f"register {b.name} begins at {b.offset} of shared memory, no multiple of {ALIGN}")
        if b.device != plan.shared_on:
            raise CompileError(
                f"register {b.name} shares memory on {plan.shared_on or 'cpu:0'}, and lies on another device"
            )
        if not lifetimes.shareable(b):
            raise CompileError(
                f"register {b.name} lies in shared memory, where only one copy of data of this rank can be that is "
                "written and read once a launch"
            )
        for a in placed[:i]:
            same = _offset(a) == _offset(b) and (lifetimes.in_place(a, b) or lifetimes.in_place(b, a))
            if _offset(a) + a.bytes > _offset(b) and not (same or lifetimes.apart(a, b)):
                raise CompileError(
                    f"registers {a.name} and {b.name} share memory, and nothing keeps one from being written while the "
                    "other is needed; place them apart, or let every reader of one lead to the writer of the other"
                )


def _offset(r: Register) -> int:
    return r.offset or 0
