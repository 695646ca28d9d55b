"""What overlaps with sends over a slow link, by counted work and a virtual clock."""

from __future__ import annotations

import pytest

from bench.slow_link import MICRO, SIZE, divided_graph, moved, simulated
from weft.compiler.streams import WAYS
from weft.launch import spawn_threads
from weft.plan.plan import Plan
from weft.plan.usage import usage
from weft.transport.hosts import HOSTS


def plan(micro_batches: int) -> Plan:
    graph, batch = divided_graph(SIZE, micro_batches)
    graph.compile(*batch)
    found = graph.plan
    graph.close()
    return found


def ratio(micro_batches: int) -> float:
    """A tensor-parallel step beside the same in a row; a chain takes as long as it has bytes to write, and all sends
    together as long as all chains."""
    found = spawn_threads(2, plan, micro_batches, deadline=120)[0]
    seconds = {
        t.name: float(sum(r.bytes for c in t.step.calls if c.op not in ("read", "variable") for r in c.results))
        for t in found.tasks if t.kind == "compute"
    }  # fmt: skip
    ends = {t.name: 0.0 for t in found.tasks if t.kind != "compute"}
    computing = sum(seconds[t.name] * t.acts for t in found.tasks if t.kind == "compute")
    sent = sum(moved(t) * t.acts for t in found.tasks if t.kind == "collective")
    in_a_row, beside = simulated(found, {**seconds, **ends}, sent / computing)
    assert in_a_row == pytest.approx(2 * computing)
    return beside / in_a_row


def test_a_tensor_parallel_step_of_micro_batches_overlaps_with_its_collectives(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(HOSTS, "2")
    assert ratio(MICRO) <= 0.75
    assert ratio(1) > 0.85  # nothing is there to compute meanwhile


def test_two_micro_batches_under_way_take_twice_the_memory_of_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """And what collectives on streams of their own allocate meanwhile."""
    monkeypatch.setenv(HOSTS, "2")
    streamed = usage(spawn_threads(2, plan, MICRO, deadline=120)[0]).total
    monkeypatch.setitem(WAYS, ("c10d", "cpu"), "inline")
    assert streamed < 2.2 * usage(spawn_threads(2, plan, MICRO, deadline=120)[0]).total
