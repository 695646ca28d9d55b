"""Random plans, random orders: what verify lets pass runs to the end in order, and what it refuses stands still."""

from __future__ import annotations

import random
from collections import defaultdict, deque
from collections.abc import Callable
from math import gcd

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from weft.compiler.shared_registers import shared
from weft.core.errors import CompileError, GraphError
from weft.plan.net import Net
from weft.plan.plan import Plan
from weft.plan.verify import verify
from weft.runtime.actor import ACTING, DONE, Actor, Turn
from weft.runtime.executor import Executor
from weft.runtime.message import END, LAUNCH, NONE, Message
from weft.simulator.simulate import simulate


@st.composite
def nets(draw: st.DrawFn, ranks: int = 1, streams: tuple[str, ...] = ("compute",), in_a_row: bool = False) -> Net:
    """A graph with edges forward, some of them to two readers, and maybe one back that has full copies. `in_a_row` lets
    each task wait for the one before, and the first for the last."""
    net = Net().stream("compute")
    for s in streams[1:]:
        net.stream(s, "worker")
    acts = draw(st.lists(st.sampled_from((1, 2, 4)), min_size=2, max_size=6))
    at = [draw(st.integers(0, ranks - 1)) for _ in acts]
    edges = [(a, b, 0) for b in range(1, len(acts)) for a in draw(st.sets(st.integers(0, b - 1), max_size=2))]
    if in_a_row:
        edges += [(b - 1, b, 0) for b in range(1, len(acts))]
    if in_a_row or draw(st.booleans()):
        edges.append((len(acts) - 1, 0, draw(st.integers(1, 1 if in_a_row else 4))))
        at[-1] = at[0]
    for i, n in enumerate(acts):
        net.node(f"n{i}", n, rank=at[i], stream=draw(st.sampled_from(streams)))
    for i, (a, b, full) in enumerate(edges):
        common = gcd(acts[a], acts[b])
        items = draw(st.sampled_from([d for d in (1, 2, 4) if common % d == 0]))
        copies = full + draw(st.integers(int(full == 0), 3))
        periods = (acts[a] // items, acts[b] // items)
        more = (f"n{b + 1}",) if b + 1 < len(acts) and (acts[b + 1], at[b + 1]) == (acts[b], at[b]) and b > a else ()
        net.wire(f"n{a}", f"n{b}", *more, name=f"r{i}", over=periods, copies=copies, full=full)
    net.node("launch", rank=at[0])
    return net.wire("launch", "n0", copies=draw(st.integers(1, 2)), over=(1, acts[0]))


class Memory:
    """Fake buffers that know which item they hold; acts that check it before and after."""

    def __init__(self, plans: tuple[Plan, ...]) -> None:
        self.tasks = {t.id: t for p in plans for t in p.tasks}
        self.registers = {r.id: r for p in plans for r in p.registers}
        self.items = {r.id: [s if s < r.full else -1 for s in range(r.copies)] for r in self.registers.values()}
        self.acted: defaultdict[str, list[int]] = defaultdict(list)
        placed = [(r.id, n, at, at + r.bytes) for r in self.registers.values() for n, at in enumerate(r.offsets)]
        self.over = {
            (id, n): [other for *other, start, stop in placed if other != [id, n] and begin < stop and start < end]
            for id, n, begin, end in placed
        }

    def check(self, task: int, turn: Turn) -> None:
        for p, slot in zip(self.tasks[task].consumes, turn.consumed, strict=True):
            found = self.items[p.register][slot]
            assert found == turn.act // p.period, (self.tasks[task].name, turn, self.registers[p.register].name, found)

    def write(self, task: int, turn: Turn, whole: bool) -> None:
        """At the beginning of an act the copy is spoilt already; at the end of the period it holds the item."""
        for p, slot in zip(self.tasks[task].produces, turn.produced, strict=True):
            item = self.registers[p.register].full + turn.act // p.period
            self.items[p.register][slot] = item if whole else -2
            for other, copy in self.over.get((p.register, slot), ()):
                self.items[other][copy] = -2

    def act(self, task: int) -> Callable[[Turn], None]:
        def act(turn: Turn) -> None:
            self.check(task, turn)
            self.write(task, turn, whole=False)
            self.check(task, turn)
            self.write(task, turn, whole=True)
            self.acted[self.tasks[task].name].append(turn.act)

        return act


def run(plans: tuple[Plan, ...], launches: int, seed: int) -> bool:
    """Deliver, begin and finish in a random order; True if all came to an end."""
    dice, memory = random.Random(seed), Memory(plans)
    actors = {t: Actor(task, memory.registers) for t, task in memory.tasks.items()}
    queues: defaultdict[tuple[int, int], deque[Message]] = defaultdict(deque)

    def say(sender: int, messages: object) -> None:
        for m in messages:  # type: ignore[attr-defined]
            queues[sender, m.to].append(m)

    def exhaust() -> None:
        while True:
            moves: list[tuple[int, int] | int] = [k for k, q in queues.items() if q]
            moves += [i for i, a in actors.items() if a.state is ACTING or not a.blocked]
            if not moves:
                return
            move = dice.choice(moves)
            if isinstance(move, tuple):
                actor = actors[move[1]]
                said = actor.on_message(queues[move].popleft())
            elif (actor := actors[move]).state is ACTING:
                memory.check(actor.id, actor.turn)
                memory.write(actor.id, actor.turn, whole=True)
                memory.acted[actor.task.name].append(actor.turn.act)
                said = actor.finish()
            else:
                turn, said = actor.begin(), ()
                memory.check(actor.id, turn)
                memory.write(actor.id, turn, whole=False)
            say(actor.id, said)
            actor.validate()

    sources = [a for a in actors.values() if not a.task.consumes]
    for a in sources:
        say(-1, [Message(LAUNCH, a.id, NONE, launches * a.task.acts)])
    exhaust()
    if any(a.acts != launches * a.task.acts for a in actors.values()):
        return False
    for a in sources:
        say(-1, [Message(END, a.id, NONE, 0)])
    exhaust()
    assert all(a.state is DONE for a in actors.values()), [a.snapshot() for a in actors.values()]
    assert all(memory.acted[a.task.name] == list(range(launches * a.task.acts)) for a in actors.values())
    return True


def holds(plans: tuple[Plan, ...]) -> bool:
    try:
        verify(plans)
    except CompileError as error:
        assert "holds no token" in str(error)
        return False
    return True


@settings(max_examples=300, deadline=None)
@given(nets(ranks=3), st.integers(1, 4), st.integers(0, 1 << 30))
def test_verify_lets_pass_exactly_what_runs(net: Net, launches: int, seed: int) -> None:
    plans = net.plans()
    assert run(plans, launches, seed) == holds(plans)


@settings(max_examples=60, deadline=None)
@given(nets(), st.integers(1, 3))
def test_the_simulator_agrees(net: Net, launches: int) -> None:
    plans = net.plans()
    try:
        timeline = simulate(plans, launches=launches)
    except GraphError:
        assert not holds(plans)
    else:
        assert holds(plans)
        for t in plans[0].tasks:
            assert [a.act for a in timeline.of(t.name)] == list(range(launches * t.acts))


@settings(max_examples=60, deadline=None)
@given(nets(streams=("compute", "first", "second")).filter(lambda n: holds(n.plans())), st.integers(1, 8))
def test_the_executor_runs_them(net: Net, launches: int) -> None:
    plan = net.plan()
    memory = Memory((plan,))
    executor = Executor(plan, {t.id: memory.act(t.id) for t in plan.tasks}, deadline=60)
    tickets = [executor.launch() for _ in range(launches)]
    tickets[0].wait()
    executor.close()
    assert all(t.done for t in tickets)
    assert all(memory.acted[t.name] == list(range(launches * t.acts)) for t in plan.tasks)


@settings(max_examples=300, deadline=None)
@given(nets(in_a_row=True).filter(lambda n: holds(n.plans())), st.data())
def test_what_shares_memory_is_read_before_it_is_overwritten(net: Net, data: st.DataObject) -> None:
    plan = net.plan()
    sizes = data.draw(st.lists(st.integers(1, 4), min_size=len(plan.registers), max_size=len(plan.registers)))
    registers = [replace(r, shape=(64 * n,), dtype="uint8") for r, n in zip(plan.registers, sizes, strict=True)]
    plan = shared(replace(plan, registers=tuple(registers)))
    verify(plan)
    assert run((plan,), data.draw(st.integers(1, 4)), data.draw(st.integers(0, 1 << 30)))
