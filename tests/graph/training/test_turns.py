"""Pipeline x tensor with micro-batches: chains of one stage that hold collectives take turns, alike on every rank."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import weft as flow
from weft import nn
from weft.launch import spawn_threads
from weft.plan import parse
from weft.plan.verify import verify

S, B = flow.sbp.split, flow.sbp.broadcast
WIDTH, STEPS, MICRO = 4, 3, 4
DATA = np.random.default_rng(0).normal(size=(STEPS, 8, WIDTH)).astype(np.float32)
WEIGHTS = np.random.default_rng(1).normal(size=(4, WIDTH, WIDTH)).astype(np.float32) * 0.5


LAYOUT = {"scale": B, "up": S(1), "down": S(0)}


class Stage(nn.Module):
    """Columns, then rows: forward ends with an all-reduce, and so does backward."""

    def __init__(self, a: np.ndarray, b: np.ndarray) -> None:
        super().__init__()
        self.scale = nn.Parameter(flow.ones(WIDTH))
        self.up, self.down = nn.Parameter(flow.tensor(a)), nn.Parameter(flow.tensor(b))

    def forward(self, x: flow.Tensor) -> flow.Tensor:
        return flow.tanh(flow.tanh((x * self.scale) @ self.up) @ self.down)


class Train(nn.Graph):
    def __init__(self, stages: list[Stage], places: list[flow.placement]) -> None:
        super().__init__()
        self.a, self.b = stages
        for i, (block, place) in enumerate(zip((self.a, self.b), places, strict=True)):
            block.to(nn.graph.GraphModule).set_stage(i, place)
        self.config.set_gradient_accumulation_steps(MICRO)
        self.add_optimizer(flow.optim.SGD([*stages[0].parameters(), *stages[1].parameters()], lr=0.1))

    def build(self, x: flow.Tensor) -> flow.Tensor:
        loss = (self.b(self.a(x)) ** 2).mean()
        loss.backward()
        return loss


def train() -> tuple[list[float], str, list[tuple[str, int]]]:
    places = [flow.placement("cpu", ranks=[0, 1]), flow.placement("cpu", ranks=[2, 3])]
    stages = [Stage(WEIGHTS[0], WEIGHTS[1]), Stage(WEIGHTS[2], WEIGHTS[3])]
    for stage, place in zip(stages, places, strict=True):
        stage.to_global(placement=place, sbp=lambda name, p: LAYOUT[name])
    graph = Train(stages, places)
    acts: list[tuple[str, int]] = []
    batches = [flow.tensor(x, placement=places[0], sbp=B) for x in DATA]
    graph.compile(batches[0])
    graph._compiled.running.executor.trace = lambda task, act, start, end: acts.append((task.name, act))
    losses = [graph(x) for x in batches]  # all in flight
    everywhere = flow.env.all_device_placement("cpu")
    read = [loss.mean().to_global(placement=everywhere, sbp=B).item() for loss in losses]
    return read, str(graph.plan), acts


def expected() -> list[float]:
    w = [torch.tensor(a, requires_grad=True) for a in WEIGHTS]
    scale = [torch.ones(WIDTH, requires_grad=True) for _ in range(2)]
    optimizer = torch.optim.SGD([*w, *scale], lr=0.1)
    losses = []
    for x in DATA:
        h = torch.tensor(x)
        for s, (a, b) in zip(scale, (w[:2], w[2:]), strict=True):
            h = torch.tanh(torch.tanh((h * s) @ a) @ b)
        loss = (h**2).mean()
        losses.append(loss.item())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return losses


@pytest.fixture(scope="module")
def results() -> list[tuple[list[float], str, list[tuple[str, int]]]]:
    return spawn_threads(4, train, deadline=60)


def test_losses_are_those_of_one_device(results) -> None:
    for losses, _, _ in results:
        np.testing.assert_allclose(losses, expected(), rtol=1e-4)


def test_plans_fit_together_and_print(results) -> None:
    plans = [parse(text) for _, text, _ in results]
    assert [str(p) for p in plans] == [text for _, text, _ in results]
    verify(plans)


def turns(plan_text: str) -> set[str]:
    """The chains that run once per micro-batch among those that a turn goes round between."""
    plan = parse(plan_text)
    ids = {r.producer for r in plan.registers if r.name.endswith(".turn")}
    return {t.name for t in plan.tasks if t.id in ids and t.acts > 1}


def test_ranks_of_a_stage_act_in_one_order(results) -> None:
    assert len(turns(results[0][1])) == 2
    for stage in (results[:2], results[2:]):
        (_, text, mine), (_, _, theirs) = stage
        talking = turns(text)
        order = [a for a in mine if a[0] in talking]
        assert order == [a for a in theirs if a[0] in talking]
        assert len(order) == len(talking) * MICRO * STEPS


def test_one_forward_one_backward(results) -> None:
    """The first stage runs as far ahead as its quota lets it, and no more."""
    _, text, acts = results[0]
    first, last = sorted(turns(text))
    assert [name for name, _ in acts if name in (first, last)][: 2 * MICRO] == [
        first, first, last, first, last, first, last, last,
    ]  # fmt: skip
