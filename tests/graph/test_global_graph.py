"""Graphs of global tensors against the same program on one rank: written state, views, stages on shared ranks."""

from __future__ import annotations

import itertools
import random
from typing import Any

import numpy as np
import pytest

import weft as flow
from tests.ranks import on
from weft import nn
from weft.core.errors import GraphError, PlacementError, RankError, SbpError
from weft.launch import spawn_threads

S, B, P = flow.sbp.split, flow.sbp.broadcast, flow.sbp.partial_sum
X = np.random.default_rng(0).normal(size=(3, 8, 4)).astype(np.float32)


class Once(nn.Graph):
    def __init__(self, m: nn.Module, optimizer: Any = None, micro: int = 1) -> None:
        super().__init__()
        self.m = m
        self.config.set_gradient_accumulation_steps(micro)
        self.trains = optimizer is not None
        if optimizer is not None:
            self.add_optimizer(optimizer)

    def build(self, x: flow.Tensor) -> flow.Tensor:
        y = self.m(x)
        if self.trains:
            y = (y**2).mean()
            y.backward()
        return y


class Memory(nn.Module):
    """Writes a buffer in place, a part of it through a view."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("seen", flow.zeros(8, 4))

    def forward(self, x: flow.Tensor) -> flow.Tensor:
        row = self.seen[1]
        self.seen.add_(x)
        row.mul_(2.0)
        self.seen[2:4, 1:] = x[:2, 1:] * 3
        return self.seen + row


def writing(sbp: Any, x_sbp: Any, graph: bool) -> list[np.ndarray]:
    place = flow.placement("cpu", ranks=list(range(flow.env.get_world_size())))
    m = Memory().to_global(placement=place, sbp=sbp)
    f = Once(m) if graph else m
    found = [f(flow.tensor(x, placement=place, sbp=x_sbp)).numpy().copy() for x in X]
    return [*found, m.seen.numpy()]


@pytest.mark.parametrize("graph", [True, False], ids=["graph", "eager"])
@pytest.mark.parametrize(("sbp", "x_sbp"), [(B, S(0)), (S(0), S(1)), (S(1), B), (P, S(0)), (P, P)])
def test_a_buffer_written_in_place(sbp: Any, x_sbp: Any, graph: bool) -> None:
    m = Memory()
    wanted = [*[m(flow.tensor(x)).numpy().copy() for x in X], m.seen.numpy()]
    for found in spawn_threads(2, writing, sbp, x_sbp, graph, deadline=60):
        for a, b in zip(found, wanted, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5)


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.parts = nn.ModuleList([nn.Linear(4, 4, bias=False) for _ in range(4)])
        self.norm = nn.BatchNorm1d(4)
        for i, p in enumerate(self.parts):
            p.weight.data.copy_(flow.tensor(np.random.default_rng(i + 1).normal(size=(4, 4)).astype(np.float32)))

    def forward(self, x: flow.Tensor) -> flow.Tensor:
        for p in self.parts:
            x = flow.tanh(p(x))
        return self.norm(x)


def training(places: list[list[int]], micro: int) -> list[np.ndarray]:
    grids = [flow.placement("cpu", ranks=r) for r in places]
    m = Net()
    for part, place in zip([*m.parts, m.norm], [*grids, grids[-1]], strict=True):
        part.to_global(placement=place, sbp=B)
    graph = Once(m, flow.optim.SGD(m.parameters(), lr=0.1, momentum=0.9), micro)
    for i, place in enumerate([*grids, grids[-1]]):
        block = graph.m.parts[i] if i < 4 else graph.m.norm
        block.to(nn.graph.GraphModule).set_stage(i, place)
    for x in X:
        graph(flow.tensor(x, placement=grids[0], sbp=S(0)))
    return [t.detach().numpy() for t in (*m.parameters(), m.norm.running_mean, m.norm.num_batches_tracked)]


PLACES = {
    "there and back": (2, [[0], [1], [0], [1]]),
    "overlapping": (3, [[0, 1], [1, 2], [0, 1], [1, 2]]),
    "data": (2, [[0, 1]] * 4),
}


@pytest.mark.parametrize("name", PLACES)
def test_stages_that_share_ranks_train_as_one_device(name: str) -> None:
    n, places = PLACES[name]
    m = Net()
    optimizer = flow.optim.SGD(m.parameters(), lr=0.1, momentum=0.9)
    for x in X:
        optimizer.zero_grad()
        (m(flow.tensor(x)) ** 2).mean().backward()
        optimizer.step()
    wanted = [t.detach().numpy() for t in (*m.parameters(), m.norm.running_mean, m.norm.num_batches_tracked)]
    results = spawn_threads(n, training, places, 1, deadline=60)
    for i, b in enumerate(wanted):
        a = max((r[i] for r in results), key=np.size)  # ranks outside hold nothing
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)


def narrow() -> np.ndarray:
    """A rank's part may have one row, where the whole has several: then there is nothing to sum."""
    place = flow.placement("cpu", ranks=[0, 1])
    w = nn.Parameter(flow.tensor(X[0][:2], placement=place, sbp=S(0)))
    m = nn.Module()
    m.w, m.forward = w, lambda x: x * w[:2] * 3
    Once(m, flow.optim.SGD([w], lr=0.5))(flow.tensor(X[1][:1], placement=place, sbp=B)).numpy()
    return w.detach().numpy()


def test_sums_over_what_a_rank_has_one_of() -> None:
    w = flow.tensor(X[0][:2], requires_grad=True)
    ((flow.tensor(X[1][:1]) * w * 3) ** 2).mean().backward()
    for found in spawn_threads(2, narrow, deadline=60):
        assert w.grad is not None
        np.testing.assert_allclose(found, w.detach().numpy() - 0.5 * w.grad.numpy(), rtol=1e-5)


@pytest.mark.filterwarnings("error:An output with one or more elements")
@pytest.mark.parametrize("name", PLACES)
def test_stages_that_share_ranks_end_with_micro_batches(name: str) -> None:
    n, places = PLACES[name]
    assert len(spawn_threads(n, training, places, 4, deadline=60)) == n


def another_layout() -> None:
    place = flow.placement("cpu", ranks=[0, 1])
    graph = Once(nn.Linear(4, 2).to_global(placement=place, sbp=B))
    graph(flow.tensor(X[0], placement=place, sbp=S(0))).numpy()
    with pytest.raises(GraphError, match=r"S\(0\).*\(B\)"):
        graph(flow.tensor(X[0], placement=place, sbp=B))
    with pytest.raises(PlacementError, match="some operands are global"):
        Once(nn.Linear(4, 2).to_global(placement=place, sbp=B))(flow.tensor(X[0]))


def test_another_layout_than_it_was_compiled_for() -> None:
    spawn_threads(2, another_layout, deadline=60)


def diverging() -> None:
    place = flow.placement("cpu", ranks=[0, 1])

    graph = Once(nn.Identity() if flow.env.get_rank() == 0 else nn.Tanh())
    graph(flow.tensor(X[0], placement=place, sbp=S(0))).numpy()


def test_ranks_that_trace_different_programs_are_told_the_line() -> None:
    with pytest.raises(RankError, match="first difference is line"):
        spawn_threads(2, diverging, deadline=60)


GRIDS = [
    ([[0, 1], [2, 3]], [0, 1, 2, 3]), ([0, 1, 2, 3], [[0, 1], [2, 3]]), ([0], [[0, 1], [2, 3]]),
    ([[0, 1], [2, 3]], [[0, 2], [1, 3]]), ([0, 1], [[0], [1]]), ([[0]], [0]), ([0, 1, 2, 3], [3, 2, 1, 0]),
]  # fmt: skip


class Over(nn.Graph):
    def __init__(self, place: Any, sbps: Any) -> None:
        super().__init__()
        self.place, self.sbps = place, sbps

    def build(self, x: Any) -> Any:
        return [(x * 2).to_global(placement=self.place, sbp=sbp) * 3 for sbp in self.sbps]


def from_grid_to_grid() -> list[str]:
    """Every layout of one placement to every layout of another; what differs from the value."""
    wrong = []
    values = np.arange(6.0).reshape(2, 3)  # fewer rows than ranks
    for ranks, others in GRIDS:
        a, b = (flow.placement("cpu", ranks=r) for r in (ranks, others))
        layouts = list(itertools.product([B, S(0), P], repeat=b.ndim))
        for one in itertools.product([B, S(0), P], repeat=a.ndim):
            graph = Over(b, layouts)
            for other, y in zip(layouts, graph(flow.tensor(values, placement=a, sbp=list(one))), strict=True):
                got = y.numpy()
                if flow.env.get_rank() in b and got.tolist() != (values * 6).tolist():
                    wrong.append(f"{a} {one} -> {b} {other}: {got}")
            graph.close()
    return wrong


def test_between_any_two_placements() -> None:
    assert spawn_threads(4, from_grid_to_grid, deadline=60) == [[]] * 4


class Twice(nn.Graph):
    def __init__(self, *ways: tuple[Any, Any]) -> None:
        super().__init__()
        self.ways = ways

    def build(self, x: Any) -> Any:
        y = x * 2
        return [y.to_global(placement=p, sbp=s).to_global(placement=x.placement, sbp=x.sbp) + 1 for p, s in self.ways]


def assign_columns(x: flow.Tensor, y: flow.Tensor) -> None:
    x[:, :2] = y[:, :2]


WRITES: list[Any] = [
    assign_columns, lambda x, y: x.add_(y), lambda x, y: x.masked_fill_(y > 0, 3.0), lambda x, y: x.zero_(),
    lambda x, y: x.copy_(y), lambda x, y: x.__setitem__(flow.tensor([0, 3]), y[:2]),
]  # fmt: skip


@on(2)
def test_what_is_written_in_place_keeps_its_layout() -> None:
    place = flow.placement("cpu", [0, 1])
    value = [flow.tensor(X[i], placement=place, sbp=B) for i in range(2)]
    for write, x_sbp, y_sbp in itertools.product(WRITES, (B, S(0), S(1), P), (B, S(0), S(1))):

        class Writes(nn.Graph):
            def build(self, x: flow.Tensor, y: flow.Tensor, write: Any = write) -> flow.Tensor:
                x = x.clone()
                write(x, y)
                return x

        x, y = value[0].to_global(sbp=x_sbp), value[1].to_global(sbp=y_sbp)
        written, eager = Writes()(x, y), x.clone()
        write(eager, y)
        assert written.sbp == eager.sbp == (x_sbp,) and np.allclose(written.numpy(), eager.numpy())


@on(4)
def test_one_tensor_moves_to_two_placements() -> None:
    values, home = np.arange(6.0), flow.placement("cpu", [0, 1])
    for ranks, others in itertools.combinations_with_replacement([[0], [2, 0], [0, 1, 2], [[0, 1], [2, 3]], [1, 3]], 2):
        a, b = (flow.placement("cpu", r) for r in (ranks, others))
        for one, other in ((B, B), (S(0), B), (B, S(0))):
            graph = Twice((a, [one] * a.ndim), (b, [other] * b.ndim))
            results: Any = graph(flow.tensor(values, placement=home, sbp=S(0)))
            found = [y.numpy() for y in results]
            if flow.env.get_rank() in home:
                assert [y.tolist() for y in found] == [(values * 2 + 1).tolist()] * 2, (ranks, others, one, other)
            graph.close()


@on(2)
def test_parts_of_a_largest_value_begin_with_the_least() -> None:
    class Largest(nn.Graph):
        def build(self, x: flow.Tensor) -> flow.Tensor:
            return x.to_global(sbp=flow.sbp.partial_max)

    x = flow.tensor([-3.0, -2.0], placement=flow.placement("cpu", [0, 1]), sbp=flow.sbp.split(0))
    assert Largest()(x).numpy().tolist() == [-3.0, -2.0]


class Rows(nn.Graph):
    """Compares rows of two inputs, micro-batch by micro-batch, and gives them in a layout, or only some of each."""

    def __init__(self, place: Any, sbp: Any, some: int) -> None:
        super().__init__()
        self.place, self.sbp, self.some = place, sbp, some
        self.config.set_gradient_accumulation_steps(2)

    def build(self, x: flow.Tensor, y: flow.Tensor) -> Any:
        rows = (x * 2 + y)[: self.some] if self.some else x * 2 + y
        return (x - y).abs().sum(), rows.to_global(placement=self.place, sbp=self.sbp)


@pytest.mark.parametrize("ranks", [[0, 1], [[0, 1], [2, 3]]], ids=["two", "grid"])
def test_micro_batches_hold_the_same_rows_of_all_inputs_and_results_come_in_their_order(ranks: Any) -> None:
    place, alone, there = (flow.placement("cpu", ranks=each) for each in (ranks, [0], [1, 0]))
    other = [(S(0),), (S(1),), (flow.sbp.partial_sum,)]
    layouts = list(itertools.product([S(0), S(1), B], repeat=place.ndim))
    x = np.arange(32, dtype=np.float32).reshape(8, 4)

    outs = [*((s, place) for s in layouts), ((B,), alone), *((s, there) for s in other)]
    cases = list(itertools.product(layouts[:: place.ndim], layouts[:: place.ndim], outs, [0, 3]))

    def ways(sbp: Any) -> int:
        return 2 ** sum(s == S(0) for s in sbp)

    def main() -> None:
        for a, b, (out, where), some in random.Random(0).sample(cases, len(cases) // 5):
            graph = Rows(where, out, some)
            args = [flow.tensor(x, placement=place, sbp=s) for s in (a, b)]
            if ways(a) != ways(b):
                with pytest.raises(SbpError, match="can't be cut into"):
                    graph(*args)
                continue
            apart, rows = graph(*args)
            blocks = x.reshape(ways(a), 2, -1, 4).swapaxes(0, 1).reshape(2, 4, 4)[:, :some] if some else x
            assert apart.tolist() == [0.0, 0.0] and rows.sbp == out and rows.placement is where
            np.testing.assert_array_equal(rows.numpy(), 3 * blocks.reshape(-1, 4))
            graph.close()

    spawn_threads(place.ranks.size, main, deadline=120)
