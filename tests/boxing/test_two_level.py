from __future__ import annotations

import pytest
import torch

from tests.boxing.in_one_process import LockStep, assemble, shards_of, simulate
from weft.boxing import planner
from weft.boxing.execute import along
from weft.boxing.lowering import HostOf
from weft.boxing.routes import Route
from weft.boxing.steps import AllGather, AllReduce, ReduceScatter, Step
from weft.boxing.two_level import Call, Calls, two_level
from weft.core import dtype, sbp
from weft.core.placement import Placement
from weft.core.spec import Spec

S, B, P, PMAX = sbp.split, sbp.broadcast, sbp.partial_sum, sbp.partial_max
LAYOUTS: dict[str, HostOf] = {
    "2 hosts of 3": lambda r: r // 3,
    "3 hosts of 2": lambda r: r // 2,
    "2 hosts, in turn": lambda r: r % 2,
    "uneven": lambda r: r // 4,
    "each its own": lambda r: r,
    "one": lambda r: 0,
}


def test_which_groups_have_two_levels() -> None:
    levels = two_level((4, 6, 5, 7), lambda r: r % 2)
    assert levels is not None
    assert (levels.inside(5), levels.between(5)) == ((5, 7), (4, 5))
    assert (levels.inside(6), levels.between(6)) == ((4, 6), (6, 7))
    for hosts in (None, LAYOUTS["uneven"], LAYOUTS["each its own"], LAYOUTS["one"]):
        assert two_level(range(6), hosts) is None


STEPS = [
    (AllReduce(0, "sum"), P, B), (AllReduce(0, "max"), PMAX, B), (AllGather(0, 0), S(0), B), (AllGather(0, 1), S(1), B),
    (ReduceScatter(0, 0, "sum"), P, S(0)), (ReduceScatter(0, 1, "max"), PMAX, S(1)),
]  # fmt: skip


@pytest.mark.parametrize("hosts", LAYOUTS.values(), ids=list(LAYOUTS))
@pytest.mark.parametrize("shape", [(12, 6), (7, 5), (2, 1)], ids=str)
def test_two_levels_give_what_one_gives(shape: tuple[int, ...], hosts: HostOf) -> None:
    logical = torch.arange(shape[0] * shape[1]).view(shape)
    place = Placement("cpu", [3, 1, 2, 0, 5, 4])
    for step, a, b in STEPS:
        src = Spec(shape, dtype.int64, place, (a,))
        route = Route(src, src.replace(nd_sbp=(b,)), (step,)).verify()
        shards = shards_of(logical, place, (a,))
        after = simulate(route, shards, hosts)
        assert torch.equal(assemble(after, route.dst), logical)
        flat = simulate(route, shards)
        assert all(torch.equal(after[r], flat[r]) for r in place.members)


def sent_between(step: Step, a: sbp.Sbp, b: sbp.Sbp, hosts: HostOf, lowered_for: HostOf | None) -> int:
    """Elements that rings of the calls' groups send between hosts."""
    place, total = Placement("cpu", list(range(6))), 0
    src = Spec((12, 6), dtype.int64, place, (a,))
    route = Route(src, src.replace(nd_sbp=(b,)), (step,))
    shards = shards_of(torch.arange(72).view(12, 6), place, (a,))

    def watched(rank: int) -> Calls:
        nonlocal total
        calls = along(route, shards[rank], rank, lowered_for)
        try:
            while True:
                call = next(calls)
                total += between(call, rank)
                yield call
        except StopIteration as end:
            return end.value

    def between(call: Call, rank: int) -> int:
        others = [r for r in call.ranks if hosts(r) != hosts(rank)]
        match call.method:
            case "all_reduce":
                return 2 * call.args[0].numel() * len(others) // len(call.ranks)
            case "reduce_scatter":
                return sum(t.numel() for r, t in zip(call.ranks, call.args[1], strict=True) if r in others)
            case _:
                return call.args[1].numel() * len(others)

    LockStep({rank: watched(rank) for rank in place.members}).run()
    return total


@pytest.mark.parametrize(("step", "a", "b"), STEPS, ids=str)
def test_two_levels_send_less_between_hosts(step: Step, a: sbp.Sbp, b: sbp.Sbp) -> None:
    hosts = LAYOUTS["2 hosts of 3"]
    flat, levels = sent_between(step, a, b, hosts, None), sent_between(step, a, b, hosts, hosts)
    assert levels * 3 == flat  # as many times less as a host has members


def test_the_route_of_a_grid_over_hosts() -> None:
    place = Placement("cpu", [[0, 1, 2, 3], [4, 5, 6, 7]])
    logical = torch.arange(40).view(8, 5)
    for a, b in [((P, P), (B, B)), ((S(0), P), (B, S(0))), ((P, S(1)), (S(0), B))]:
        route = planner.route((8, 5), dtype.int64, place, a, place, b)
        after = simulate(route, shards_of(logical, place, a), hosts=lambda r: r % 4 // 2)
        assert torch.equal(assemble(after, route.dst), logical)
