"""The memory of a rank's plan: registers, the chains' arenas, and what each act allocates besides.

Kernels without `out` allocate their results; some need scratch memory, too (`scratch.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from weft.ops import OPS
from weft.plan import ids
from weft.plan.calls import Call, Result, Step
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
    """A plan's memory in bytes. Tasks of one stream don't act at once, so of their arenas and allocations the maximum
    counts, not the sum."""

    variables: int
    places: dict[str, int]  # of registers, by device
    parts: tuple[Part, ...]
    streams: tuple[int, ...]

    @property
    def registers(self) -> int:
        return sum(self.places.values())

    @property
    def arenas(self) -> int:
        return self._of_streams([p.arena for p in self.parts])

    @property
    def allocated(self) -> int:
        return self._of_streams([p.allocated for p in self.parts])

    def _of_streams(self, each: list[int]) -> int:
        most: dict[int, int] = {}
        for bytes, stream in zip(each, self.streams, strict=True):
            most[stream] = max(most.get(stream, 0), bytes)
        return sum(most.values())

    @property
    def total(self) -> int:
        """All except the variables, which exist without the graph, too."""
        return self.registers + self.arenas + sum(p.constants for p in self.parts) + self.allocated

    def __str__(self) -> str:
        lines = [
            f"{show(self.total)} beside {show(self.variables)} of variables",
            *(f"{show(n):>10}  registers{f' on {at}' * bool(at)}, all copies" for at, n in self.places.items()),
        ]
        for p in self.parts:
            if not p.arena + p.constants + p.allocated:
                continue
            lines.append(f"{show(p.arena):>10}  arena of {p.name}")
            if p.constants:
                lines.append(f"{show(p.constants):>10}  constants of {p.name}")
            if p.allocated and p.at is not None:
                where = f"{p.at.name}, {p.at.at}" if p.at.at else p.at.name
                lines.append(f"{show(p.allocated):>10}  that an act of {p.name} allocates, most in {p.at.op} ({where})")
        return "\n".join(lines)


def show(n: int) -> str:
    for unit, size in (("GB", 10**9), ("MB", 10**6), ("KB", 10**3)):
        if n >= size:
            return f"{n / size:.1f} {unit}"
    return f"{n} B"


def usage(plan: Plan) -> Usage:
    variables: dict[str, int] = {}
    parts, streams = [], []
    for t in plan.tasks:
        if t.step.calls:
            parts.append(_part(t, not t.device))
            streams.append(t.id >> ids.BITS["task"])  # of a device
            variables |= {r.name: r.bytes for r in _results(t.step) if r.place.kind == "variable"}
    places = {"": 0}
    for r in plan.registers:
        places[r.device] = places.get(r.device, 0) + r.bytes * r.copies * (not r.offsets)
    places[plan.shared_on] += plan.shared
    return Usage(sum(variables.values()), places, tuple(parts), tuple(streams))


def _results(step: Step) -> Iterator[Result]:
    return (r for c in step.calls for r in c.results)


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
        inside = meanwhile(call, forms, run=on_cpu) + call.option("allocates", 0)
        beyond = held + max(made, inside)
        if beyond > most:
            most, where = beyond, call
        held += made
        for r in call.results:
            if r.place.kind == "made":
                ending[last[r.name]] = ending.get(last[r.name], 0) + r.bytes
        held -= ending.pop(i, 0)
    return Part(task.name, step.arena, constants, most, where)
