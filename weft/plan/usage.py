"""The memory of a rank's plan: registers, the chains' arenas, what each act allocates besides, and the outputs.

Kernels without `out` allocate their results; some need scratch memory, too (`scratch.py`).
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import NamedTuple

from weft.core.amount import amount
from weft.ops import OPS
from weft.plan import ids
from weft.plan.calls import Call, Result, Step
from weft.plan.lifetimes import Lifetimes
from weft.plan.plan import Plan, Task
from weft.plan.scratch import meanwhile, with_strides


class Part(NamedTuple):
    """The memory of one task. `allocated` is the peak of an act's allocations, in the call `at`."""

    name: str
    arena: int
    constants: int
    allocated: int
    at: Call | None


class Usage(NamedTuple):
    """A plan's memory in bytes. Tasks of one stream share an arena. `allocated` is the most that tasks allocate that
    may act at once; `outputs` are those of one launch, which the program may let go."""

    variables: int
    places: dict[str, int]  # of registers, by device
    parts: tuple[Part, ...]
    arenas: int
    allocated: int
    outputs: int

    @property
    def registers(self) -> int:
        return sum(self.places.values())

    @property
    def total(self) -> int:
        """All except the variables, which exist without the graph, too."""
        return self.registers + self.arenas + sum(p.constants for p in self.parts) + self.allocated + self.outputs

    def __str__(self) -> str:
        lines = [
            f"{amount(self.total)} beside {amount(self.variables)} of variables",
            *(f"{amount(n):>10}  registers{f' on {at}' * bool(at)}, all copies" for at, n in self.places.items()),
        ]
        if self.outputs:
            lines.append(f"{amount(self.outputs):>10}  outputs of a launch")
        for p in self.parts:
            if not p.arena + p.constants + p.allocated:
                continue
            lines.append(f"{amount(p.arena):>10}  arena of {p.name}")
            if p.constants:
                lines.append(f"{amount(p.constants):>10}  constants of {p.name}")
            if p.allocated and p.at is not None:
                where = f"{p.at.name}, {p.at.at}" if p.at.at else p.at.name
                who = f"{p.name}, or its transport," if p.at.option("allocates", 0) else p.name
                lines.append(f"{amount(p.allocated):>10}  that an act of {who} allocates, most in {p.at.op} ({where})")
        if self.allocated > max((p.allocated for p in self.parts), default=0):
            lines.append(f"{amount(self.allocated):>10}  of these allocations may be held at once")
        return "\n".join(lines)


def usage(plan: Plan) -> Usage:
    variables: dict[str, int] = {}
    parts: list[Part] = []
    arenas: dict[int, int] = {}  # by stream
    allocate: dict[int, dict[int, int]] = {}
    on_cpu = plan.placement is None or plan.placement.type == "cpu"  # what names no device
    for t in plan.tasks:
        if t.step.calls:
            part, stream = _part(t, on_cpu and not t.device), t.id >> ids.BITS["task"]  # of a device
            parts.append(part)
            arenas[stream] = max(arenas.get(stream, 0), part.arena)
            if part.allocated:
                allocate.setdefault(stream, {})[t.id] = part.allocated
            variables |= {r.name: r.bytes for r in _results(t.step) if r.place.kind == "variable"}
    places = {"": 0}
    for r in plan.registers:
        places[r.device] = places.get(r.device, 0) + r.bytes * r.copies * (not r.offsets)
    places[plan.shared_on] += plan.shared
    most = _most_at_once(plan, list(allocate.values()))
    outputs = sum(map(_outputs, plan.tasks))
    return Usage(sum(variables.values()), places, tuple(parts), sum(arenas.values()), most, outputs)


def _most_at_once(plan: Plan, streams: list[dict[int, int]]) -> int:
    """The most bytes of tasks, one of each stream, of which none has to wait for another one."""
    if len(streams) < 2:
        return max((b for each in streams for b in each.values()), default=0)
    lifetimes = Lifetimes(plan)
    apart = functools.cache(lifetimes.apart)
    limits = [max(each.values()) for each in streams]

    def most(at: int, chosen: tuple[int, ...], found: int) -> int:
        """What the streams from `at` on add to the chosen tasks, or less if it isn't more than found."""
        if at == len(streams) or sum(limits[at:]) <= found:
            return 0
        best = most(at + 1, chosen, found)
        for t, bytes in streams[at].items():
            if not any(apart(t, c) for c in chosen):
                best = max(best, bytes + most(at + 1, (*chosen, t), max(found, best) - bytes))
        return best

    return most(0, (), 0)


def _results(step: Step) -> Iterator[Result]:
    return (r for c in step.calls for r in c.results)


def _outputs(task: Task) -> int:
    """The bytes of what a task gives the program."""
    forms = {r.name: r for r in _results(task.step)}
    return sum(forms[name].bytes for c in task.step.calls if c.op == "graph.output" for name in c.operands())


def _part(task: Task, on_cpu: bool) -> Part:
    step = task.step
    forms = {r.name: r for r in _results(step)}
    last: dict[str, int] = {}
    for i, call in enumerate(step.calls):
        for operand in call.operands():
            last[operand] = i
        for r in call.results:
            last.setdefault(r.name, i)
    for r in reversed(list(forms.values())):
        if r.place.kind == "view":
            last[r.place.of] = max(last[r.place.of], last[r.name])
    ending: dict[int, int] = {}
    held = most = constants = 0
    where = None
    for i, call in enumerate(step.calls):
        forms.update(with_strides(call, forms))
        made = sum(r.bytes for r in call.results if r.place.kind == "made")
        if not (call.op in OPS and OPS[call.op].view):
            constants += sum(r.bytes for r in call.results if r.place.kind == "constant")
        inside = meanwhile(call, forms, on_cpu, step.roomy) + call.option("allocates", 0)
        beyond = held + max(made, inside)
        if beyond > most:
            most, where = beyond, call
        held += made
        for r in call.results:
            if r.place.kind == "made":
                ending[last[r.name]] = ending.get(last[r.name], 0) + r.bytes
        held -= ending.pop(i, 0)
    return Part(task.name, step.arena, constants, most, where)
