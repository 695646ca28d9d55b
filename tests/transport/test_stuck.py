"""Circles of waits are found wherever they are, and nowhere else: not in waits that will end, however old notes are."""

from __future__ import annotations

import itertools
import random
import re
import threading
import time

import pytest

import weft as flow
from weft.core.errors import DeadlineError, RankError
from weft.launch import spawn_threads
from weft.transport import Group, Line, transport_of
from weft.transport.check import Check, Report, checking, decoded, every_steps, story
from weft.transport.stuck import Need, Wait, circle


def wait(needs: list[tuple[int, str, int]], **promises: int) -> Wait:
    return Wait(1, "a call", [Need(*n) for n in needs], promises)


def found(waits: dict[int, Wait], first: int = 0) -> list[int]:
    return circle(first, waits.get)


def test_two_and_three() -> None:
    assert found({0: wait([(1, "a", 1)]), 1: wait([(0, "b", 1)])}) == [0, 1]
    assert found({0: wait([(1, "a", 1)]), 1: wait([(2, "b", 1)]), 2: wait([(0, "c", 1)])}) == [0, 1, 2]
    assert found({0: wait([(5, "a", 1), (1, "a", 1)]), 1: wait([(0, "b", 1)])}) == [0, 1]


def test_no_circle() -> None:
    assert found({0: wait([(1, "a", 1)])}) == []  # the other computes
    assert found({0: wait([(1, "a", 2)]), 1: wait([(0, "b", 1)], a=2)}) == []  # it has given what is needed
    assert found({0: wait([(1, "a", 1)], b=1), 1: wait([(0, "b", 1)])}) == []  # or gets what it needs
    assert found({0: wait([(1, "a", 1)]), 1: wait([(2, "b", 1)]), 2: wait([(1, "c", 1)])}) == []  # of others only


@pytest.mark.parametrize("seed", range(3))
def test_any_set_of_waits(seed: int) -> None:
    """As a search over all paths finds."""
    draw = random.Random(seed)
    for _ in range(300):
        n = draw.randrange(2, 6)
        waits = {
            r: wait(
                [(draw.randrange(n), "k", draw.randrange(3)) for _ in range(draw.randrange(3))], k=draw.randrange(3)
            )
            for r in range(n)
            if draw.random() < 0.8
        }

        def needs(a: int, b: int, waits: dict[int, Wait] = waits) -> bool:
            if a not in waits or b not in waits:
                return False
            return any(need.rank == b and waits[b].promises["k"] < need.count for need in waits[a].needs)

        paths = (p for size in range(1, n + 1) for p in itertools.permutations(range(n), size) if p[0] == 0)
        expected = any(all(map(needs, p, (*p[1:], 0))) for p in paths)
        way = found(waits)
        assert bool(way) == expected
        assert all(map(needs, way, (*way[1:], way[0]))) if way else True


def test_a_thousand_in_a_ring() -> None:
    waits = {r: wait([((r + 1) % 1500, "k", 1)]) for r in range(1500)}
    assert found(waits, 7) == [(7 + i) % 1500 for i in range(1500)]


def test_who_counts_no_calls_is_in_no_circle() -> None:
    """A transport of somebody's own need not count: three ranks of which one is late are no circle of the two."""

    def run() -> None:
        transport = transport_of()
        transport.stuck_after = 0.02
        group = transport.group((0, 1, 2))
        group.calls_made = lambda: Group.calls_made(group)  # type: ignore[method-assign]
        if transport.rank == 2:
            transport.get("go on")
        elif transport.rank == 0:
            threading.Timer(0.3, lambda: transport.put("go on", b"")).start()
        group.barrier()

    spawn_threads(3, run, deadline=60)


def receives() -> str:
    transport = transport_of()
    transport.stuck_after = 0.02
    with pytest.raises(RankError, match="wait for each other") as found:
        flow.comm.recv(1 - transport.rank, (2,), flow.float32)
    transport.put(f"over {transport.rank}", b"")
    transport.get(f"over {1 - transport.rank}", 20.0)  # who ended would be the reason that the other is told
    return str(found.value)


def test_a_circle_of_waits_names_each_ranks_line() -> None:
    for said in spawn_threads(2, receives, deadline=60):
        for rank in (0, 1):
            assert re.search(rf"rank {rank} is in .* at .*test_stuck.py:\d+, in receives: flow.comm.recv\(", said), said


def late() -> str:
    """Rank 2 waits for rank 1, which waits for rank 0, which doesn't come."""
    transport = transport_of()
    transport.stuck_after, said = 0.02, ""
    if transport.rank:
        transport.deadline = (0.9, 0.4)[transport.rank - 1]
        with pytest.raises(DeadlineError) as found:
            flow.comm.barrier([0, 1]) if transport.rank == 1 else flow.comm.recv(1, (2,), flow.float32)
        said = str(found.value)
    if transport.rank == 1:
        transport.put("over", b"")
    transport.get("over", 20.0)
    return said


def test_a_deadline_names_what_others_wait_for_and_where() -> None:
    said = spawn_threads(3, late, deadline=60)[2]
    assert re.search(r"; rank 1 waits for .* at .*test_stuck.py:\d+, in late: ", said), said


def test_who_waits_on_another_line_is_named_at_the_deadline() -> None:
    """As two graphs that ranks launch in different orders; another thread might go along the other line, so it is no
    circle before."""
    told = []

    def run() -> None:
        transport = transport_of()
        transport.stuck_after = 0.02
        lines = [Line(transport, name) for name in ("a", "b")]
        if transport.rank == 1:
            lines.reverse()
        else:
            while not transport.peek("waits/1/b"):
                time.sleep(0.01)
            transport.deadline = 0.4
        try:
            for line in lines:
                line.group((0, 1)).barrier()
        except DeadlineError as error:
            told.append(str(error))
            raise

    with pytest.raises(DeadlineError):
        spawn_threads(2, run, deadline=60)
    assert "rank 1 is in barrier" in told[0] and "in the same order" in told[0]
    assert "of line 'b' meanwhile" in told[0] and "which is in line 'a'" in told[0]


def test_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for given, check in (("", Check.CHEAP), ("0", Check.CHEAP), ("1", Check.CALLS), ("full", Check.FULL)):
        monkeypatch.setenv("WEFT_CHECK", given)
        assert checking() is check
    monkeypatch.setenv("WEFT_CHECK", "yes")
    with pytest.raises(RankError, match="WEFT_CHECK is 0, 1"):
        checking()
    monkeypatch.setenv("WEFT_CHECK_EVERY", "0")
    with pytest.raises(RankError, match="WEFT_CHECK_EVERY is a number of steps"):
        every_steps()


def test_stories_name_the_first_difference() -> None:
    a, b, c = Report("barrier"), Report("barrier", {"lr": "1"}), Report("all_reduce")
    assert "rank 0 calls barrier and rank 2 calls all_reduce" in story((0, 1, 2), 0, 1, {0: a, 1: b, 2: c})
    assert "differ in lr: nothing of that kind on rank 0 and 1 on rank 1" in story((0, 1), 0, 1, {0: a, 1: b})
    assert "that it doesn't say" in story((0, 1), 0, 1, {0: a})
    with pytest.raises(RankError):
        decoded(b"{}", Report, "it")
