"""Every conversion, done by all ranks of an imagined world, against the logical tensor."""

from __future__ import annotations

import functools
import itertools
import random

import pytest
import torch

from tests.boxing.in_one_process import LockStep, assemble, shards_of, simulate
from weft.boxing import planner, routes, steps
from weft.boxing.routes import Route
from weft.boxing.steps import Exchange, State
from weft.boxing.two_level import Call, Calls
from weft.core import dtype, sbp
from weft.core.errors import RankError, SbpError
from weft.core.placement import Placement
from weft.core.sbp import NdSbp
from weft.core.spec import Spec

S, B, P, PMAX, PMIN = sbp.split, sbp.broadcast, sbp.partial_sum, sbp.partial_max, sbp.partial_min
KINDS = [S(0), S(1), B, P, PMAX]
WORLD = range(8)


def cpu(ranks: object) -> Placement:
    return Placement("cpu", ranks)


@functools.cache
def whole(shape: tuple[int, ...], kind: dtype.DType = dtype.int64) -> torch.Tensor:
    generator = torch.Generator().manual_seed(3)
    return torch.randint(0 if kind is dtype.uint8 else -50, 50, shape, generator=generator).to(kind.torch)


@functools.cache
def shared_out(spec: Spec) -> tuple[torch.Tensor, dict[int, torch.Tensor]]:
    """A tensor and its shards; `check` sees to it that nobody writes into them."""
    logical = whole(spec.shape, spec.dtype)
    shards = shards_of(logical, spec.placement, spec.nd_sbp, seed=1)
    assert torch.equal(assemble(shards, spec), logical)
    return logical, shards


def check(route: Route) -> None:
    route.verify()
    assert routes.parse(str(route)) == route
    logical, shards = shared_out(route.src)
    before = {rank: shard.clone() for rank, shard in shards.items()}
    after = simulate(route, shards, world=WORLD)
    assert torch.equal(assemble(after, route.dst), logical), str(route)
    for rank in WORLD:
        assert tuple(after[rank].shape) == route.dst.local_shape(rank)
        if rank in before:
            assert torch.equal(shards[rank], before[rank]), f"{route} writes into what it was given"


def check_pair(shape: tuple[int, ...], src: State, dst: State) -> None:
    """By the planner's route, and by the exchange alone, which has to know everything."""
    planned = planner.route(shape, dtype.int64, *src, *dst)
    exchange = Route(planned.src, planned.dst, (Exchange(src, dst),))
    for route in dict.fromkeys((planned, exchange)):
        check(route)


PAIRS = [
    ([0], [0]), ([0, 1], [0, 1]), ([0, 1, 2], [0, 1, 2]), ([0, 1, 2, 3], [0, 1, 2, 3]),  # the same
    ([0, 1], [1, 0]), ([0, 1], [[0, 1]]), ([[0], [1], [2]], [0, 1, 2]),  # in other names
    ([0, 1], [2, 3]), ([0, 1, 2], [4, 5]), ([3], [0, 1, 2]), ([0, 1, 2, 3], [5]),  # disjoint
    ([0, 1], [1, 2]), ([0, 1, 2], [1, 2, 3, 4]), ([0, 1, 2, 3], [2, 0]), ([1], [0, 1, 2]),  # overlapping
]  # fmt: skip


@pytest.mark.parametrize("shape", [(4, 6), (5, 3), (1, 2), (0, 3)], ids=str)
def test_every_conversion_between_placements_of_one_axis(shape: tuple[int, ...]) -> None:
    for src, dst in PAIRS:
        p, q = cpu(src), cpu(dst)
        for a, b in itertools.product(KINDS, KINDS):
            check_pair(shape, State(p, (a,) * p.ndim), State(q, (b,) * q.ndim))


@pytest.mark.parametrize(
    ("src", "dst", "shape"),
    [
        ([[0, 1], [2, 3]], [[0, 1], [2, 3]], (5, 3)),
        ([[0, 1], [2, 3]], [[0, 1], [2, 3]], (4, 8)),
        ([[0, 1], [2, 3]], [[0, 2], [1, 3]], (3, 1)),
        ([[0, 1], [2, 3]], [[4, 5], [6, 7]], (5, 4)),
        ([[0, 1, 2], [3, 4, 5]], [[0, 1, 2], [3, 4, 5]], (7, 5)),
        ([[0, 1, 2], [3, 4, 5]], [[5, 3], [6, 7]], (4, 5)),
    ],
    ids=str,
)
def test_every_conversion_between_grids(src: object, dst: object, shape: tuple[int, ...]) -> None:
    pairs = list(itertools.product(KINDS, KINDS))
    for a, b in itertools.product(pairs, pairs):
        check_pair(shape, State(cpu(src), a), State(cpu(dst), b))


@pytest.mark.parametrize("flat", [[0, 1, 2, 3], [3, 6], [0, 1, 2]], ids=str)
def test_every_conversion_between_a_grid_and_a_row(flat: list[int]) -> None:
    grid, row = cpu([[0, 1], [2, 3]]), cpu(flat)
    for a, b, c in itertools.product(KINDS, KINDS, KINDS):
        check_pair((4, 4), State(grid, (a, b)), State(row, (c,)))
        check_pair((5, 3), State(row, (c,)), State(grid, (a, b)))


def test_three_axes() -> None:
    draw = random.Random(5)
    cube = cpu([[[0, 1], [2, 3]], [[4, 5], [6, 7]]])
    for _ in range(80):
        a, b = (tuple(draw.choice([*KINDS, PMIN]) for _ in range(3)) for _ in range(2))
        check_pair((5, 3), State(cube, a), State(cube, b))


def legal(shape: tuple[int, ...], state: State) -> list[steps.Step]:
    """Every per-axis step that its own rule allows here, found by trying all."""
    axes, dims, reduces = range(len(state.nd_sbp)), range(len(shape)), ("sum", "max", "min")
    every: list[steps.AxisStep] = []
    for axis in axes:
        every += [steps.AllReduce(axis, r) for r in reduces] + [steps.ToPartial(axis, r) for r in reduces]
        every += [steps.AllGather(axis, d) for d in dims] + [steps.Slice(axis, d) for d in dims]
        every += [steps.ReduceScatter(axis, d, r) for d in dims for r in reduces]
        every += [steps.SplitToPartial(axis, d, r) for d in dims for r in reduces]
        every += [steps.AllToAll(axis, d, e) for d in dims for e in dims if d != e]
    found: list[steps.Step] = []
    for step in every:
        try:
            step.after(shape, state)
        except SbpError:
            continue
        found.append(step)
    return found


@pytest.mark.parametrize("ranks", [[0, 1, 2], [[0, 1, 2], [3, 4, 5]], [[[0, 1], [2, 3]], [[4, 5], [6, 7]]]], ids=str)
def test_any_legal_walk_keeps_the_tensor(ranks: object) -> None:
    draw = random.Random(11)
    place = cpu(ranks)
    for _ in range(150):
        shape = draw.choice([(5, 4), (3, 7), (2, 1), (4, 3, 2)])
        start: NdSbp = tuple(draw.choice([*KINDS, PMIN]) for _ in range(place.ndim))
        state, taken = State(place, start), []
        for _ in range(4):
            step = draw.choice(legal(shape, state))
            state = step.after(shape, state)
            taken.append(step)
        spec = Spec(shape, dtype.int64, place, start)
        check(Route(spec, spec.replace(nd_sbp=state.nd_sbp), tuple(taken)))


@pytest.mark.parametrize("kind", [dtype.float32, dtype.bfloat16, dtype.int8, dtype.uint8, dtype.bool_], ids=str)
def test_dtypes_have_their_neutral_elements(kind: dtype.DType) -> None:
    for place in (cpu([0, 1, 2]), cpu([2, 3])):
        for b in [PMAX, PMIN, P, B]:
            for a in [S(0), S(1), B]:
                check(planner.route((5, 3), kind, cpu([0, 1, 2]), (a,), place, (b,)))


def test_zero_dimensions() -> None:
    for src, dst in PAIRS:
        p, q = cpu(src), cpu(dst)
        for a, b in itertools.product([B, P, PMAX], repeat=2):
            check_pair((), State(p, (a,) * p.ndim), State(q, (b,) * q.ndim))


def test_what_a_user_sees_of_partials() -> None:
    logical, place = whole((4, 2)), cpu([0, 1])
    first = simulate(planner.route((4, 2), dtype.int64, place, (B,), place, (P,)), shards_of(logical, place, (B,)))
    assert torch.equal(first[0], logical) and not first[1].any()
    inside = simulate(
        planner.route((4, 2), dtype.int64, place, (S(0),), place, (P,)), shards_of(logical, place, (S(0),))
    )
    assert torch.equal(inside[0][:2], logical[:2]) and not inside[0][2:].any()
    assert torch.equal(inside[1][2:], logical[2:]) and not inside[1][:2].any()
    each = simulate(planner.route((4, 2), dtype.int64, place, (B,), place, (PMAX,)), shards_of(logical, place, (B,)))
    assert torch.equal(each[0], logical) and torch.equal(each[1], logical)


def test_partials_nest_first_axis_outermost() -> None:
    grid = cpu([[0, 1], [2, 3]])
    shards = {rank: torch.tensor([value]) for rank, value in enumerate([3, 5, 10, 20])}
    assert assemble(shards, Spec((1,), dtype.int64, grid, (P, PMAX))).item() == 25  # a sum of maxima
    assert assemble(shards, Spec((1,), dtype.int64, grid, (PMAX, P))).item() == 30  # a maximum of sums
    for how, total in [((P, PMAX), 25), ((PMAX, P), 30)]:
        for dst in (State(grid, (B, B)), State(cpu([5, 6]), (B,))):
            after = simulate(planner.route((1,), dtype.int64, grid, how, *dst), shards)
            assert {after[r].item() for r in dst.placement.members} == {total}


def test_it_refuses_replicas_that_differ() -> None:
    spec = Spec((2,), dtype.int64, cpu([0, 1]), (B,))
    with pytest.raises(SbpError, match="ranks 0 and 1 should hold the same shard"):
        assemble({0: torch.tensor([1, 2]), 1: torch.tensor([1, 3])}, spec)
    with pytest.raises(SbpError, match=r"rank 0 holds \(1,\) where .* has \(2,\)"):
        assemble({0: torch.tensor([1]), 1: torch.tensor([1])}, spec)


def test_it_reports_ranks_that_would_wait_for_ever() -> None:
    def calling(method: str) -> Calls:
        t = torch.ones(1)
        yield Call(method, (0, 1), (t, "sum"))
        return t

    with pytest.raises(
        RankError, match=r"for ever: rank 0 in all_reduce of \[0, 1\]; rank 1 in all_gather of \[0, 1\]"
    ):
        LockStep({0: calling("all_reduce"), 1: calling("all_gather")}).run()
    assert LockStep({r: calling("all_reduce") for r in (0, 1)}).run()[1].item() == 2
