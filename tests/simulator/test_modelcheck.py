from __future__ import annotations

from collections.abc import Mapping

import msgspec
import pytest

from weft.core.errors import CompileError
from weft.plan.net import Net, line
from weft.plan.plan import Register, Task
from weft.runtime.actor import Actor
from weft.simulator.modelcheck import explore

NETS = {
    "line": (line("a", "b", "c", copies=2), 2),
    "diamond": (
        Net().node("a").node("b").node("c").node("d").wire("a", "b", "c").wire("b", "d").wire("c", "d"), 1
    ),
    "loop": (line("a", "b").wire("b", "a", full=1).node("s").wire("s", "a"), 2),
    "rates": (Net().node("a").node("b", 2).node("c").wire("a", "b", over=(1, 2)).wire("b", "c", over=(2, 1)), 2),
    "ahead": (
        Net().node("data", kind="source", ahead=True).node("go").node("use").wire("data", "use", copies=2)
        .wire("go", "use"), 2,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", NETS)
def test_every_order_ends_well(name: str) -> None:
    net, launches = NETS[name]
    seen = explore(net.plans(), launches=launches)
    assert seen.states > 20 and seen.steps > seen.states


def test_a_producer_that_counts_a_copy_too_many_is_found() -> None:
    """The seeded bug: the check that a copy is free looks at one copy more than there is."""

    def careless(task: Task, registers: Mapping[int, Register]) -> Actor:
        if task.name == "a":
            registers = {i: msgspec.structs.replace(r, copies=r.copies + 1) for i, r in registers.items()}
        return Actor(task, registers)

    with pytest.raises(CompileError, match=r"a writes .* The way there: launch reaches a"):
        explore(line("a", "b", copies=1).plans(), launches=3, make=careless)


def test_an_actor_that_does_not_look_whether_a_copy_is_free_is_found() -> None:
    class Reckless(Actor):
        __slots__ = ()

        def _turn(self, key: int):  # type: ignore[no-untyped-def]
            turn = super()._turn(key)
            turn.claims = ()
            return turn

    with pytest.raises(CompileError, match="a writes item 1 of a_b over item 0, which b may still read"):
        explore(line("a", "b").plans(), launches=2, make=Reckless)


def test_a_cycle_without_a_token_stands_still() -> None:
    with pytest.raises(CompileError, match="stands still"):
        explore(line("a", "b").wire("b", "a").plans())


def test_too_small_a_quota_stands_still() -> None:
    net = Net().node("a", 4).node("b", 4).node("c", 4).wire("a", "b", copies=2).wire("a", "c", name="skip")
    with pytest.raises(CompileError, match="c lacks half"):
        explore(net.wire("b", "c", name="half", over=(2, 2)).plans())


def test_the_bound_is_kept() -> None:
    with pytest.raises(CompileError, match="more than 10 states"):
        explore(line("a", "b", "c").plans(), limit=10)
