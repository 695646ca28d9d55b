from __future__ import annotations

import itertools
import time
from collections.abc import Callable

import pytest

from weft.boxing import planner
from weft.boxing.costs import Costs
from weft.boxing.links import ONE_HOST, Links
from weft.boxing.planner import cost, cost_of, route
from weft.boxing.steps import (
    AllGather,
    AllReduce,
    AllToAll,
    AxisStep,
    Copy,
    Exchange,
    ReduceScatter,
    Slice,
    SplitToPartial,
    State,
    Step,
    ToPartial,
)
from weft.core import dtype, sbp
from weft.core.errors import SbpError
from weft.core.placement import Placement

S, B, P, PMAX = sbp.split, sbp.broadcast, sbp.partial_sum, sbp.partial_max
KINDS = [S(0), S(1), B, P, PMAX]


def cpu(ranks: object) -> Placement:
    return Placement("cpu", ranks)


def steps_of(shape: tuple[int, ...], src: object, a: sbp.NdSbp, dst: object, b: sbp.NdSbp) -> list[type[Step]]:
    return [type(s) for s in route(shape, dtype.float32, cpu(src), a, cpu(dst), b).steps]


def test_the_collectives_that_one_expects() -> None:
    row = [0, 1, 2, 3]
    for a, b, step in [
        (P, B, AllReduce), (P, S(1), ReduceScatter), (S(0), B, AllGather), (S(0), S(1), AllToAll),
        (B, S(0), Slice), (B, P, ToPartial), (S(0), P, SplitToPartial),
    ]:  # fmt: skip
        for shape in [(1024, 1024), (8, 8), (5, 3)]:
            assert steps_of(shape, row, (a,), row, (b,)) == [step], f"{a} -> {b} of {shape}"
    assert steps_of((8, 8), row, (PMAX,), row, (P,)) == [ReduceScatter, SplitToPartial]
    # the dimension that both axes split, outer one first, would have to be gathered whole
    assert steps_of((1024, 1024), [[0, 1], [2, 3]], (S(0), S(0)), [[0, 1], [2, 3]], (B, S(0))) == [Exchange]


def test_between_placements_it_reduces_before_and_gathers_after() -> None:
    assert steps_of((1024, 1024), [0, 1], (S(0),), [2, 3], (S(0),)) == [Exchange]
    assert steps_of((1024, 1024), [0, 1, 2, 3], (P,), [4, 5], (S(0),)) == [ReduceScatter, Exchange]
    assert steps_of((1024, 1024), [0], (B,), [1, 2, 3, 4], (B,)) == [Exchange, AllGather]
    assert steps_of((4,), [0], (B,), [1, 2], (B,)) == [Exchange]  # not worth it for so little


def test_bigger_is_reduced_on_one_axis_after_being_scattered_on_the_other() -> None:
    grid = [[0, 1], [2, 3]]
    assert steps_of((1024, 1024), grid, (P, P), grid, (B, B)) == [ReduceScatter, AllReduce, AllGather]
    assert steps_of((2, 2), grid, (P, P), grid, (B, B)) == [AllReduce, AllReduce]


def test_costs_are_in_order() -> None:
    def of(a: sbp.Sbp, b: sbp.Sbp, dst: object = (0, 1, 2, 3), n: int = 512) -> float:
        return cost((n, n), dtype.float32, cpu([0, 1, 2, 3]), (a,), cpu(list(dst)), (b,))  # type: ignore[call-overload]

    assert of(B, B) == of(S(0), S(0)) == of(P, P) == 0
    assert 0 < of(B, S(0)) < of(S(0), S(1)) < of(S(0), B) < of(P, B)
    assert of(P, S(0)) < of(P, B)
    assert of(S(0), S(0)) < of(S(0), S(0), (4, 5, 6, 7)) < of(S(0), B, (4, 5, 6, 7))
    assert of(S(0), B, n=64) < of(S(0), B, n=512)
    relabelled = [(cpu([0, 1]), (S(0),), cpu([[0, 1]]), (P, S(0))), (cpu([3]), (S(0),), cpu([3]), (P,))]
    for src, a, dst, b in relabelled:
        assert cost((4, 4), dtype.float32, src, a, dst, b) == 0
    assert cost((4, 4), dtype.float32, cpu([0, 1]), (B,), cpu([0, 1]), (B,)) == 0


def test_cost_is_the_routes() -> None:
    found = route((64, 64), dtype.float32, cpu([0, 1]), (P,), cpu([0, 1]), (B,))
    assert cost_of(found).moved == 64 * 64 * 4  # each sends and receives half, twice
    assert cost_of(found).seconds == cost((64, 64), dtype.float32, cpu([0, 1]), (P,), cpu([0, 1]), (B,))
    assert found is route((64, 64), dtype.float32, cpu([0, 1]), (P,), cpu([0, 1]), (B,))


def every_step(src: State, dst: State, ndim: int) -> list[Step]:
    dims, found = range(ndim), list[AxisStep]()
    for axis in range(src.placement.ndim):
        for r in ("sum", "max"):
            found += [AllReduce(axis, r), ToPartial(axis, r)]
            found += [x for d in dims for x in (ReduceScatter(axis, d, r), SplitToPartial(axis, d, r))]
        found += [x for d in dims for x in (AllGather(axis, d), Slice(axis, d))]
        found += [AllToAll(axis, d, e) for d in dims for e in dims if d != e]
    return [*found, Exchange(src, dst)]


def least(shape: tuple[int, ...], src: State, dst: State, depth: int) -> float:
    """By trying every legal sequence of up to `depth` steps."""
    costs, every, best = Costs(shape, 4, ONE_HOST), every_step(src, dst, len(shape)), float("inf")

    def go(state: State, seconds: float, left: int) -> None:
        nonlocal best
        if seconds >= best:
            return
        if state == dst:
            best = seconds
            return
        if not left:
            return
        for step in every:
            try:
                after = step.after(shape, state)
            except SbpError:
                continue
            go(after, seconds + costs.of(step, state, after).seconds, left - 1)

    go(src, 0.0, depth)
    return best


@pytest.mark.parametrize("shape", [(1024, 1024), (6, 4)], ids=str)
def test_no_short_route_is_cheaper_than_the_one_found(shape: tuple[int, ...]) -> None:
    row, grid = cpu([0, 1, 2, 3]), cpu([[0, 1], [2, 3]])
    for a, b in itertools.product(KINDS, KINDS):
        found = cost(shape, dtype.float32, row, (a,), row, (b,))
        assert found == pytest.approx(least(shape, State(row, (a,)), State(row, (b,)), 3)), f"{a} -> {b}"
    pairs = list(itertools.product([S(0), S(1), B, P], repeat=2))
    for a2, b2 in itertools.product(pairs[::2], pairs[1::2]):
        exhaustive = least(shape, State(grid, a2), State(grid, b2), 2)
        assert cost(shape, dtype.float32, grid, a2, grid, b2) <= exhaustive * (1 + 1e-9), f"{a2} -> {b2}"


def test_it_copies_between_device_types_on_the_side_that_moves_less() -> None:
    host, device = cpu([0]), Placement("cuda", [0, 1])
    found = route((1024, 1024), dtype.float32, host, (B,), device, (S(0),)).verify()
    assert [type(s) for s in found.steps].count(Copy) == 1
    assert cost((1024, 1024), dtype.float32, host, (B,), device, (S(0),)) > 0
    assert steps_on(host, Placement("cuda", [0])) == [Copy("cuda")]


def steps_on(src: Placement, dst: Placement) -> list[Step]:
    return list(route((4,), dtype.float32, src, (B,), dst, (B,)).steps)


def test_hosts_make_routes_dearer_and_two_levels_make_them_less_so() -> None:
    row = cpu([0, 1, 2, 3])

    def of(hosts: Callable[[int], int] | None) -> float:
        return cost((1024, 1024), dtype.float32, row, (P,), row, (B,), Links(hosts))

    assert of(None) == of(lambda r: 0)
    assert of(None) < of(lambda r: r // 2) < of(lambda r: r)


def test_it_refuses_what_is_no_layout() -> None:
    with pytest.raises(SbpError, match="splits dimension 2, but the tensor has 2"):
        route((4, 4), dtype.float32, cpu([0, 1]), (S(2),), cpu([0, 1]), (B,))
    with pytest.raises(SbpError, match="a placement of 1 axes takes 1 sbp"):
        route((4, 4), dtype.float32, cpu([0, 1]), (B, B), cpu([0, 1]), (B,))


def least_time(call: Callable[[], object], repeats: int = 5) -> float:
    best = float("inf")
    for _ in range(repeats):
        planner._planned.cache_clear()
        start = time.thread_time()
        call()
        best = min(best, time.thread_time() - start)
    return best


def test_planning_is_quick_and_does_not_grow_with_the_world() -> None:
    def plan(n: int) -> float:
        there, elsewhere = cpu(list(range(n))), cpu(list(range(n, 2 * n)))
        return least_time(lambda: [
            route((4096, 4096), dtype.float32, there, (a,), dst, (b,))
            for a, b in itertools.product(KINDS, KINDS) for dst in (there, elsewhere)
        ])  # fmt: skip

    few, many = plan(2), plan(1024)
    assert few < 50 * 5e-3, "1 ms each, with room for a busy machine"
    assert many < 6 * few
    grid = cpu([[0, 1], [2, 3]])
    assert least_time(lambda: route((64, 64, 8), dtype.float32, grid, (P, S(1)), grid, (S(1), PMAX))) < 0.1
