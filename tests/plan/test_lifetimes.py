"""Registers that share memory: those that are never needed at the same time, as tokens prove."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from weft.compiler.shared_registers import shared
from weft.core.errors import CompileError
from weft.plan.calls import Call, Place, Result, Step
from weft.plan.net import Net
from weft.plan.plan import Plan, parse
from weft.plan.usage import usage
from weft.plan.verify import verify


def steps(full: int) -> Plan:
    """Four tasks in a row on two streams, of which the last lets the first begin the next launch."""
    net = Net().stream("compute").stream("other", "worker")
    for i, name in enumerate("abcd"):
        net.node(name, stream="other" if i % 2 else "compute")
    net.node("launch").wire("launch", "a").wire("a", "b").wire("b", "c").wire("c", "d")
    plan = net.wire("d", "a", copies=full, full=full).plan()
    sized = [
        replace(r, shape=(1 << 20,), dtype="uint8") if r.name in ("a_b", "b_c", "c_d") else r for r in plan.registers
    ]
    return replace(plan, registers=tuple(sized))


def test_the_first_and_the_third_of_a_row_share_memory() -> None:
    plan = shared(steps(1))
    at = {r.name: r.offsets for r in plan.registers}
    assert at["a_b"] == at["c_d"] == (0,) and at["b_c"] == (1 << 20,) and plan.shared == 2 << 20 and at["d_a"] == ()
    verify(plan)
    assert parse(str(plan)) == plan
    assert shared(steps(2)) == steps(2)  # two launches may be under way: the first begins again while the third is read


def test_a_plan_that_places_registers_over_each_other_is_refused() -> None:
    plan = shared(steps(1))

    def moved(name: str, **to: object) -> Plan:
        return replace(plan, registers=tuple(replace(r, **to) if r.name == name else r for r in plan.registers))

    with pytest.raises(CompileError, match="registers a_b and b_c share memory"):
        verify(moved("b_c", offsets=((1 << 20) - 64,)))
    with pytest.raises(CompileError, match="b_c begins at 1048570"):
        verify(moved("b_c", offsets=((1 << 20) - 6,)))
    with pytest.raises(CompileError, match="a_b lies in shared memory"):
        verify(moved("a_b", copies=2))
    text = str(plan).replace("1 copy, 1 full", "2 copies, 2 full")
    with pytest.raises(CompileError, match="registers a_b and c_d share memory"):
        verify(parse(text))


@pytest.mark.parametrize("acts, copies", [(4, 1), (4, 2), (3, 2), (5, 3)])
def test_copies_of_micro_batches_share_memory_if_one_is_done_when_the_next_begins(acts: int, copies: int) -> None:
    def row(ahead: int) -> Plan:
        net = Net().node("launch").node("a", acts).node("b", acts).node("c", acts).node("d", acts)
        net.wire("launch", "a", over=(1, acts)).wire("a", "b", copies=copies).wire("b", "c", copies=copies)
        plan = net.wire("c", "d", copies=copies).wire("a", "d", copies=ahead).plan()
        names = ("a_b", "b_c", "c_d")
        return replace(plan, registers=tuple(
            replace(r, shape=(64,), dtype="uint8") if r.name in names else r for r in plan.registers
        ))  # fmt: skip

    one, two = shared(row(1)), shared(row(2))
    assert usage(one).registers == one.shared == 2 * 64 < usage(two).registers
    verify(one)
    at = {r.name: r.offsets for r in one.registers}
    assert at["a_b"] == at["c_d"] != at["b_c"] and all(len(at[name]) == copies for name in ("a_b", "b_c"))


def allocating(net: Net, **bytes: int) -> int:
    """What a plan's tasks allocate at most at once, if each allocates so much in an act."""
    plan = net.plan()
    steps = {
        name: Step((Call("zeros", ((size,),), (Result("z", "uint8", (size,), Place("made")),)),))
        for name, size in bytes.items()
    }
    return usage(replace(plan, tasks=tuple(replace(t, step=steps.get(t.name, t.step)) for t in plan.tasks))).allocated


def test_of_what_streams_allocate_counts_what_may_come_at_once() -> None:
    def net(ahead: int) -> Net:
        """Two micro-batches, that many of them under way, go to another stream and back."""
        made = Net().stream("compute").stream("other", "worker").node("launch").node("a", 2)
        made.node("b", 2, stream="other").node("c", 2).wire("launch", "a", over=(1, 2))
        return made.wire("a", "b", copies=ahead).wire("b", "c", copies=ahead).wire("a", "c", copies=ahead)

    assert allocating(net(1), a=5000, b=4000, c=3000) == 5000
    assert allocating(net(2), a=5000, b=4000, c=3000) == 9000
    apart = Net().stream("compute").stream("other", "worker").stream("third", "worker").node("launch")
    apart.node("a").node("b", stream="other").node("c", stream="third").node("d", stream="other")
    apart.wire("launch", "a", "c").wire("a", "b").wire("b", "d").wire("d", "a", full=1)
    assert allocating(apart, a=1000, b=4000, c=500, d=2000) == 4500
