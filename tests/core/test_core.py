from __future__ import annotations

import itertools
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import weft as flow
from weft.core import placement as placements
from weft.core import random, sbp, shard
from weft.core import rank as ranks
from weft.core.device import Device, choose_cuda
from weft.core.dtype import every, float32, named, of, of_torch
from weft.core.errors import PlacementError, RankError, SbpError, WeftError
from weft.core.placement import Placement
from weft.core.rank import Rank, current, enter
from weft.core.spec import Spec

# ---- sbp ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("s", [sbp.split(0), sbp.split(7), sbp.broadcast, *sbp.partials.values()])
def test_an_sbp_prints_and_parses_to_itself(s: sbp.Sbp) -> None:
    assert sbp.parse(str(s)) is s
    assert [s.is_split, s.is_broadcast, s.is_partial].count(True) == 1


@pytest.mark.parametrize("call", [
    lambda: sbp.split("x"), lambda: sbp.split(-3), lambda: sbp.split(True), lambda: sbp.split(64),
    lambda: sbp.parse("Q"),
    lambda: sbp.nd([sbp.broadcast], 2), lambda: sbp.nd("b", 1), lambda: sbp.nd(3, 1),
    lambda: sbp.nd(sbp.split(2), 1, 2),
    lambda: sbp.split(),
])  # fmt: skip
def test_what_is_no_sbp(call) -> None:
    with pytest.raises(SbpError):
        call()


# ---- placement ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("grid", [[0], [2, 0, 1], [[0, 1], [2, 3]], [[[0], [1]], [[2], [3]]]])
def test_a_placement_is_one_value(grid) -> None:
    p = Placement("cpu", grid)
    assert Placement("cpu", grid) is p
    assert placements.parse(str(p)) is p
    for c in p.coordinates():
        assert p.coordinate(p.at(c)) == c
    assert p.coordinate(99) is None and 99 not in p


def test_groups_along_an_axis() -> None:
    p = Placement("cpu", [[0, 1], [2, 3]])
    assert [p.group(r, 0) for r in range(4)] == [(0, 2), (1, 3), (0, 2), (1, 3)]
    assert [p.group(r, 1) for r in range(4)] == [(0, 1), (0, 1), (2, 3), (2, 3)]


@pytest.mark.parametrize("grid", [[4, 2, 0], [[0, 1, 2], [5, 4, 3]], [[[0, 1], [2, 3]], [[4, 5], [11, 10]]]])
def test_a_group_is_a_line_of_the_grid(grid) -> None:
    p = Placement("cpu", grid)
    for axis in range(p.ndim):
        for coordinate in p.coordinates():
            line = p.ranks[(*coordinate[:axis], slice(None), *coordinate[axis + 1 :])]
            assert p.group(p.at(coordinate), axis) == tuple(line)


@pytest.mark.parametrize("make", [
    lambda: Placement("cpu", []), lambda: Placement("cpu", [0, 0]), lambda: Placement("cpu", [-1]),
    lambda: Placement("cpu", [0, 5]).check(2), lambda: Placement("gpu", [0]), lambda: Placement("cpu", "x"),
])  # fmt: skip
def test_what_is_no_placement(make) -> None:
    with pytest.raises(WeftError):
        make()


# ---- shards ----------------------------------------------------------------------------------------------------

GRIDS = [[0, 1, 2], [[0, 1], [2, 3]], [[0, 1, 2], [3, 4, 5]]]


@given(st.integers(0, 30), st.integers(1, 9))
def test_parts_are_balanced_and_in_a_row(size: int, parts: int) -> None:
    found = [shard.part(size, parts, i) for i in range(parts)]
    assert found[0][0] == 0 and found[-1][1] == size
    assert all(a[1] == b[0] for a, b in itertools.pairwise(found))
    lengths = shard.sizes(size, parts)
    assert max(lengths) - min(lengths) <= 1 and list(lengths) == sorted(lengths, reverse=True)


@given(st.sampled_from(GRIDS), st.tuples(st.integers(0, 7), st.integers(0, 7)), st.data())
def test_shards_cover_the_whole(grid, shape: tuple[int, int], data: st.DataObject) -> None:
    p = Placement("cpu", grid)
    nd = tuple(data.draw(st.sampled_from([sbp.broadcast, sbp.split(0), sbp.split(1)])) for _ in range(p.ndim))
    whole = torch.zeros(shape)
    for c in p.coordinates():
        box = shard.box(shape, p.shape, nd, c)
        whole[tuple(slice(a, b) for a, b in box)] += 1
        assert shard.local_shape(shape, p, nd, p.at(c)) == tuple(b - a for a, b in box)
        assert Spec(shape, float32, p, nd).box(p.at(c)) == box
    copies = 1
    for n, s in zip(p.shape, nd, strict=True):
        copies *= n if s.is_broadcast else 1
    assert (whole == copies).all()


@given(*[st.tuples(st.integers(0, 9), st.integers(0, 9)).map(lambda t: (min(t), max(t)))] * 2)
def test_what_two_boxes_share(a: tuple[int, int], b: tuple[int, int]) -> None:
    both = shard.intersect((a,), (b,))
    common = sorted(set(range(*a)) & set(range(*b)))
    assert (list(range(*both[0])) if both else []) == common
    if both:
        assert list(range(*a))[shard.relative(both, (a,))[0]] == common
        assert shard.volume(both) == len(common)


# ---- specs, dtypes, devices ------------------------------------------------------------------------------------


def test_specs_are_one_value() -> None:
    p = Placement("cpu", [0, 1])
    a = Spec((4, 2), float32, p, (sbp.split(0),))
    assert Spec((4, 2), float32, p, (sbp.split(0),)) is a
    assert a.replace(nd_sbp=(sbp.broadcast,)) is not a and a.replace() is a
    assert (a.bytes, a.local_shape(0), a.local_shape(5), a.has_partial) == (32, (2, 2), (0, 0), False)


@pytest.mark.parametrize("d", every, ids=lambda d: d.name)
def test_dtypes_are_torchs(d) -> None:
    assert named(d.name) is d and of_torch(d.torch) is d
    assert d.itemsize == d.torch.itemsize


@pytest.mark.parametrize("kind", [float, int, bool, complex])
def test_pythons_types_are_the_dtypes_that_torch_takes_them_for(kind: type) -> None:
    assert of(kind).torch is torch.ones(1, dtype=kind).dtype
    assert flow.ones(1, dtype=kind).dtype is flow.ones(1).to(kind).dtype is of(kind)


def test_a_device_that_weft_lacks_is_compared() -> None:
    """As programs do that would treat it otherwise."""
    assert flow.device("mps") != flow.device("cpu") and flow.device("mps") == torch.device("mps")
    with pytest.raises(WeftError, match="Weft computes on"):
        flow.device("xpu:1").check()


@pytest.mark.parametrize("text", ["abc", "cpu:x", "", "gpu"])
def test_what_is_no_device(text: str) -> None:
    with pytest.raises(WeftError):
        Device(text)


# ---- ranks ----------------------------------------------------------------------------------------------------


def test_ranks_of_a_host_take_its_gpus_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    set_to = threading.local()  # as torch's: a thread has its own

    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: getattr(set_to, "index", 0))
    monkeypatch.setattr(torch.cuda, "set_device", lambda index: setattr(set_to, "index", index))

    def found(local_index: int, chosen: int | None) -> list[int]:
        with enter(Rank(local_index, 4, local_index=local_index, local_size=4)):
            if chosen is not None:
                choose_cuda(chosen)
            return [Device("cuda").index, Device("cuda", 0).index, Device("cuda:1").index]

    for local_index, chosen, expected in ((0, None, 0), (1, None, 1), (2, None, 0), (3, None, 1), (3, 0, 0), (0, 1, 1)):
        with ThreadPoolExecutor(1) as one:  # a new thread, which has chosen nothing
            assert one.submit(found, local_index, chosen).result() == [expected, 0, 1]
    assert Device("cuda") is Device("cuda", getattr(set_to, "index", 0))


def test_a_rank_belongs_to_its_thread() -> None:
    seen = []

    def run(index: int) -> None:
        with enter(Rank(index, 3)):
            seen.append(current().index)

    with enter(Rank(2, 3)):
        for i in range(2):
            thread = threading.Thread(target=run, args=(i,))
            thread.start()
            thread.join()
        assert current().index == 2
    assert seen == [0, 1]


def test_resources_are_made_once_and_closed_backwards() -> None:
    closed: list[str] = []

    class Owned:
        def __init__(self, name: str) -> None:
            self.name = name

        def close(self) -> None:
            closed.append(self.name)

    rank = Rank()
    first = rank.resource("a", lambda r: Owned("a"))
    rank.resource("b", lambda r: Owned("b"))
    assert rank.resource("a", lambda r: Owned("never")) is first
    rank.close()
    assert closed == ["b", "a"] and not rank.resources


@pytest.mark.parametrize("index", [-1, 2])
def test_ranks_outside_their_world(index: int) -> None:
    with pytest.raises(RankError, match="0 to 1"):
        Rank(index, 2)


def test_variables_that_are_no_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "first")
    with pytest.raises(RankError, match="first"):
        ranks.of_process.__wrapped__()


@pytest.mark.parametrize(
    "told",
    [
        {"RANK": "0", "WORLD_SIZE": "0"},
        {"RANK": "2", "WORLD_SIZE": "2"},
        {"RANK": "-1", "WORLD_SIZE": "2"},
        {"RANK": "1"},  # of how many?
        {"RANK": "1", "WORLD_SIZE": "4", "LOCAL_RANK": "2", "LOCAL_WORLD_SIZE": "2"},
        {"RANK": "0", "WORLD_SIZE": "2", "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "0"},
        {"RANK": "0", "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "3"},
    ],
)
def test_variables_of_no_world(told: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ranks.VARIABLES:
        monkeypatch.delenv(name, raising=False)
    for name, value in told.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(RankError, match="RANK counts from 0 to WORLD_SIZE - 1") as caught:
        ranks.of_process.__wrapped__()
    assert str(told) in str(caught.value)


# ---- random ---------------------------------------------------------------------------------------------------


def test_a_source_is_a_generator_for_each_device_and_tells_where_it_is() -> None:
    a, b = (random.of(Rank(i, 2)) for i in range(2))
    seen = {a.fingerprint}
    for source in (a, b):
        source.manual_seed(3)
    for _ in range(100):
        drawn = [torch.rand(2, generator=s.generator(random.CPU)) for s in (a, b)]
        assert torch.equal(*drawn) and a.fingerprint == b.fingerprint not in seen
        seen.add(a.fingerprint)
    b.generator(random.CPU)
    assert a.fingerprint != b.fingerprint
    state = a.state()
    drawn = [a.generator(random.CPU).seed()]
    a.go_back(state)
    assert a.fingerprint in seen and torch.equal(a.on(random.CPU).get_state(), state[2][random.CPU])


def test_a_source_of_one_device_gives_its_generator_to_every_kernel() -> None:
    only = random.Source(random.CPU)
    assert only.generator(torch.device("cuda", 0)) is only.generator(random.CPU)  # the kernel says that it is wrong


def test_the_last_global_draw_leaves_a_fingerprint() -> None:
    with enter(Rank()) as rank:
        assert random.fingerprint(rank) == 0
        random.meet()
        first = random.fingerprint()
        random.generator(random.CPU)
        assert random.fingerprint() == first != 0
        with random.drawing_from(random.Source(random.CPU)):
            random.meet()
        assert random.fingerprint() == random.Source().fingerprint


@given(st.integers(0, 2**63), st.integers(0, 2**40))
def test_mixed_seeds_fit_torch(seed: int, count: int) -> None:
    assert 0 <= random.mix(seed, count) < 2**63


def test_seeded_puts_the_generator_back() -> None:
    cpu = torch.device("cpu")
    with enter(Rank()):
        before = random.generator(cpu)
        with random.seeded(5):
            a = torch.rand(3, generator=random.generator(cpu))
        with random.seeded(5):
            assert torch.equal(a, torch.rand(3, generator=random.generator(cpu)))
        assert random.generator(cpu) is before
    assert random.generator(torch.device("meta")) is None


def test_errors_are_also_what_python_calls_them() -> None:
    assert issubclass(PlacementError, ValueError) and issubclass(SbpError, RuntimeError)


def test_dtypes_know_their_kin() -> None:
    assert named("float64").to_complex() is named("complex128") and named("complex64").to_real() is float32
    assert named("int8").is_signed and not named("uint8").is_signed
