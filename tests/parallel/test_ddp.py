"""Data parallel on local tensors: as one rank would train on all of the data."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import weft as flow
from weft.launch.threads import spawn_threads
from weft.parallel.ddp import DistributedDataParallel, no_sync

DATA = torch.randn(6, 4, generator=torch.Generator().manual_seed(0)).tolist()


def model() -> flow.nn.Module:
    return flow.nn.Sequential(flow.nn.Linear(4, 8), flow.nn.Tanh(), flow.nn.Linear(8, 1))


def train(net: Any, x: Any, steps: int = 3) -> list[Any]:
    optimizer = flow.optim.AdamW(net.parameters(), lr=0.1)
    for _ in range(steps):
        optimizer.zero_grad()
        (net(x) ** 2).mean().backward()
        optimizer.step()
    return [p.tolist() for p in net.parameters()]


@pytest.mark.parametrize("bucket_size", [1, 100, 1 << 20])
def test_ranks_agree_and_train_on_all_of_the_data(bucket_size: int) -> None:
    def run() -> Any:
        rank = flow.env.get_rank()
        flow.manual_seed(rank)
        net = model()
        start = [p.tolist() for p in net.parameters()]
        assert DistributedDataParallel(net, bucket_size=bucket_size) is net
        return start, train(net, flow.tensor(DATA[rank::2]))

    (start, first), (_, second) = spawn_threads(2, run)
    assert first == second
    alone = model()
    alone.load_state_dict({k: flow.tensor(v) for k, v in zip(alone.state_dict(), start, strict=True)})
    for a, b in zip(train(alone, flow.tensor(DATA)), first, strict=True):
        torch.testing.assert_close(torch.tensor(b), torch.tensor(a), rtol=1e-4, atol=1e-5)


def test_gradients_that_stay_at_home_join_the_next_average() -> None:
    def run() -> Any:
        rank = flow.env.get_rank()
        net = DistributedDataParallel(flow.nn.Linear(1, 1, bias=False))
        with no_sync(net):
            net(flow.tensor([[1.0 + rank]])).sum().backward()
        alone = net.weight.grad.item()
        net(flow.tensor([[10.0 * rank]])).sum().backward()
        return alone, net.weight.grad.item()

    assert spawn_threads(2, run) == [(1.0, 6.5), (2.0, 6.5)]


def test_buffers_follow_the_first_rank() -> None:
    def run() -> float:
        net = flow.nn.Identity()
        net.weight = flow.nn.Parameter(flow.ones(1))
        net.register_buffer("seen", flow.tensor([float(flow.env.get_rank())]))
        net = DistributedDataParallel(net)
        net.seen.add_(flow.env.get_rank() + 1)
        net(flow.ones(1))
        return net.seen.item()

    assert spawn_threads(2, run) == [1.0, 1.0]


def test_a_parameter_that_backward_misses_is_named() -> None:
    def run() -> None:
        net = DistributedDataParallel(flow.nn.ModuleDict({"used": flow.nn.Linear(1, 1), "idle": flow.nn.Linear(1, 1)}))
        net.forward = lambda x: net["used"](x)  # type: ignore[method-assign]
        net(flow.ones(1, 1)).sum().backward()
        with pytest.raises(flow.errors.AutogradError, match=r"none for idle\.weight, idle\.bias"):
            net(flow.ones(1, 1))

    spawn_threads(2, run)


def test_what_cannot_be_averaged() -> None:
    with pytest.raises(flow.errors.ArgumentError, match="takes a module"):
        DistributedDataParallel(3)  # type: ignore[type-var]
    with pytest.raises(flow.errors.ArgumentError, match="no parameter to train"):
        DistributedDataParallel(flow.nn.ReLU())
    net = flow.nn.Linear(1, 1).to_global(flow.placement("cpu", [0]), flow.sbp.broadcast)
    with pytest.raises(flow.errors.ArgumentError, match="these are global"):
        DistributedDataParallel(net)
