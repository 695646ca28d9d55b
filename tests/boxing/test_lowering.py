from __future__ import annotations

import time

from weft.boxing import lowering, overlap, planner
from weft.boxing.lowering import lower
from weft.boxing.routes import Route
from weft.core import dtype, sbp
from weft.core.placement import Placement

S, B, P = sbp.split, sbp.broadcast, sbp.partial_sum
GRID = Placement("cpu", [[0, 1], [2, 3]])


def plan(shape: tuple[int, ...], src: Placement, a: sbp.NdSbp, dst: Placement, b: sbp.NdSbp) -> Route:
    return planner.route(shape, dtype.float32, src, a, dst, b)


def test_a_collective_knows_its_group_and_shapes() -> None:
    (step,) = lower(plan((5, 4), GRID, (S(0), S(1)), GRID, (B, S(1))), rank=3)
    assert (step.kind, step.ranks, step.index, step.dim) == ("all_gather", (1, 3), 1, 0)
    assert (step.before, step.shape) == ((2, 2), (5, 2))
    assert step.collective
    assert str(step) == "all_gather (2, 2) -> (5, 2), ranks [1, 3]"


def test_an_exchange_knows_its_partners() -> None:
    route = plan((5,), Placement("cpu", [0, 1]), (S(0),), Placement("cpu", [1, 2]), (S(0),))
    first, middle, last = (lower(route, rank)[0] for rank in (0, 1, 2))
    assert all(step.transfers is not None and not step.collective for step in (first, middle, last))
    assert (first.before, first.shape) == ((3,), (0,))
    assert first.transfers is not None and first.transfers.sends == ((1, (slice(0, 3),)),)
    assert middle.transfers is not None and middle.transfers.sends == ((2, (slice(0, 2),)),)
    assert middle.transfers.receives == (((slice(0, 3),), (0,)),)
    assert (last.before, last.shape) == (None, (2,))
    assert lower(route, 7) == []


def test_only_the_steps_of_its_placements() -> None:
    route = plan((1024, 1024), Placement("cpu", [0]), (B,), Placement("cpu", [1, 2, 3, 4]), (B,))
    assert [step.kind for step in lower(route, 0)] == ["exchange"]
    assert [step.kind for step in lower(route, 2)] == ["exchange", "all_gather"]


def test_a_rank_of_a_large_world_lowers_as_quickly_as_of_a_small_one() -> None:
    def least_time(n: int) -> float:
        here, there = Placement("cpu", list(range(n))), Placement("cpu", list(range(n, 2 * n)))
        routes = [
            plan((4096, 64), here, (a,), dst, (b,))
            for a, b, dst in [(P, B, here), (S(0), S(1), here), (S(0), S(0), there), (B, B, there), (S(0), B, there)]
        ]
        best = float("inf")
        for _ in range(5):
            lowering._lowered.cache_clear()
            overlap.overlap.cache_clear()
            start = time.thread_time()
            for route in routes:
                lower(route, 1)
            best = min(best, time.thread_time() - start)
        return best

    assert least_time(1024) < 4 * least_time(2)
