"""Ranks with unequal numbers of batches train as the ranks with batches would."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import weft as flow
from tests.ranks import on
from weft import nn
from weft.core.errors import ArgumentError, RankError
from weft.distributed.algorithms.join import Join, Joinable, JoinHook
from weft.launch import spawn_threads
from weft.nn.parallel import DistributedDataParallel as DDP

DATA = torch.randn(4, 3, 5, generator=torch.Generator().manual_seed(0))  # batches, rows


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up, self.norm, self.down = nn.Linear(5, 4), nn.BatchNorm1d(4), nn.Linear(4, 1)

    def forward(self, x: Any) -> Any:
        return self.down(self.norm(self.up(x)))


def train(rank: int, batches: list[int], by_all: bool, older: bool = False) -> Any:
    """Rank r has `batches[r]` batches."""
    flow.manual_seed(0)
    model = DDP(Net())
    optimizer = flow.optim.SGD(model.parameters(), lr=0.1)
    context = model.join(by_all) if older else Join([model], divide_by_initial_world_size=by_all)  # type: ignore[operator]
    with context:
        for i in range(batches[rank]):
            optimizer.zero_grad()
            model(flow.tensor((DATA[i] + rank).tolist())).square().mean().backward()
            optimizer.step()
    return [t.tolist() for t in model.state_dict().values()]


def simulated(batches: list[int], by_all: bool) -> Any:
    """The same in torch, where one process has all of the ranks' batches."""
    flow.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(5, 4), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 1))
    own = [t.to_torch() for t in Net().state_dict().values()]
    net.load_state_dict(dict(zip(net.state_dict(), own, strict=True)))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for i in range(max(batches)):
        left = [r for r, n in enumerate(batches) if i < n]
        optimizer.zero_grad()
        kept = buffers = [b.clone() for b in net.buffers()]
        for r in left:
            for b, value in zip(net.buffers(), buffers, strict=True):
                b.copy_(value)
            (net(DATA[i] + r).square().mean() / (len(batches) if by_all else len(left))).backward()
            # the statistics are those of the rank that the others follow next: the last that has another batch
            follows = max((r for r, n in enumerate(batches) if i + 1 < n), default=left[-1])
            if r == follows:
                kept = [b.clone() for b in net.buffers()]
        for b, value in zip(net.buffers(), kept, strict=True):
            b.copy_(value)
        optimizer.step()
    return [t.tolist() for t in net.state_dict().values()]


@pytest.mark.parametrize(
    ("batches", "by_all", "older"), [([2, 4], True, False), ([4, 2], False, True), ([1, 0, 3], True, True)]
)
def test_a_rank_without_inputs_shadows_the_others(batches: list[int], by_all: bool, older: bool) -> None:
    expected = simulated(batches, by_all)
    ranks = len(batches)
    for found in spawn_threads(ranks, lambda: train(flow.env.get_rank(), batches, by_all, older), deadline=60):
        for a, b in zip(found, expected, strict=True):
            torch.testing.assert_close(torch.tensor(a), torch.tensor(b), rtol=1e-4, atol=1e-5)


class Counter(Joinable):
    """As PyTorch's tutorial has it."""

    def __init__(self) -> None:
        super().__init__()
        self.total, self.calls, self.last = 0, 0, False

    def __call__(self) -> None:
        Join.notify_join_context(self)
        self.add(1)

    def add(self, n: int) -> None:
        found = flow.tensor([n])
        flow.distributed.all_reduce(found)
        self.total += found.item()  # type: ignore[assignment]

    def join_hook(self, **kwargs: Any) -> JoinHook:
        return CounterHook(self)

    @property
    def join_device(self) -> Any:
        return flow.device("cpu")

    @property
    def join_process_group(self) -> Any:
        return None


class CounterHook(JoinHook):
    def __init__(self, counter: Counter) -> None:
        self.counter = counter

    def main_hook(self) -> None:
        self.counter.add(0)
        self.counter.calls += 1

    def post_hook(self, is_last_joiner: bool) -> None:
        self.counter.last = is_last_joiner


@on(3)
def test_anything_may_join() -> None:
    counter, rank = Counter(), flow.env.get_rank()
    with Join([counter]):
        for _ in range(2 + rank):
            counter()
    assert counter.total == 9 and counter.calls == 2 - rank and counter.last is (rank == 2)
    with Join([counter], enable=False):
        assert Join.notify_join_context(counter) is None
    with pytest.raises(ArgumentError, match="at least one"):
        Join([])


@on(2)
def test_all_ranks_can_stop_together() -> None:
    counter, rank = Counter(), flow.env.get_rank()
    with pytest.raises(RankError, match="no more inputs"), Join([counter], throw_on_early_termination=True):
        for _ in range(1 + rank):
            counter()


@on(2)
def test_an_iteration_without_an_average_is_shadowed_as_such() -> None:
    flow.manual_seed(0)
    model, rank = DDP(Net()), flow.env.get_rank()
    with Join([model]):
        for i in range(1 + 2 * rank):
            x = flow.tensor(DATA[i].tolist())
            if i == 1:
                with model.no_sync():  # type: ignore[operator]
                    model(x).sum().backward()
            else:
                model(x).sum().backward()
    assert model.up.weight.grad is not None
