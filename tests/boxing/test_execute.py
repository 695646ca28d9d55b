"""Routes through a real transport: ranks as threads."""

from __future__ import annotations

import threading

import pytest
import torch

from tests.boxing.in_one_process import assemble, shards_of
from weft.boxing import planner
from weft.boxing.execute import execute, neutral, run
from weft.boxing.lowering import lower
from weft.core import dtype, sbp
from weft.core.errors import ShapeError
from weft.core.placement import Placement
from weft.transport.local import LocalTransport, LocalWorld

S, B, P, PMAX = sbp.split, sbp.broadcast, sbp.partial_sum, sbp.partial_max
ROW, PAIR = Placement("cpu", [0, 1, 2]), Placement("cpu", [2, 3])
GRID = Placement("cpu", [[0, 1], [2, 3]])
WORLD = 4


def on_every_rank(work: object) -> dict[int, torch.Tensor]:
    """What `work(rank, transport)` returns on each rank of a world of threads."""
    world, results, failed = LocalWorld(WORLD), dict[int, torch.Tensor](), list[BaseException]()

    def go(rank: int) -> None:
        transport = LocalTransport(world, rank, deadline=60)
        try:
            results[rank] = work(rank, transport)  # type: ignore[operator]
        except BaseException as error:
            failed.append(error)
            world.fail(rank, str(error))

    threads = [threading.Thread(target=go, args=(rank,)) for rank in range(WORLD)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    if failed:
        raise failed[0]
    return results


CONVERSIONS = [
    (ROW, (S(0),), ROW, (B,)), (ROW, (S(0),), ROW, (S(1),)), (ROW, (P,), ROW, (B,)), (ROW, (P,), ROW, (S(0),)),
    (ROW, (B,), ROW, (P,)), (ROW, (S(1),), ROW, (PMAX,)), (ROW, (P,), PAIR, (B,)), (PAIR, (S(0),), ROW, (S(1),)),
    (PAIR, (PMAX,), ROW, (P,)), (GRID, (S(0), S(0)), GRID, (B, S(0))), (GRID, (P, S(1)), GRID, (S(1), S(0))),
    (GRID, (P, PMAX), PAIR, (S(1),)), (GRID, (S(0), S(1)), Placement("cpu", [3, 2, 1, 0]), (S(0),)),
]  # fmt: skip


def test_routes_over_threads() -> None:
    logical = torch.arange(35).view(7, 5)
    routes = [planner.route((7, 5), dtype.int64, *conversion) for conversion in CONVERSIONS]
    given = [shards_of(logical, route.src.placement, route.src.nd_sbp) for route in routes]
    whole = [shards_of(logical, route.src.placement, route.src.nd_sbp) for route in routes]
    results: list[dict[int, torch.Tensor]] = [{} for _ in routes]

    def work(rank: int, transport: LocalTransport) -> None:
        for route, shards, result in zip(routes, given, results, strict=True):
            result[rank] = run(route, shards.get(rank), rank, transport)

    on_every_rank(work)
    for route, shards, before, result in zip(routes, given, whole, results, strict=True):
        assert torch.equal(assemble(result, route.dst), logical), str(route)
        assert all(torch.equal(shards[rank], before[rank]) for rank in shards)
        assert all(tuple(result[rank].shape) == route.dst.local_shape(rank) for rank in range(WORLD))


def test_two_levels_over_threads() -> None:
    logical, row = torch.arange(35).view(7, 5), Placement("cpu", [0, 1, 2, 3])
    route = planner.route((7, 5), dtype.int64, row, (P,), row, (B,))
    shards = shards_of(logical, row, (P,))
    results = on_every_rank(lambda rank, transport: run(route, shards[rank], rank, transport, hosts=lambda r: r // 2))
    assert torch.equal(assemble(results, route.dst), logical)


def test_one_step_at_a_time() -> None:
    logical = torch.arange(35).view(7, 5)
    route = planner.route((7, 5), dtype.int64, ROW, (PMAX,), ROW, (P,))
    assert len(route.steps) == 2
    shards = shards_of(logical, ROW, (PMAX,))

    def work(rank: int, transport: LocalTransport) -> torch.Tensor:
        data = shards.get(rank, torch.empty(0))
        for step in lower(route, rank):
            data = execute(step, data, transport)
            assert tuple(data.shape) == step.shape
        return data

    assert torch.equal(assemble(on_every_rank(work), route.dst), logical)


def test_what_shares_memory_with_what_was_given() -> None:
    alone = LocalTransport(LocalWorld(1), 0)
    one, square = Placement("cpu", [0]), Placement("cpu", [[0]])
    x = torch.arange(6).view(2, 3)
    for dst, b in [(one, (B,)), (one, (P,)), (square, (S(0), S(1)))]:
        assert run(planner.route((2, 3), dtype.int64, one, (B,), dst, b), x, 0, alone) is x
    shards = shards_of(x, Placement("cpu", [0, 1]), (B,))
    for b in (S(0), P, PMAX):
        route = planner.route((2, 3), dtype.int64, Placement("cpu", [0, 1]), (B,), Placement("cpu", [0, 1]), (b,))
        kept = run(route, shards[0], 0, alone)
        assert kept.data_ptr() != shards[0].data_ptr()


def test_a_shard_of_another_shape_is_refused() -> None:
    alone = LocalTransport(LocalWorld(1), 0)
    route = planner.route((4, 3), dtype.int64, ROW, (B,), ROW, (S(0),))
    with pytest.raises(ShapeError, match=r"rank 0 should hold a shard of shape \(4, 3\) before slice.*holds none"):
        run(route, None, 0, alone)
    with pytest.raises(ShapeError, match=r"holds one of shape \(3, 3\)"):
        run(route, torch.zeros(3, 3), 0, alone)


def test_neutral_elements() -> None:
    assert neutral("sum", torch.float32) == 0
    assert neutral("max", torch.float32) == -float("inf")
    assert neutral("min", torch.bfloat16) == float("inf")
    assert (neutral("max", torch.uint8), neutral("min", torch.int8)) == (0, 127)
    assert (neutral("max", torch.bool), neutral("min", torch.bool)) == (False, True)
