"""Prove that a plan can run: every register is written once, rates agree, and every cycle holds a token.

Tasks and registers are a marked graph (a Petri net). Between acts of a launch there are two kinds of precedence: data
(an act reads what another act wrote) and credit (an act writes into a copy that another act has freed). Registers' full
copies and free copies are the tokens: a precedence that they satisfy reaches into an earlier launch. The rest, within
one launch, must have no cycle, else there is a deadlock in any order. With periods above one this unrolled form is
exact, unlike counting the tokens of cycles of tasks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Iterator
from itertools import pairwise
from typing import Final, NamedTuple

import rustworkx

from weft.core.errors import CompileError
from weft.ops import OPS
from weft.plan import calls, fused, lifetimes, moved
from weft.plan.calls import Call, Result
from weft.plan.ids import decode
from weft.plan.plan import Plan, Port, Register, Stream, Task

MOST_COPIES: Final = 1 << 16
ENDS: Final = {"graph.input": "source", "graph.number": "source", "graph.output": "sink"}


class Act(NamedTuple):
    """An act of a task, by its number within a launch."""

    task: int
    number: int


class Precedence(NamedTuple):
    """`after` can't begin before `before` has finished."""

    before: Act
    after: Act
    register: Register | None  # None: between acts of one task
    credit: bool


def verify(plans: Plan | Iterable[Plan]) -> None:
    """Raise CompileError unless the plan, or the plans of all ranks together, can run to the end."""
    given = (plans,) if isinstance(plans, Plan) else tuple(plans)
    for plan in given:
        _check_names(plan)
        bytes_of = {r.id: r.bytes for r in plan.registers}
        for t in plan.tasks:
            _check_kind(t)
            reads, writes = ({p.register: bytes_of.get(p.register, 0) for p in ps} for ps in (t.consumes, t.produces))
            calls.verify(t.step, reads, writes, t.acts)
            fused.verify(t.step)
            moved.verify(t.step, plan.rank, plan.world_size)
    tasks, registers = _joined(given)
    _check_ends(tasks, registers, {p.rank for p in given})
    _check_rates(tasks, registers)
    _check_contents(tasks, registers)
    _check_cycles(tasks, registers)
    _check_launched(tasks, registers)
    for plan in given:
        lifetimes.verify(plan)


def precedences(tasks: dict[int, Task], registers: dict[int, Register]) -> Iterator[Precedence]:
    """The precedences within one launch, without those that tokens satisfy."""
    for t in tasks.values():
        for k in range(1, t.acts):
            yield Precedence(Act(t.id, k - 1), Act(t.id, k), None, False)
        for port in t.consumes:
            r = registers[port.register]
            if (producer := tasks.get(r.producer)) is None:
                continue
            theirs = _port(producer.produces, r)
            for item in range(r.full, port.items(t.acts)):
                yield Precedence(Act(producer.id, theirs.last(item - r.full)), Act(t.id, port.first(item)), r, False)
        for port in t.produces:
            r = registers[port.register]
            ahead = r.copies - r.full
            for consumer in (tasks[c] for c in r.consumers if c in tasks):
                theirs = _port(consumer.consumes, r)
                for item in range(ahead, port.items(t.acts)):
                    yield Precedence(Act(consumer.id, theirs.last(item - ahead)), Act(t.id, port.first(item)), r, True)


def _name(tasks: dict[int, Task], id: int) -> str:
    return tasks[id].name if id in tasks else f"@{decode(id)}"


def _port(ports: tuple[Port, ...], r: Register) -> Port:
    return next(p for p in ports if p.register == r.id)


def _check_names(plan: Plan) -> None:
    where = f"plan {plan.name!r}, rank {plan.rank}"
    for what, values in (
        ("task id", [t.id for t in plan.tasks]),
        ("task name", [t.name for t in plan.tasks]),
        ("register id", [r.id for r in plan.registers]),
        ("register name", [r.name for r in plan.registers]),
        ("stream", [s.index for s in plan.streams]),
    ):
        if twice := [v for v, count in Counter(values).items() if count > 1]:
            shown = decode(twice[0]) if what == "task id" else repr(twice[0])  # type: ignore[arg-type]
            raise CompileError(f"{where}: {what} {shown} is given twice; a plan needs one each")
    streams: dict[int, Stream] = {s.index: s for s in plan.streams}
    for t in plan.tasks:
        at = decode(t.id)
        if at.rank != plan.rank:
            raise CompileError(f"{where}: task {t.name} carries the id {at} of rank {at.rank}, not this one")
        if at.stream not in streams:
            raise CompileError(f"{where}: task {t.name} is on stream {at.stream}; there are {list(streams)}")
        if t.acts < 1:
            raise CompileError(f"{where}: task {t.name} acts {t.acts} times per launch; leave it out instead")
        if t.ahead and (t.consumes or t.kind != "source"):
            raise CompileError(f"{where}: task {t.name} runs ahead: only a source without inputs can")


def _joined(plans: tuple[Plan, ...]) -> tuple[dict[int, Task], dict[int, Register]]:
    tasks: dict[int, Task] = {}
    registers: dict[int, Register] = {}
    for plan in plans:
        for t in plan.tasks:
            if t.id in tasks:
                raise CompileError(f"two plans of rank {plan.rank} are given; verify takes one plan per rank")
            tasks[t.id] = t
        for r in plan.registers:
            known = registers.setdefault(r.id, r)
            if known != r:
                raise CompileError(
                    f"register {r.id} is described twice and differently: {known} and, on rank {plan.rank}, {r}; "
                    "both ends of a register must come from one description"
                )
    return tasks, registers


def _check_ends(tasks: dict[int, Task], registers: dict[int, Register], ranks: set[int]) -> None:
    consumers: dict[int, set[int]] = {id: set() for id in registers}
    producers: dict[int, list[Task]] = {id: [] for id in registers}
    for t in tasks.values():
        for verb, ports in (("reads", t.consumes), ("writes", t.produces)):
            ids = [p.register for p in ports]
            for p in ports:
                if p.register not in registers:
                    raise CompileError(f"task {t.name} {verb} register {p.register}, which the plan doesn't describe")
                if p.period < 1:
                    raise CompileError(f"task {t.name} {verb} {registers[p.register].name} over {p.period} acts")
                if ids.count(p.register) > 1:
                    raise CompileError(f"task {t.name} {verb} {registers[p.register].name} twice; one port is enough")
        for p in t.consumes:
            consumers[p.register].add(t.id)
        for p in t.produces:
            producers[p.register].append(t)
    for r in registers.values():
        if not 1 <= r.copies <= MOST_COPIES or not 0 <= r.full <= r.copies:
            raise CompileError(
                f"register {r.name} has {r.copies} copies, {r.full} of them full: it may have 1 to {MOST_COPIES}"
            )
        written = [t.name for t in producers[r.id]]
        local = decode(r.producer).rank in ranks
        if len(written) > 1 or (local and [t.id for t in producers[r.id]] != [r.producer]) or (written and not local):
            raise CompileError(
                f"register {r.name} names {_name(tasks, r.producer)} as its producer, and is written by "
                f"{', '.join(written) or 'nobody'}; every register is written by exactly one task, the one it names"
            )
        named = {c for c in r.consumers if decode(c).rank in ranks}
        if named != consumers[r.id] or len(set(r.consumers)) != len(r.consumers):
            readers = ", ".join(_name(tasks, c) for c in sorted(consumers[r.id]))
            raise CompileError(
                f"register {r.name} names as consumers [{', '.join(_name(tasks, c) for c in r.consumers)}]; it "
                f"is read by [{readers}]; the two must be the same"
            )
        at = {decode(c).rank for c in r.consumers}
        if len(at) > 1:
            raise CompileError(f"register {r.name} is read on ranks {sorted(at)}; make one register per consumer rank")
        if r.full and at - {decode(r.producer).rank}:
            raise CompileError(f"register {r.name} crosses ranks and is full at the start; only one rank's own can be")


def _check_rates(tasks: dict[int, Task], registers: dict[int, Register]) -> None:
    for r in registers.values():
        items: dict[str, tuple[int, str]] = {}
        ends = [(tasks.get(r.producer), "writes"), *((tasks.get(c), "reads") for c in r.consumers)]
        for t, verb in ends:
            if t is None:
                continue
            port = _port(t.produces if verb == "writes" else t.consumes, r)
            over = f"at acts {port.at}" if port.at else f"over {port.period} acts"
            said = f"{t.name} acts {t.acts} times a launch and {verb} {r.name} {over}"
            if port.at and (port.period > 1 or list(port.at) != sorted(set(port.at)) or port.at[-1] >= t.acts):
                raise CompileError(f"{said}: they must rise, be acts of a launch, and have no period")
            if t.acts % port.period:
                raise CompileError(f"{said}: the acts must be a multiple of the period")
            items[said] = (port.items(t.acts), t.name)
        if len({n for n, _ in items.values()}) > 1:
            counts = "; ".join(f"{said}: {n} a launch" for said, (n, _) in items.items())
            raise CompileError(f"as much must be read as is written, or it piles up from launch to launch. {counts}")


def _check_kind(t: Task) -> None:
    """Check that sources take a launch's inputs, and sinks give its outputs, and do nothing else."""
    for c in t.step.calls:
        looks = c.op in ("read", "variable") or (c.op in OPS and OPS[c.op].view)
        fits = c.op in ENDS if t.kind == "source" else looks or c.op in ENDS if t.kind == "sink" else True
        if not fits or ENDS.get(c.op, t.kind) != t.kind:
            raise CompileError(f"{calls.shown(c)}: {c.op} can't be in {t.name}, a {t.kind}")


def _check_contents(tasks: dict[int, Task], registers: dict[int, Register]) -> None:
    """Check that what is read from a register was written there, as a value of that dtype and size."""
    made = {(r.place.register, *_span(r, t.acts)) for t, r in _written(tasks.values())}
    for t, c, r in _reads(tasks.values()):
        producer = tasks.get(registers[r.place.register].producer)
        if producer is not None and producer.step.calls and (r.place.register, *_span(r, t.acts)) not in made:
            raise CompileError(f"{calls.shown(c)}: {producer.name} writes no such value there")


# A register, and a value there: its dtype, where it begins and ends; of one between ranks its name, without theirs
Written = tuple[int, str, int, int, str]


def sent(plan: Plan) -> list[Written]:
    """What a rank writes for others to read."""
    away = {r.id: [decode(c).rank for c in r.consumers if decode(c).rank != plan.rank] for r in plan.registers}
    return sorted({
        (r.place.register, *_span(r, t.acts), r.name.removesuffix(f".to.{rank}"))
        for t, r in _written(plan.tasks) for rank in away[r.place.register]
    })  # fmt: skip


def check_arrivals(plan: Plan, made: Container[Written]) -> None:
    """Raise CompileError unless what a rank reads of others is what they have `sent`, under the same name."""
    registers = {r.id: r for r in plan.registers}
    for t, c, r in _reads(plan.tasks):
        rank = decode(registers[r.place.register].producer).rank
        name = r.name.removesuffix(f".from.{rank}")
        if rank != plan.rank and (r.place.register, *_span(r, t.acts), name) not in made:
            raise CompileError(f"{calls.shown(c)}: rank {rank} writes no such value there")


def _written(tasks: Iterable[Task]) -> Iterator[tuple[Task, Result]]:
    for t in tasks:
        yield from ((t, r) for c in t.step.calls if c.op != "read" for r in c.results if r.place.kind == "register")


def _reads(tasks: Iterable[Task]) -> Iterator[tuple[Task, Call, Result]]:
    return ((t, c, r) for t in tasks for c in t.step.calls if c.op == "read" for r in c.results)


def _span(r: Result, acts: int) -> tuple[str, int, int]:
    """A value's dtype, and the bytes of a register that it takes in all acts of a launch."""
    return r.dtype, r.place.offset, r.place.offset + r.place.step * (acts - 1) + r.strided.extent


def _check_launched(tasks: dict[int, Task], registers: dict[int, Register]) -> None:
    """Check that tasks started by full registers, or by sources that run ahead, are limited by a launched task."""
    neighbours = [{r.producer, *r.consumers} for r in registers.values()]
    held = {t.id for t in tasks.values() if not t.consumes and not t.ahead}
    held |= {id for ends in neighbours for id in ends if id not in tasks}  # another rank's tasks are checked there
    before = -1
    while before < len(held):
        before = len(held)
        held = held.union(*(ends for ends in neighbours if ends & held))
    if free := [t.name for t in tasks.values() if t.id not in held]:
        raise CompileError(f"nothing holds {', '.join(free)} back: without a launched source they would act for ever")


def _check_cycles(tasks: dict[int, Task], registers: dict[int, Register]) -> None:
    graph: rustworkx.PyDiGraph[Act, Precedence] = rustworkx.PyDiGraph()
    node = {a: graph.add_node(a) for t in tasks.values() for a in (Act(t.id, k) for k in range(t.acts))}
    graph.add_edges_from([(node[p.before], node[p.after], p) for p in precedences(tasks, registers)])
    if rustworkx.is_directed_acyclic_graph(graph):
        return
    cycle = min(_cycles(graph), key=len)
    lines, quotas = [], []
    for p in cycle:
        after, before = tasks[p.after.task].name, tasks[p.before.task].name
        if p.register is None:
            lines.append(f"{after} does act {p.after.number} after act {p.before.number}")
        elif p.credit:
            lines.append(f"{after} (act {p.after.number}) waits for a free copy of {p.register.name}, held by {before}")
            quotas.append(p.register)
        else:
            lines.append(f"{after} (act {p.after.number}) waits for {p.register.name} from {before}")
    tight = [f"{r.name} (now {r.copies})" for r in dict.fromkeys(quotas)]
    cure = (
        f"Give a register on it more copies: {' or '.join(tight)}"
        if tight
        else "More copies can't help: no data comes first. Start with a full register on it, or cut it"
    )
    story = "\n  ".join(lines)
    raise CompileError(f"the plan would stand still: this cycle holds no token.\n  {story}\n{cure}.")


def _cycles(graph: rustworkx.PyDiGraph[Act, Precedence]) -> Iterator[list[Precedence]]:
    """A shortest cycle through some node of each strongly connected component, last act first."""
    for knot in rustworkx.strongly_connected_components(graph):
        if len(knot) == 1 and not graph.has_edge(knot[0], knot[0]):
            continue
        inside = graph.subgraph(knot, preserve_attrs=True)
        best: list[Precedence] | None = None
        for source, target, last in inside.weighted_edge_list()[:64]:  # any cycle explains it; a short one better
            paths = rustworkx.dijkstra_shortest_paths(inside, target, source, default_weight=1.0)
            way = [target] if source == target else list(paths[source])
            path = [inside.get_edge_data(a, b) for a, b in pairwise(way)] + [last]
            if best is None or len(path) < len(best):
                best = path
        assert best is not None
        yield best[::-1]
