from __future__ import annotations

import msgspec
import pytest

from weft.core.errors import CompileError
from weft.plan.ids import encode
from weft.plan.net import Net, line
from weft.plan.plan import Plan, Port, Stream
from weft.plan.verify import verify


def test_a_line_runs_with_one_copy() -> None:
    verify(line("a", "b", "c").plans())


def test_a_cycle_without_a_full_register_stands_still() -> None:
    with pytest.raises(CompileError, match="no data comes first") as e:
        verify(line("a", "b").wire("b", "a", name="back").plans())
    assert "a (act 0) waits for back from b" in str(e.value)


def test_a_full_register_starts_a_cycle() -> None:
    net = line("a", "b").wire("b", "a", full=1)
    verify(net.node("launched").wire("launched", "a").plans())


def test_what_nothing_launched_holds_back_would_never_stop() -> None:
    with pytest.raises(CompileError, match="nothing holds a, b back"):
        verify(line("a", "b").wire("b", "a", full=1).plans())
    with pytest.raises(CompileError, match="nothing holds data, use back"):
        verify(Net().node("data", kind="source", ahead=True).node("use").wire("data", "use").plans())


def test_a_quota_too_small_is_named() -> None:
    """a feeds c directly and through b, which needs two of a's before it gives anything."""

    def net(copies: int) -> Net:
        net = Net().node("a", 4).node("b", 4).node("c", 4).wire("a", "b", copies=2)
        return net.wire("a", "c", name="skip", copies=copies).wire("b", "c", name="half", over=(2, 2))

    with pytest.raises(CompileError, match=r"more copies: skip \(now 1\)"):
        verify(net(1).plans())
    verify(net(2).plans())


def test_a_cycle_through_two_ranks_is_found_from_all_plans_only() -> None:
    net = Net().node("a").node("b", rank=1).wire("a", "b").wire("b", "a")
    plans = net.plans()
    verify(plans[0])
    verify(plans[1])
    with pytest.raises(CompileError, match="holds no token"):
        verify(plans)


def test_gradient_accumulation_has_three_rates() -> None:

    def net(updates: int) -> Net:
        net = Net().node("batch").node("unpack", 4).node("forward", 4).node("update", updates)
        net.wire("batch", "unpack", over=(1, 4)).wire("unpack", "forward").wire("forward", "update", over=(4, 1))
        return net.wire("update", "forward", name="weights", full=1, over=(1, 4))

    verify(net(1).plans())
    with pytest.raises(CompileError, match="as much must be read as is written"):
        verify(net(2).plans())


def test_acts_must_fill_periods() -> None:
    with pytest.raises(CompileError, match="multiple of the period"):
        verify(Net().node("a").node("b", 3).wire("a", "b", over=(1, 2)).plans())


def _broken(change: str) -> list[Plan]:
    (plan,) = line("a", "b").plans()
    a, b = plan.tasks
    (r,) = plan.registers
    replace = msgspec.structs.replace
    return {
        "twice": [replace(plan, tasks=(a, a))],
        "two plans": [plan, replace(plan, registers=())],
        "names": [replace(plan, tasks=(a, replace(b, name="a")))],
        "nowhere": [replace(plan, streams=(Stream(3, "x"),))],
        "rank": [replace(plan, rank=1)],
        "unknown": [replace(plan, registers=())],
        "unwritten": [replace(plan, tasks=(replace(a, produces=()), b))],
        "two writers": [replace(plan, tasks=(a, replace(b, consumes=(), produces=(Port(0),))))],
        "unread": [replace(plan, tasks=(a, replace(b, consumes=())))],
        "two ends": [replace(plan, tasks=(a, replace(b, consumes=(Port(0), Port(0)))))],
        "no copy": [replace(plan, registers=(replace(r, copies=0),))],
        "overfull": [replace(plan, registers=(replace(r, full=2),))],
        "ahead": [replace(plan, tasks=(a, replace(b, ahead=True)))],
        "ranks": [replace(plan, registers=(replace(r, consumers=(b.id, encode(1, "cpu", 0, 0, 0))),))],
        "full": [
            replace(plan, tasks=(a,), registers=(replace(r, full=1, consumers=(encode(1, "cpu", 0, 0, 0),)),)),
        ],
        "two stories": [*Net().node("a").node("b", rank=1).wire("a", "b").plans()[:1],
                        *Net().node("a").node("b", rank=1).wire("a", "b", copies=2).plans()[1:]],
    }[change]  # fmt: skip


@pytest.mark.parametrize(
    "change, says",
    [
        ("twice", "given twice"), ("two plans", "one plan per rank"), ("names", "task name"),
        ("nowhere", "on stream 0"),
        ("rank", "rank 0"), ("unknown", "doesn't describe"), ("unwritten", "written by nobody"),
        ("two writers", "written by a, b"), ("unread", "names as consumers"), ("two ends", "one port is enough"),
        ("no copy", "0 copies"), ("overfull", "2 of them full"),
        ("ahead", "ahead"), ("ranks", "one register per consumer"),
        ("full", "crosses ranks"), ("two stories", "described twice"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said(change: str, says: str) -> None:
    with pytest.raises(CompileError, match=says):
        verify(_broken(change))
