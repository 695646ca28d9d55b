from __future__ import annotations

import doctest
import sys
from itertools import pairwise

import pytest

from weft.core.errors import GraphError
from weft.plan.net import Net, line
from weft.plan.verify import verify
from weft.simulator.schedule import Schedule
from weft.simulator.simulate import Timeline, simulate
from weft.simulator.training_pipeline import pipeline


def test_figure_2_of_the_article() -> None:
    """Time 0: a writes a_0. Time 1: b reads a_0, a writes a_1. Time 2: c reads b_0, b reads a_1, a writes a_0 again."""
    net = line("a", "b", "c", copies=2, apart=True)
    timeline = simulate(net.plans(), launches=3)
    seen = {(a.start, a.task, a.consumed, a.produced) for a in timeline.acts if a.start <= 2}
    assert seen == {
        (0, "a", (), (0,)),
        (1, "a", (), (1,)), (1, "b", (0,), (0,)),
        (2, "a", (), (0,)), (2, "b", (1,), (1,)), (2, "c", (0,), ()),
    }  # fmt: skip


def test_the_example_in_its_text() -> None:
    assert doctest.testmod(sys.modules[simulate.__module__]).failed == 0


def order(timeline: Timeline, stage: int) -> str:
    return " ".join(a.task[0].upper() + str(a.act) for a in timeline.acts if a.task in (f"f{stage}", f"b{stage}"))


DURATIONS = {f"b{s}": 2.0 for s in range(4)} | {"batch": 0.0} | {f"u{s}": 0.0 for s in range(4)}


def test_one_forward_one_backward_falls_out_of_the_quotas() -> None:
    net = pipeline(4, 8)
    verify(net.plans())
    timeline = simulate(net.plans(), DURATIONS)
    assert order(timeline, 3) == "F0 B0 F1 B1 F2 B2 F3 B3 F4 B4 F5 B5 F6 B6 F7 B7"
    assert order(timeline, 2) == "F0 F1 B0 F2 B1 F3 B2 F4 B3 F5 B4 F6 B5 F7 B6 B7"
    assert order(timeline, 0) == "F0 F1 F2 F3 B0 F4 B1 F5 B2 F6 B3 F7 B4 B5 B6 B7"
    assert timeline.span == (8 + 4 - 1) * 3, "micro-batches plus the bubble, 3 units each"


def test_smaller_quotas_make_a_longer_bubble() -> None:
    def span(quotas: list[int]) -> float:
        return simulate(pipeline(4, 8, quotas).plans(), DURATIONS).span

    assert span([1, 1, 1, 1]) == 8 * 4 * 3, "one micro-batch at a time"
    assert span([1, 1, 1, 1]) > span([2, 2, 2, 1]) > span([3, 3, 2, 1]) > span([4, 3, 2, 1])
    assert span([4, 3, 2, 1]) == span([8, 8, 8, 8]), "all forwards first needs twice the memory, and gains nothing"


@pytest.mark.parametrize("copies, period", [(1, 5.0), (2, 3.0), (3, 3.0)])
def test_the_bottleneck_sets_the_pace(copies: int, period: float) -> None:
    """With two copies neighbours overlap, and the slowest actor is never idle; with one they take turns."""
    net = line("a", "b", "c", copies=copies, apart=True)
    timeline = simulate(net.plans(), {"a": 1, "b": 3, "c": 2}, launches=30)
    assert timeline.period("c", skip=5) == period
    if copies > 1:
        assert timeline.busy("b") > 0.95 * timeline.span


def test_latency_is_hidden_by_more_copies() -> None:
    """A message takes twice as long as an act: there and back again need the copies to be under way."""
    periods = [
        simulate(line("a", "b", copies=c, apart=True).plans(), launches=47, latency=2.0).period("b", skip=10)
        for c in (1, 2, 3, 6)
    ]
    assert periods == [pytest.approx(p) for p in (6.0, 3.0, 2.0, 1.0)]


def test_one_stream_does_one_thing_at_a_time() -> None:
    timeline = simulate(line("a", "b", "c", copies=2).plans(), launches=10)
    ends = sorted((a.start, a.end) for a in timeline.acts)
    assert all(before[1] <= after[0] for before, after in pairwise(ends))
    assert timeline.span == 30


def test_a_source_that_runs_ahead_hides_its_time() -> None:
    def span(ahead: bool) -> float:
        net = Net().node("data", stream="loader", kind="source", ahead=ahead).node("go").node("chain")
        net.wire("data", "chain", copies=4).wire("go", "chain", copies=4)
        return simulate(net.plans(), {"data": 1, "go": 0, "chain": 2}, launches=4).span

    assert span(True) == span(False) == 9


def test_a_cycle_without_a_token_is_told() -> None:
    with pytest.raises(GraphError, match="stands still at 0: a for b_a"):
        simulate(line("a", "b").wire("b", "a").plans())


def test_the_gantt_chart_tells_the_acts() -> None:
    text = simulate(line("load", "run", copies=2, apart=True).plans(), {"run": 2}, launches=2).gantt()
    assert text == "time  0 1 2 3 4\nload  0 1 . . .\nrun   . 0 0 1 1"


def test_a_schedule_of_nothing_says_so() -> None:
    assert "no task works on micro-batches" in str(Schedule({"rank 0": []}))
