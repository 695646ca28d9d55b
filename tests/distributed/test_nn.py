"""Collectives that gradients flow through: those of the whole computation, written out on one rank."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import weft as flow
import weft.distributed as dist
from weft.core.errors import ArgumentError
from weft.distributed import nn
from weft.launch import spawn_threads

N = 3


def weight(*shape: int) -> torch.Tensor:
    return torch.arange(1.0, 1.0 + torch.Size(shape).numel()).view(shape).sin()


def all_to_all(x: Any) -> Any:
    me = dist.get_rank()
    parts = x.split([1, 2, 3])
    return flow.cat(nn.all_to_all([flow.zeros(me + 1, 2) for _ in range(N)], parts))


def uneven(x: Any) -> Any:
    me = dist.get_rank()
    return nn.all_to_all_single(flow.zeros(3 * (me + 1), 2), x, [me + 1] * 3, [1, 2, 3])


def taken(xs: list[Any]) -> list[Any]:
    return [torch.cat([x.split([1, 2, 3])[r] for x in xs]) for r in range(N)]


CASES: dict[str, tuple[Callable[[Any], Any], Callable[[list[Any]], list[Any]]]] = {
    "all_reduce": (nn.all_reduce, lambda xs: [sum(xs)] * N),
    "mean": (lambda x: nn.all_reduce(x, dist.ReduceOp.AVG), lambda xs: [sum(xs) / N] * N),
    "all_gather": (lambda x: flow.cat(nn.all_gather(x)), lambda xs: [torch.cat(xs)] * N),
    "broadcast": (lambda x: nn.broadcast(x, 1), lambda xs: [xs[1]] * N),
    "reduce_scatter": (
        lambda x: nn.reduce_scatter(flow.zeros(2, 2), x.split(2)),
        lambda xs: [sum(x.split(2)[r] for x in xs) for r in range(N)],
    ),
    "all_to_all": (all_to_all, taken),
    "all_to_all_single": (uneven, taken),
}


@pytest.mark.parametrize("name", CASES)
def test_gradients_are_those_of_the_whole(name: str) -> None:
    ours, whole = CASES[name]
    xs = [(weight(6, 2) + r).requires_grad_() for r in range(N)]
    ys = whole(xs)
    loss: Any = sum((y.square() * weight(*y.shape) * (r + 1)).sum() for r, y in enumerate(ys))
    loss.backward()

    def run() -> tuple[Any, Any]:
        me = dist.get_rank()
        x = flow.tensor((weight(6, 2) + me).numpy(), requires_grad=True)
        y = ours(x)
        (y.square() * flow.tensor(weight(*y.shape).numpy()) * (me + 1)).sum().backward()
        assert x.grad is not None
        return y.detach().numpy(), x.grad.numpy()

    for (y, g), right, x in zip(spawn_threads(N, run, deadline=60), ys, xs, strict=True):
        torch.testing.assert_close(torch.from_numpy(y), right.detach())
        torch.testing.assert_close(torch.from_numpy(g), x.grad if x.grad is not None else torch.zeros(6, 2))


def test_a_sum_on_one_rank_sends_its_gradient_to_all() -> None:
    def run() -> Any:
        x = flow.ones(2, requires_grad=True)
        y = nn.reduce(x * (dist.get_rank() + 1), 1)
        (y if dist.get_rank() == 1 else y * 7).sum().backward()
        assert x.grad is not None
        return y.tolist() if dist.get_rank() == 1 else None, x.grad.tolist()

    assert spawn_threads(N, run, deadline=60) == [(None, [1.0] * 2), ([6.0] * 2, [2.0] * 2), (None, [3.0] * 2)]


def test_what_has_no_gradient_is_refused() -> None:
    with pytest.raises(ArgumentError, match="only sums and means have gradients"):
        nn.all_reduce(flow.ones(1), dist.ReduceOp.MAX)
