"""Random training: a graph, two ranks and a plan loaded without the model train what the eager program does."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft as flow
from weft import nn
from weft.launch import spawn_threads
from weft.plan import parse, verify
from weft.simulator import simulate

F, S, B = nn.functional, flow.sbp.split(0), flow.sbp.broadcast
WIDTH, BATCH, STEPS = 6, 8, 3

BODIES: dict[str, Callable[[Any, Any], Any]] = {
    "residual": lambda m, x: x + m.down(F.gelu(m.up(m.norm(x)))),
    "concatenation": lambda m, x: flow.cat([m.up(x)[:, :3], m.up(x)[:, 9:]], 1).relu() + x,
    "reshape that copies": lambda m, x: x @ m.w.t().reshape(-1).reshape(WIDTH, WIDTH) + x.t().reshape(6, -1).t(),
    "in place": lambda m, x: m.same(x).mul_(0.5).add_(x).tanh_().neg().exp_() * x,
    "views": lambda m, x: flow.stack([m.same(x)[:, ::2].sin(), m.same(x)[:, 1::2].cos()], 2).reshape(x.shape[0], WIDTH),
    "gate": lambda m, x: m.up(x)[:, :6] * flow.sigmoid(m.up(x)[:, 6:]) + x.max(1, keepdim=True)[0],
    "where": lambda m, x: flow.where(m.same(x) > 0, x, m.w.sum(0) * x),
    "dropout": lambda m, x: x + F.dropout(m.same(x), 0.3),
    "noise": lambda m, x: x + flow.rand_like(x) * m.same(x),
    "twice": lambda m, x: m.same(F.silu(m.same(x))) + x.detach(),
    "softmax": lambda m, x: F.log_softmax(m.same(x), 1) + flow.einsum("bi,ij->bj", x, m.w).clamp(-1, 1),
    "chunks": lambda m, x: flow.cat([a * b for a, b in itertools.pairwise(m.up(x).chunk(4, 1)[1:])], 1) + x,
}


class Block(nn.Module):
    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind, self.norm, self.same = kind, nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(2 * WIDTH, WIDTH)
        self.w = nn.Parameter(flow.ones(WIDTH, WIDTH))

    def forward(self, x: Any) -> Any:
        return BODIES[self.kind](self, x)


OPTIMIZERS: list[Callable[[Any], Any]] = [
    lambda ps: flow.optim.SGD(ps, lr=0.05, momentum=0.9, weight_decay=0.01), lambda ps: flow.optim.LAMB(ps, lr=0.01),
    lambda ps: flow.optim.SGD(ps, lr=0.05), lambda ps: flow.optim.AdamW(ps, lr=0.01, eps=1e-3),
]  # fmt: skip
SCHEDULES: list[Callable[[Any], Any]] = [
    lambda o: None, lambda o: None, lambda o: flow.optim.lr_scheduler.StepLR(o, 2, 0.5),
    lambda o: flow.optim.lr_scheduler.CosineAnnealingLR(o, 5),
]  # fmt: skip
LOSSES: list[Callable[[Any, Any], list[Any]]] = [
    lambda x, y: [F.cross_entropy(x, y)], lambda x, y: [(x**2).mean(), x.abs().mean() * 0.5],
    lambda x, y: [F.smooth_l1_loss(x, flow.zeros_like(x))],
]  # fmt: skip
Case = dict[str, Any]
Trained = tuple[list[float], list[np.ndarray]]


def cases(count: int) -> list[Case]:
    draw, found = random.Random(11), []
    for n in range(count):
        mode = ("pipeline", "data", "tensor", "zero")[n % 4]
        alone, staged = mode != "pipeline", mode == "pipeline"
        found.append({
            "seed": n, "mode": mode, "kinds": draw.choices(list(BODIES), k=draw.choice((2, 4)) if staged else 2),
            "shared": alone and draw.random() < 0.3, "tied": alone and draw.random() < 0.3, "loss": draw.randrange(3),
            "optimizers": [draw.randrange(4) for _ in range(draw.choice((1, 2)))], "schedule": draw.randrange(4),
            "clip": draw.random() < 0.4, "micro": draw.choice((2, 4)) if staged else draw.choice((1, 2)),
            "again": draw.random() < 0.3, "zero": draw.choice((1, 2, 3)), "least": draw.choice((1, 20)),
            "late": draw.random() < 0.5, "auto": draw.random() < 0.3, "scaled": n % 3 == 0,
        })  # fmt: skip
    return found


def made(case: Case) -> Any:
    rng, blocks = np.random.default_rng(case["seed"]), list(map(Block, case["kinds"]))
    if case["shared"]:
        blocks[-1] = blocks[0]
    elif case["tied"]:
        blocks[-1].same.weight = blocks[0].same.weight
    model = nn.Sequential(*blocks)
    for p in model.parameters():
        p.data.copy_(flow.tensor(rng.normal(size=tuple(p.shape)).astype(np.float32) * 0.3))
    return model


def optimizers(case: Case, model: Any) -> list[tuple[Any, Any]]:
    """One, or two for every other parameter; with their schedules."""
    chosen, params = case["optimizers"], list(model.parameters())
    clip = {"clip_grad_max_norm": 0.5, "clip_grad_norm_type": 2.0} if case["clip"] else {}
    found = [OPTIMIZERS[o]([{"params": params[i :: len(chosen)], **clip}]) for i, o in enumerate(chosen)]
    return [(o, SCHEDULES[case["schedule"]](o)) for o in found]


def scaler_of(case: Case) -> Any:
    """One whose first step overflows, and is skipped."""
    return flow.amp.GradScaler(2.0**130, backoff_factor=2.0**-120, enabled=case["scaled"])


class Train(nn.Graph):
    def __init__(self, model: Any, case: Case, places: list[Any]) -> None:
        super().__init__()
        self.model, self.case, self.places = model, case, places
        for optimizer, schedule in optimizers(case, model):
            self.add_optimizer(optimizer, lr_sch=schedule)
        if places:
            self.set_grad_scaler(scaler_of(case))
        self.config.set_gradient_accumulation_steps(case["micro"])
        if places and case["mode"] == "zero":
            self.config.enable_zero(stage=case["zero"], shard_min_size=case["least"])
        self.config.enable_auto_parallel(case["auto"] and case["mode"] in ("data", "tensor"))
        self.config.enable_zero_bubble(bool(places) and case["late"] and case["mode"] == "pipeline")
        for s, block in enumerate(self.model):
            if places:
                block.to(nn.graph.GraphModule).set_stage(s, places[s])
            block.to(nn.graph.GraphModule).activation_checkpointing = case["again"]

    def build(self, x: Any, y: Any) -> Any:
        for n, block in enumerate(self.model):
            x = block(x.to_global(placement=self.places[n], sbp=S) if self.places else x)
        if self.places:
            y = y.to_global(placement=self.places[-1], sbp=S)
        losses = LOSSES[self.case["loss"]](x, y)
        for loss in losses:
            loss.backward(retain_graph=True)
        return losses[0]


def data(step: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(step)
    return rng.normal(size=(BATCH, WIDTH)).astype(np.float32), rng.integers(0, WIDTH, BATCH)


def trained(graph: Any, model: Any, give: Callable[[np.ndarray], Any], steps: range = range(STEPS)) -> Trained:
    losses = [graph(*map(give, data(i))).numpy().mean() for i in steps]
    assert parse(str(graph.plan)) == graph.plan
    verify(graph.plan)
    return losses, [p.detach().numpy().copy() for p in model.parameters()]


def on_two_ranks(case: Case) -> Trained:
    model = made(case)
    places = [flow.placement("cpu", ranks=[s % 2] if case["mode"] == "pipeline" else [0, 1]) for s in range(len(model))]
    for block, place in zip(model, places, strict=True):
        block.to_global(placement=place, sbp=B)
    for block in dict.fromkeys(model) if case["mode"] == "tensor" else ():
        for layer, name, dim in ((block.up, "weight", 0), (block.up, "bias", 0), (block.down, "weight", 1)):
            p = getattr(layer, name).detach().to_global(placement=places[0], sbp=flow.sbp.split(dim))
            setattr(layer, name, nn.Parameter(p))
    graph = Train(model, case, places)
    flow.manual_seed(case["seed"])
    found = trained(graph, model, lambda t: flow.tensor(t, placement=places[0], sbp=S))
    graph.close()
    return found


def eagerly(case: Case, parts: int) -> Trained:
    """`parts` is how many ranks a batch is split over: a micro-batch has rows of each."""
    model, losses, micro, scaler = made(case), [], case["micro"], scaler_of(case)
    pairs = optimizers(case, model)
    flow.manual_seed(case["seed"])
    for i in range(STEPS):
        found = []
        for j in range(micro):
            rows = np.arange(BATCH).reshape(parts, micro, -1)[:, j].reshape(-1)
            x, y = (flow.tensor(t[rows]) for t in data(i))
            of_it = LOSSES[case["loss"]](model(x), y)
            scaler.scale(sum(of_it[1:], of_it[0]) / micro).backward()
            found.append(of_it[0].item())
        for optimizer, schedule in pairs:
            scaler.unscale_(optimizer)
            if case["clip"]:
                optimizer.clip_grad()
            scaler.step(optimizer)
            optimizer.zero_grad()
            if schedule is not None:
                schedule.step()
        scaler.update()
        losses.append(float(np.mean(found)))
    return losses, [p.detach().numpy() for p in model.parameters()]


def agree(found: Trained, expected: Trained) -> None:
    np.testing.assert_allclose(found[0], expected[0], rtol=2e-4)
    for a, b in zip(found[1], expected[1], strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-3, atol=2e-4)


@pytest.mark.parametrize("case", cases(12), ids=lambda case: f"{case['seed']}-{case['mode']}")
def test_two_ranks_train_as_the_eager_program(case: Case) -> None:
    expected = eagerly(case, 1 if case["mode"] == "pipeline" else 2)
    for found in spawn_threads(2, on_two_ranks, case, deadline=60):
        agree(found, expected)


class Blank(nn.Graph):
    pass


@pytest.mark.parametrize("case", cases(8), ids=lambda case: str(case["seed"]))
def test_a_graph_trains_as_the_eager_program_and_so_does_its_saved_plan(case: Case) -> None:
    case |= {"scaled": False}  # a plan with a scaler isn't saved
    expected, model = eagerly(case, 1), made(case)
    graph = Train(model, case, [])
    flow.manual_seed(case["seed"])
    before = trained(graph, model, flow.tensor, range(STEPS - 1))
    drawn = flow.get_rng_state()
    rates = {f"lr.{o}.0": schedule.get_last_lr()[0] for o, (_, schedule) in enumerate(graph._optimizers) if schedule}
    simulate(graph.plan, launches=2)
    loaded, other = Blank(), made(case)
    loaded.model = other
    loaded.load_runtime_state_dict(graph.runtime_state_dict())
    loaded.numbers.update(rates)
    for one, its in ((graph, model), (loaded, other)):
        flow.set_rng_state(drawn)
        losses, weights = trained(one, its, flow.tensor, range(STEPS - 1, STEPS))
        agree((before[0] + losses, weights), expected)
        one.close()
