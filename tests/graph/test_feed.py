"""A graph that reads its batches by itself: ahead of its steps, in its layout, to the end of the data."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest
import torch

import weft as flow
from weft import nn
from weft.core.dispatch import here
from weft.core.errors import ArgumentError, EndOfData, OptionError, SbpError, ShapeError, TraceError
from weft.core.rank import current
from weft.launch import spawn_threads
from weft.utils.data import GraphLoader

PATIENCE = 30.0  # seconds for what happens within milliseconds


def batches(n: int, rows: int = 4) -> list[tuple[torch.Tensor, torch.Tensor]]:
    return [(torch.full((rows, 3), float(i)), torch.arange(rows) + i) for i in range(n)]


class Sum(nn.Graph):
    def __init__(self, loader: GraphLoader) -> None:
        super().__init__()
        self.loader = loader

    def build(self) -> Any:
        x, y = self.loader()
        return x.sum(), y


def threads() -> set[str]:
    return {t.name for t in threading.enumerate() if t.name.startswith("weft-")}


class Watched:
    """Batches that say when they are asked for, and may be held back."""

    def __init__(self, n: int, held: int = -1) -> None:
        self.n, self.held = n, held
        self.asked = [threading.Event() for _ in range(n + 1)]
        self.release = threading.Event()

    def __iter__(self) -> Iterator[torch.Tensor]:
        for i in range(self.n + 1):
            self.asked[i].set()
            if i == self.held:
                assert self.release.wait(PATIENCE)
            if i < self.n:
                yield torch.full((2,), float(i))


class One(nn.Graph):
    def __init__(self, iterable: Any) -> None:
        super().__init__()
        self.loader = GraphLoader(iterable)

    def build(self) -> flow.Tensor:
        return self.loader() * 2


@pytest.mark.filterwarnings("error::UserWarning")
def test_every_batch_once_and_then_the_end_and_then_anew() -> None:
    before = threads()
    graph = Sum(GraphLoader(batches(3)))
    for _ in range(2):
        for i in range(3):
            total, y = graph()
            assert total.item() == 12.0 * i and y.tolist() == [i, i + 1, i + 2, i + 3]
        with pytest.raises(EndOfData, match="ended after 3 batches"):
            graph()
    assert len(threads() - before) == 2  # the loader's and the background's
    graph.close()
    assert not threads() - before


def test_it_reads_ahead_as_far_as_its_copies_go() -> None:
    data = Watched(5)
    graph = One(data)
    graph.compile()
    # Nothing was launched: the loader is asked for batch 1 before step 0 has begun, and for no more than two.
    assert data.asked[1].wait(PATIENCE)
    assert not data.asked[2].is_set()
    assert graph().tolist() == [0, 0]
    assert data.asked[2].wait(PATIENCE)  # a copy was let go of
    assert not data.asked[4].is_set()
    graph.close()


def test_steps_go_on_while_a_batch_is_being_read() -> None:
    data = Watched(4, held=2)
    graph = One(data)
    first, second = graph(), graph()
    assert data.asked[2].wait(PATIENCE)
    assert first.tolist() == [0, 0] and second.tolist() == [2, 2]  # though batch 2 is under way
    data.release.set()
    assert [graph().tolist() for _ in range(2)] == [[4, 4], [6, 6]]
    graph.close()


def test_closing_with_batches_that_nobody_took() -> None:
    before = threads()
    for n in (1, 2, 5):
        graph = One(Watched(n))
        graph().numpy()
        graph.close()
    graph = One(Watched(3))
    graph.compile()
    graph.close()
    assert not threads() - before


def test_training_gives_the_losses_of_the_same_batches_given_by_hand() -> None:
    data = [(torch.randn(8, 4), torch.randn(8, 2)) for _ in range(4)]

    class Train(nn.Graph):
        def __init__(self, loader: Any, steps: int) -> None:
            super().__init__()
            flow.manual_seed(0)
            self.m, self.loader = nn.Linear(4, 2), loader
            self.add_optimizer(flow.optim.SGD(self.m.parameters(), lr=0.1))
            self.config.set_gradient_accumulation_steps(steps)

        def build(self, *batch: flow.Tensor) -> flow.Tensor:
            x, y = batch or self.loader()
            loss = nn.functional.mse_loss(self.m(x), y)
            loss.backward()
            return loss

    for steps in (1, 2):
        fed, by_hand = Train(GraphLoader(data), steps), Train(None, steps)
        for x, y in data:
            expected = by_hand(flow.tensor(x.numpy()), flow.tensor(y.numpy())).numpy()
            assert fed().numpy() == pytest.approx(expected)


def global_batches(reads: Any) -> None:
    rank = current().index
    placement = flow.placement("cpu", [0, 1])
    whole = [torch.arange(12.0).view(4, 3) + i for i in range(3)]
    mine = [w[2 * rank : 2 * rank + 2] for w in whole] if reads == "part" else whole
    loader = GraphLoader(mine, placement, flow.sbp.split(0), reads=reads)

    class Twice(nn.Graph):
        def build(self) -> flow.Tensor:
            x = loader()
            assert x.shape == (4, 3) and x.sbp == (flow.sbp.split(0),)
            return x * 2

    graph = Twice()
    for w in whole:
        assert graph().numpy().tolist() == (w * 2).tolist()
    with pytest.raises(EndOfData):
        graph()
    graph.close()


@pytest.mark.parametrize("reads", ["part", "whole"])
def test_global_batches(reads: str) -> None:
    spawn_threads(2, global_batches, reads)


def pipeline() -> None:
    """Only the first stage reads; the second, which doesn't, ends with it."""
    first, second = flow.placement("cpu", [0]), flow.placement("cpu", [1])
    data = [torch.full((2, 3), float(i)) for i in range(5)]
    loader = GraphLoader(data, first, flow.sbp.broadcast)

    class Two(nn.Graph):
        def build(self) -> flow.Tensor:
            return (loader() + 1).to_global(placement=second, sbp=flow.sbp.broadcast) * 2

    graph = Two()
    seen: list[flow.Tensor] = []
    for _ in range(2):
        with pytest.raises(EndOfData):
            while True:
                seen.append(graph())
    assert len(seen) == 10
    if current().index == 1:
        assert [t.to_local().mean().item() for t in seen] == [2.0, 4, 6, 8, 10] * 2
    graph.close()


def test_ranks_that_do_not_read_end_with_those_that_do() -> None:
    spawn_threads(2, pipeline)


def test_outside_of_a_graph() -> None:
    loader = GraphLoader([{"x": torch.ones(2)}, {"x": torch.zeros(2)}])
    for _ in range(2):
        assert loader()["x"].tolist() == [1, 1] and loader()["x"].tolist() == [0, 0]
        with pytest.raises(EndOfData):
            loader()


def test_what_the_data_does_wrong_is_raised_at_the_call_that_lacks_a_batch() -> None:
    def data() -> Iterator[torch.Tensor]:
        yield torch.ones(3)
        yield torch.ones(3)
        yield torch.ones(2)

    graph = One(data())
    assert graph().sum().item() == 6 and graph().sum().item() == 6
    with pytest.raises(ShapeError, match=r"batch 3 .*\[2\] where the first had .*\[3\].*drop_last"):
        graph()
    graph.close()

    def broken() -> Iterator[torch.Tensor]:
        yield torch.ones(3)
        raise OSError("the disk is gone")

    graph = One(broken())
    assert graph().sum().item() == 6
    with pytest.raises(OSError, match="the disk is gone"):
        graph()
    graph.close()


def test_mistakes() -> None:
    with pytest.raises(ArgumentError, match="takes an iterable of batches"):
        GraphLoader(3)  # type: ignore[arg-type]
    with pytest.raises(SbpError, match="both placement and sbp"):
        GraphLoader([], flow.placement("cpu", [0]))
    with pytest.raises(SbpError, match="split or broadcast"):
        GraphLoader([], flow.placement("cpu", [0]), flow.sbp.partial_sum)
    with pytest.raises(OptionError, match="'part'"):
        GraphLoader([], reads="all")  # type: ignore[arg-type]
    with pytest.raises(EndOfData, match="after 0 batches"):
        One([])()
    with pytest.raises(ArgumentError, match="this one is a str"):
        One(["text"])()
    loader = GraphLoader(batches(2))
    Sum(loader)()
    with pytest.raises(TraceError, match="go to Sum_"):
        loader()


class Drawing:
    """All that a loader calls of a program's, made of ops: samples, their order, their transform, their batch."""

    def __len__(self) -> int:
        return 8

    def __getitem__(self, i: int) -> Any:
        assert here.trace is None and here.stack == () and here.place is None and here.grad
        return self.transform(flow.full((2,), float(i)))

    @staticmethod
    def transform(x: flow.Tensor) -> flow.Tensor:
        return (x * 2).clamp(max=100.0) @ flow.eye(2)

    def order(self) -> Iterator[int]:
        yield from (int(i) for i in flow.arange(8).flip(0))

    @staticmethod
    def collate(samples: Any) -> flow.Tensor:
        return flow.stack(samples) + 1


@pytest.mark.parametrize("workers", [0, 1])
def test_what_a_loader_calls_is_no_part_of_the_program(workers: int) -> None:
    data = Drawing()
    loader = flow.utils.data.DataLoader(
        data, batch_size=2, sampler=data.order(), collate_fn=data.collate, num_workers=workers
    )
    graph = One(loader)
    graph.config.enable_amp()
    P = flow.placement("cpu", [0])
    with flow.no_grad(), flow.utils.global_view.global_mode(True, placement=P, sbp=flow.sbp.broadcast):
        graph.compile()
    for first in (7, 5, 3, 1):
        assert graph().tolist() == [[2 * (2 * i + 1)] * 2 for i in (first, first - 1)]
    assert {n.op for n in graph.job.nodes} == {"source", "mul", "output"}
    graph.close()


def test_whether_slices_draw_is_asked_of_the_loaders_own_numbers() -> None:
    """The program draws meanwhile, on another thread."""

    def batches() -> Iterator[flow.Tensor]:
        for f in (flow.sin, flow.sin, lambda t: t + flow.rand(1)):
            yield flow.vmap(f)(flow.ones(2, 1))

    graph = One(batches())
    assert graph().tolist() == graph().tolist()
    with pytest.raises(ArgumentError, match="the function draws random numbers"):
        graph()
    graph.close()


def test_a_loader_of_global_batches_may_compute_them() -> None:
    def each() -> list[Any]:
        P = flow.placement("cpu", [0, 1])
        made = (flow.full((2, 3), float(i)) * 2 for i in range(3))
        graph = One(made)
        graph.loader = GraphLoader(made, P, flow.sbp.split(0))
        found = [graph().sum().item() for _ in range(3)]
        graph.close()
        return found

    assert spawn_threads(2, each, deadline=PATIENCE) == [[0.0, 48.0, 96.0]] * 2
