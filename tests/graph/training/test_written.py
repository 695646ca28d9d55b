"""Variables that are written between their reads, which lie in chains of their own: each finds what eager calls do."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft as flow
from tests.graphs import Trains
from weft import nn
from weft.core.errors import CompileError
from weft.launch import spawn_threads

S, B = flow.sbp.split, flow.sbp.broadcast
Go = Callable[[Any, int], Any]  # moves a value to a rank


class Held(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Parameter(flow.full((6,), 0.7))
        self.register_buffer("buffer", flow.ones(6))

    def forward(self, x: Any) -> Any:
        """Backward needs what is made of the buffer as it was."""
        y = (x * self.buffer.clone()).exp().clamp(max=3) * self.w
        self.buffer.mul_(0.5)
        return y


def forth_and_back(x: Any, go: Go) -> Any:
    return go(go(x, 1).sin(), 0)


def trained_early(m: Any, x: Any, go: Go) -> Any:
    """The gradient is there long before the last read."""
    (x * m.w).square().mean().backward()
    return (forth_and_back(x, go) * m.w.detach()).square().mean()


def read_late(m: Any, x: Any, go: Go) -> Any:
    y = forth_and_back(x, go) * m.buffer
    m.buffer.mul_(0.5)
    loss = (y * m.w).square().mean()
    loss.backward()
    return loss


def repeated(m: Any, x: Any, go: Go) -> Any:
    loss = go(m(x), 1).square().mean()
    loss.backward()
    return loss


PROGRAMS = [trained_early, read_late, repeated]


class Train(nn.Graph):
    def __init__(self, held: Held, program: Any, steps: int) -> None:
        super().__init__()
        self.held, self.program = held, program
        self.held.to(nn.graph.GraphModule).activation_checkpointing = True
        self.add_optimizer(flow.optim.SGD(held.parameters(), lr=0.5))
        self.config.set_gradient_accumulation_steps(steps)

    def build(self, x: Any) -> Any:
        return self.program(self.held, x, lambda t, rank: t.to_global(placement=place(rank), sbp=B))


def place(rank: int) -> Any:
    return flow.placement("cpu", ranks=[rank])


def data(step: int) -> np.ndarray:
    return np.random.default_rng(step).normal(size=(4, 6)).astype(np.float32)


def on_two_ranks(steps: int) -> list[Any]:
    found = []
    for program in PROGRAMS:
        held = Held().to_global(placement=place(0), sbp=B)
        graph = Train(held, program, steps)
        losses = [graph(flow.tensor(data(i), placement=place(0), sbp=B)).numpy() for i in range(3)]
        found.append((np.ravel(losses), held.w.detach().numpy(), held.buffer.numpy()))
    return found


@pytest.mark.parametrize("steps", [1, 2])
def test_each_read_finds_what_was_written_by_then(steps: int) -> None:
    on_rank, _ = spawn_threads(2, on_two_ranks, steps, deadline=60)
    for program, (losses, w, buffer) in zip(PROGRAMS, on_rank, strict=True):
        held, expected = Held(), []
        optimizer = flow.optim.SGD(held.parameters(), lr=0.5)
        for i in range(3):
            for part in np.split(data(i), steps):
                expected.append(program(held, flow.tensor(part), lambda t, rank: t).item())
            assert held.w.grad is not None
            held.w.grad.div_(steps)
            optimizer.step()
            optimizer.zero_grad()
        for found, wanted in ((losses, expected), (w, held.w.detach().numpy()), (buffer, held.buffer.numpy())):
            np.testing.assert_allclose(found, wanted, rtol=1e-5, err_msg=program.__name__)


class Overwritten(nn.Module):
    """Statistics whose copies batch norm overwrites, and a buffer that is set to what another one was."""

    def __init__(self) -> None:
        super().__init__()
        flow.manual_seed(0)
        self.linear, self.norm = nn.Linear(6, 6), nn.BatchNorm1d(6, momentum=None)
        self.register_buffer("now", flow.ones(6))
        self.register_buffer("before", flow.zeros(6))

    def forward(self, x: Any) -> Any:
        old = self.now.clone() * 2
        self.now.add_(1.0)
        self.before.copy_(old)
        return self.norm(flow.tanh(self.linear(x) * self.norm.running_mean.exp()))


class Recomputes(nn.Graph):
    def __init__(self, budget: int) -> None:
        super().__init__()
        self.m = Overwritten()
        self.add_optimizer(flow.optim.SGD(self.m.parameters(), lr=0.1))
        if budget:
            self.config.set_memory_budget(budget)
        else:
            self.m.to(nn.graph.GraphModule).activation_checkpointing = True

    def build(self, x: Any) -> Any:
        loss = self.m(x).pow(2).mean()
        loss.backward()
        return loss


def test_what_is_overwritten_is_not_computed_again() -> None:
    x = flow.tensor(data(0))
    with pytest.raises(CompileError) as refused:
        Recomputes(1).compile(x)
    least = int(re.search(r"set_memory_budget\((\d+)\)", str(refused.value))[1])  # type: ignore[index]
    m = Overwritten()
    optimizer = flow.optim.SGD(m.parameters(), lr=0.1)
    graphs = Recomputes(0), Recomputes(least)
    for i in range(3):
        m(x * (i + 1)).pow(2).mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        for g in graphs:
            g(x * (i + 1)).numpy()
    for g in graphs:
        g.close()
        assert "again in backward" in g.explain() or ".again" in str(g.job)
        for (name, a), b in zip(g.m.to(nn.Module).state_dict().items(), m.state_dict().values(), strict=True):
            np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-4, atol=1e-6, err_msg=name)


class Rewritten(nn.Module):
    """Each call reads its weight in both layouts, and writes it."""

    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Parameter(flow.arange(8.0).reshape(2, 4) / 4)

    def forward(self, x: Any) -> Any:
        with flow.no_grad():
            self.w.copy_(self.w.softmax(0) + self.w.softmax(1))
        return x @ self.w.T


def rewritten(steps: int, sbp: Any = None, stage: int = 0) -> Any:
    model, x = Rewritten(), flow.arange(16.0).reshape(4, 4)
    if sbp is not None:
        place = flow.placement("cpu", [0, 1])
        model, x = model.to_global(placement=place, sbp=sbp), x.to_global(placement=place, sbp=B)
    graph = Trains(model, flow.optim.SGD(model.parameters(), lr=0.01), steps=steps)
    graph.config.enable_zero(stage > 0, stage=stage or 1, shard_min_size=1)
    for _ in range(2):
        graph(x)
    return model.w.numpy().tolist()


@pytest.mark.parametrize("steps", [1, 2])
@pytest.mark.parametrize("layout", [(S(0),), (S(1),), (B, 1), (B, 3)], ids=str)
def test_layouts_of_a_weight_that_is_written_follow_it(layout: tuple[Any, ...], steps: int) -> None:
    expected = rewritten(steps)
    for found in spawn_threads(2, rewritten, steps, *layout, deadline=60):
        np.testing.assert_allclose(found, expected, rtol=1e-5)
