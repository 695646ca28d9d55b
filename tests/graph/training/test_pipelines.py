"""Pipelines, plain, with several stages per rank, and with backward in two parts: all train as one device does."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np
import pytest

import weft as flow
from weft import nn
from weft.compiler.chains import Key
from weft.compiler.pipeline import Pipeline
from weft.core.errors import CompileError, RankError
from weft.launch import spawn_threads
from weft.plan import parse
from weft.plan.verify import verify

B, S = flow.sbp.broadcast, flow.sbp.split
WIDTH, BATCH, STEPS = 4, 16, 3
DATA = np.random.default_rng(0).normal(size=(STEPS, BATCH, WIDTH)).astype(np.float32)


class Stage(nn.Module):
    """What backward needs of forward in many ways: inputs of products, statistics, masks, a residual."""

    def __init__(self, seed: int, dropout: float, norm: bool) -> None:
        super().__init__()
        draws = np.random.default_rng(seed)
        self.norm = nn.LayerNorm(WIDTH) if norm else nn.Identity()
        self.up, self.down = nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(2 * WIDTH, WIDTH, bias=False)
        for p in (self.up.weight, self.up.bias, self.down.weight):
            p.data.copy_(flow.tensor(draws.normal(size=tuple(p.shape)).astype(np.float32) * 0.4))
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: flow.Tensor) -> flow.Tensor:
        w, b = self.up.weight, self.up.bias
        if x.is_global and w.placement != x.placement:  # a tied one lies with the first who has it
            w = w.to_global(placement=x.placement, sbp=B)
        h = nn.functional.linear(self.norm(x), w, b)
        return x + self.dropout(self.down(flow.tanh(h)))


class Model(nn.Module):
    def __init__(self, stages: int, dropout: float = 0.0, tied: bool = False, norm: bool = True) -> None:
        super().__init__()
        self.stages = nn.ModuleList([Stage(s, dropout, norm) for s in range(stages)])
        if tied:
            self.stages[stages - 1].up.weight = self.stages[0].up.weight

    def forward(self, x: flow.Tensor) -> flow.Tensor:
        for stage in self.stages:
            x = stage(x)
        return x


class Train(nn.Graph):
    def __init__(self, model: Model, micro: int, places: list[Any] = [], zero_bubble: bool = False) -> None:  # noqa: B006
        super().__init__()
        self.model = model
        for i, (block, place) in enumerate(zip(self.model.stages, places, strict=False)):
            block.to(nn.graph.GraphModule).set_stage(i, place)
        self.config.set_gradient_accumulation_steps(micro)
        self.config.enable_zero_bubble(zero_bubble)
        self.add_optimizer(flow.optim.SGD(model.parameters(), lr=0.1, momentum=0.9))

    def build(self, x: flow.Tensor) -> flow.Tensor:
        loss = (self.model(x) ** 2).mean()
        loss.backward()
        return loss


class Case(NamedTuple):
    """`ranks` of each stage."""

    ranks: tuple[tuple[int, ...], ...]
    micro: int
    zero_bubble: bool = False
    dropout: float = 0.0
    tied: bool = False
    checkpoint: bool = False
    tensor: bool = False


def spread(ranks: int, stages: int) -> tuple[tuple[int, ...], ...]:
    return tuple((s % ranks,) for s in range(stages))


ACROSS = ((0, 1), (2, 3))
CASES = {
    "1f1b": Case(spread(2, 2), 4),
    "interleaved": Case(spread(2, 4), 4),
    "interleaved, three each, an uneven last row": Case(spread(2, 6), 5),
    "zero bubble": Case(spread(3, 3), 8, True),
    "zero bubble, fewer micro-batches than stages": Case(spread(4, 4), 2, True),
    "zero bubble, interleaved": Case(spread(2, 4), 8, True),
    "there and back": Case(((0,), (1,), (1,), (0,)), 4, True),
    "dropout": Case(spread(2, 4), 4, True, dropout=0.3),
    "tied": Case(spread(2, 4), 4, True, tied=True),
    "tied, 1f1b": Case(spread(3, 3), 3, tied=True),
    "computed again": Case(spread(2, 4), 4, True, checkpoint=True),
    "data-parallel": Case(ACROSS, 4, True),
    "data-parallel, interleaved, dropout, tied": Case(ACROSS * 2, 4, True, 0.3, True),
    "tensor-parallel": Case(ACROSS, 4, True, tensor=True),
    "tensor-parallel, interleaved": Case(ACROSS * 2, 4, True, tensor=True),
    "a rank with more stages": Case(((1,), (0, 1), (1,)), 4),
    "ranks with some stages in common": Case(((2,), (0, 2), (1, 2)), 4, True, 0.3, True),
}
SPLIT = {"up.weight": S(0), "up.bias": S(0), "down.weight": S(1)}


def train(case: Case, kind: str = "cpu") -> tuple[list[float], dict[str, np.ndarray], str]:
    flow.manual_seed(7)
    places = [flow.placement(kind, ranks=list(r)) for r in case.ranks]
    uneven = BATCH - BATCH % case.micro
    model = Model(len(places), case.dropout, case.tied, norm=not case.tensor)
    for stage, place in zip(model.stages, places, strict=True):
        if case.tensor:
            stage.to_global(placement=place, sbp=lambda name, p: SPLIT[name])
        else:
            stage.to_global(placement=place, sbp=B)
    if case.tied:
        model.stages[len(places) - 1].up.weight = model.stages[0].up.weight
    graph = Train(model, case.micro, places, case.zero_bubble)
    if case.checkpoint:
        for block in graph.model.stages:
            block.to(nn.graph.GraphModule).activation_checkpointing = True
    sbp = S(0) if len(places[0].members) > 1 and not case.tensor else B
    losses = [graph(flow.tensor(x[:uneven], placement=places[0], sbp=sbp)) for x in DATA]  # all in flight
    everywhere = flow.env.all_device_placement(kind)
    means = [loss.mean().to_global(placement=everywhere, sbp=B).item() for loss in losses]
    found = {
        name: p.detach().to_global(placement=everywhere, sbp=B).to_local().cpu().numpy()
        for name, p in model.named_parameters()
    }
    return means, found, str(graph.plan)


@functools.cache
def alone(
    stages: int, micro: int, dropout: float, tied: bool, norm: bool, parts: int
) -> tuple[list[float], dict[str, np.ndarray]]:
    """On one device. A micro-batch has a row of each of the `parts` into which a batch is split."""
    flow.manual_seed(7)
    model = Model(stages, dropout, tied, norm)
    graph = Train(model, micro)
    uneven = BATCH - BATCH % micro
    batches = [x[:uneven].reshape(parts, micro, -1, WIDTH).swapaxes(0, 1).reshape(-1, WIDTH) for x in DATA]
    means = [graph(flow.tensor(x)).mean().item() for x in batches]
    return means, {name: p.detach().numpy() for name, p in model.named_parameters()}


@pytest.mark.parametrize("name", CASES)
def test_trains_as_one_device(name: str) -> None:
    case = CASES[name]
    world = 1 + max(r for ranks in case.ranks for r in ranks)
    parts = 1 if case.tensor else len(case.ranks[0])
    losses, wanted = alone(len(case.ranks), case.micro, case.dropout, case.tied, not case.tensor, parts)
    results = spawn_threads(world, train, case, deadline=60)
    for means, found, _ in results:
        np.testing.assert_allclose(means, losses, rtol=1e-4)
        assert found.keys() == wanted.keys()
        for key, value in wanted.items():
            np.testing.assert_allclose(found[key], value, rtol=1e-3, atol=1e-5, err_msg=key)
    plans = [parse(text) for _, _, text in results]
    assert [str(p) for p in plans] == [text for _, _, text in results]
    verify(plans)
    assert any(t.name.startswith("weights") for p in plans for t in p.tasks) == case.zero_bubble


def told(name: str) -> None:
    """One of several processes: its losses, as text."""
    print(*train(CASES[name])[0])


def test_over_processes(world: Any) -> None:
    name = "dropout"
    case = CASES[name]
    losses, _ = alone(len(case.ranks), case.micro, case.dropout, case.tied, True, 1)
    for said in world("told", 2, "auto", name).well():
        np.testing.assert_allclose([float(x) for x in said.split()], losses, rtol=1e-4)


def compiled(bubbles: tuple[bool, bool] = (True, True)) -> None:
    """Each rank is told for itself whether to leave none."""
    places = [flow.placement("cpu", ranks=[r]) for r in range(2)]
    model = Model(2)
    for stage, place in zip(model.stages, places, strict=True):
        stage.to_global(placement=place, sbp=B)
    graph = Train(model, 4, places, bubbles[flow.env.get_rank()])
    graph.compile(flow.tensor(DATA[0], placement=places[0], sbp=B))


def test_ranks_that_ask_for_different_schedules_are_told() -> None:
    with pytest.raises(RankError, match=r"(?s)rank 1 traced another.*@late"):
        spawn_threads(2, compiled, (False, True), deadline=60)


def test_no_pipeline_no_pauses() -> None:
    for micro, says in ((4, "all of the model lies on the same ranks"), (1, "there is one micro-batch")):
        with pytest.raises(CompileError, match=says):
            Train(Model(2), micro, zero_bubble=True).compile(flow.tensor(DATA[0]))


def test_plans_that_do_not_go_together_are_refused_on_all_ranks(monkeypatch: pytest.MonkeyPatch) -> None:
    right = Pipeline.copies

    def copies(self: Pipeline, a: Key, b: Key) -> int:
        return right(self, a, b) + (a.placement is not b.placement and flow.env.get_rank() == 1)

    monkeypatch.setattr(Pipeline, "copies", copies)
    with pytest.raises(CompileError, match=r"chain0-chain1 has 3 copies.* on rank 0, and 4.* on rank 1"):
        spawn_threads(2, compiled, deadline=60)


def test_what_is_computed_again_is_not_kept_from_forward() -> None:
    def kept(checkpoint: bool) -> int:
        text = spawn_threads(2, train, Case(spread(2, 2), 4, checkpoint=checkpoint), deadline=60)[0][2]
        plan = parse(text)
        chains = {t.id for t in plan.tasks if t.kind == "compute" and t.acts > 1}
        return sum(r.bytes * r.copies for r in plan.registers if {r.producer, *r.consumers} <= chains)

    assert kept(True) < kept(False) / 2
