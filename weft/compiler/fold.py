"""The plans of all ranks, folded: each chain becomes one task, on however many ranks it runs, and the registers between
two chains become one.

Folding keeps the dependencies between acts: if the folded plans can run to the end, all ranks together can. Ranks with
equal parts fold to the same plan, so one of each kind is enough, and the cost doesn't grow with the number of ranks.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec.structs import replace

from weft.core.errors import CompileError
from weft.plan.ids import decode
from weft.plan.plan import Plan, Port, Register, Step, Stream, Task

PAIR = re.compile(r"\.\d+-\d+(?=\.|$)")  # of ranks, in the name of a register between them


def bare(plan: Plan) -> Plan:
    """Without what its tasks compute."""
    return replace(plan, tasks=tuple(replace(t, step=Step()) for t in plan.tasks))


def fold(plans: Sequence[Plan]) -> tuple[Plan, ...]:
    """One plan per lane, a set of ranks connected by common chains."""
    return _Fold(plans).lanes()


class _Fold:
    """`came` maps each folded task and register to the rank that it first came from."""

    def __init__(self, plans: Sequence[Plan]) -> None:
        self.plans = plans
        self.lane = _lanes(plans)
        self.count = max(self.lane) + 1
        self.home = {_chain(t.id): n for plan, n in self.each() for t in plan.tasks if t.kind == "compute"}
        self.numbers: dict[tuple[object, ...], int] = {}
        self.first: dict[tuple[object, ...], int] = {}
        self.tasks: dict[int, Task] = {}
        self.registers: dict[int, Register] = {}
        self.streams: dict[tuple[int, int], Stream] = {}
        self.came: dict[int | str, int] = {}
        for plan, n in self.each():
            self._take_in(plan, n)

    def each(self) -> zip[tuple[Plan, int]]:
        return zip(self.plans, self.lane, strict=True)

    def lanes(self) -> tuple[Plan, ...]:
        found = []
        for n in range(self.count):
            tasks = tuple(t for t in self.tasks.values() if t.rank == n)
            used = {p.register for t in tasks for p in (*t.consumes, *t.produces)}
            registers = tuple(r for i, r in sorted(self.registers.items()) if i in used)
            streams = tuple(s for (lane, _), s in self.streams.items() if lane == n)
            found.append(Plan(self.plans[0].name, n, self.count, streams, tasks, registers, self.plans[0].hash))
        return tuple(found)

    def _take_in(self, plan: Plan, n: int) -> None:
        def place(id: int) -> int:
            """The folded id of a task; a chain that no given plan has is outside of all lanes."""
            own = n if decode(id).rank == plan.rank else self.count
            return decode(id)._replace(rank=self.home.get(_chain(id), own)).encode()

        number, acts = {}, dict[int, tuple[object, ...]]()
        for t in plan.tasks:
            for p, way in [*((p, "to") for p in t.produces if p.at), *((p, "from") for p in t.consumes if p.at)]:
                acts[p.register] = (*acts.get(p.register, ()), way, p.at)
        for r in plan.registers:
            producer = place(r.producer)
            name = PAIR.sub("", r.name)
            # ids differ: registers with several readers are numbered by each rank for itself. So do the acts that use a
            # register: a rank that has other chains as well passes the turn on at other ones
            same = name, decode(producer).rank
            number[r.id] = self.numbers.setdefault((*same, *acts.get(r.id, ())), len(self.numbers))
            name += f".{number[r.id]}" * (self.first.setdefault(same, number[r.id]) != number[r.id])
            consumers = tuple(dict.fromkeys(map(place, r.consumers)))
            new = Register(number[r.id], name, producer, consumers, r.copies, full=r.full)
            self._register(new, plan.rank)
        for t in plan.tasks:
            reads = _once([replace(p, register=number[p.register]) for p in t.consumes])
            writes = _once([replace(p, register=number[p.register]) for p in t.produces])
            new = replace(t, id=place(t.id), consumes=reads, produces=writes, step=Step())
            self._task(new, plan.rank)
        for s in plan.streams:
            if (known := self.streams.setdefault((n, s.index), s)) != s:
                raise CompileError(
                    f"stream {s.index} is {s.name}, {s.policy}, on rank {plan.rank}, and {known.name}, {known.policy}, "
                    "on another: what ranks send on a stream goes over a line of its name"
                )

    def _register(self, r: Register, rank: int) -> None:
        known = self.registers.setdefault(r.id, r)
        came = self.came.setdefault(~r.id, rank)
        ends = (r.producer, *r.consumers)
        if all(_chain(e) in self.home for e in ends) and (known.copies, known.full) != (r.copies, r.full):
            raise CompileError(
                f"register {r.name} has {known.copies} copies, {known.full} of them full, on rank {came}, and "
                f"{r.copies}, {r.full} of them full, on rank {rank}: ranks must have compiled the same graph with the "
                "same options"
            )
        consumers = tuple(dict.fromkeys((*known.consumers, *r.consumers)))
        self.registers[r.id] = replace(known, consumers=consumers, copies=min(known.copies, r.copies))

    def _task(self, t: Task, rank: int) -> None:
        known = self.tasks.setdefault(t.id, t)
        came = self.came.setdefault(t.id, rank)
        consumes, produces = _once((*known.consumes, *t.consumes)), _once((*known.produces, *t.produces))
        both = replace(known, consumes=consumes, produces=produces)
        if replace(t, consumes=consumes, produces=produces) != both or any(
            p not in ports for ports, mine in ((consumes, t.consumes), (produces, t.produces)) for p in mine
        ):
            raise CompileError(
                f"task {t.name} is another on rank {came} than on rank {rank}: {_shown(known)}; {_shown(t)}. Ranks "
                "must have compiled the same graph with the same options"
            )
        self.tasks[t.id] = both


def _chain(id: int) -> int:
    """The part of a task id that is the same on all ranks: its chain."""
    return decode(id)._replace(rank=0).encode()


def _once(ports: Sequence[Port]) -> tuple[Port, ...]:
    """The first port of each register."""
    return tuple({p.register: p for p in reversed(ports)}.values())[::-1]


def _shown(t: Task) -> str:
    """What can differ between two ranks' tasks, as text."""
    head, *ports = str(Plan("", tasks=(t,))).splitlines()[3:]
    return ", ".join(map(str.strip, (head, *ports)))


def _lanes(plans: Sequence[Plan]) -> list[int]:
    """The lane of each plan, numbered in order of appearance."""
    lanes = list(range(len(plans)))
    first: dict[int, int] = {}
    for i, plan in enumerate(plans):
        for t in plan.tasks:
            if t.kind == "compute" and lanes[other := first.setdefault(_chain(t.id), i)] != lanes[i]:
                lanes = [lanes[other] if lane == lanes[i] else lane for lane in lanes]
    number = {lane: n for n, lane in enumerate(dict.fromkeys(lanes))}
    return [number[lane] for lane in lanes]
