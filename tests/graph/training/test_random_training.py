"""Training over ranks is training on one: random models in data parallel, ZeRO, pipelines, micro-batches."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np

import weft as flow
from weft import nn
from weft.launch import spawn_threads
from weft.plan import parse, verify

F, S, B = nn.functional, flow.sbp.split(0), flow.sbp.broadcast
WIDTH = 6

BODIES: dict[str, Callable[[Any, Any], Any]] = {
    "residual": lambda m, x: x + m.down(F.gelu(m.up(m.norm(x)))),
    "concatenation": lambda m, x: flow.cat([m.up(x)[:, :3], m.up(x)[:, 9:]], 1).relu() + x,
    "reshape that copies": lambda m, x: x @ m.w.t().reshape(-1).reshape(WIDTH, WIDTH) + x.t().reshape(6, -1).t(),
    "in place": lambda m, x: m.same(x).tanh().exp().neg().mul(0.5).relu().add(x).sin(),
    "views": lambda m, x: flow.stack([m.same(x)[:, ::2].sin(), m.same(x)[:, 1::2].cos()], 2).reshape(x.shape[0], WIDTH),
    "gate": lambda m, x: m.up(x)[:, :6] * flow.sigmoid(m.up(x)[:, 6:]) + x.max(1, keepdim=True)[0],
    "where": lambda m, x: flow.where(m.same(x) > 0, x, m.w.sum(0) * x),
}


class Block(nn.Module):
    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind, self.norm, self.same = kind, nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(2 * WIDTH, WIDTH)
        self.w = nn.Parameter(flow.ones(WIDTH, WIDTH))

    def forward(self, x: Any) -> Any:
        return BODIES[self.kind](self, x)


def made(case: dict[str, Any]) -> Any:
    rng = np.random.default_rng(case["seed"])
    model = nn.Sequential(*map(Block, case["kinds"]))
    for p in model.parameters():
        p.data.copy_(flow.tensor(rng.normal(size=tuple(p.shape)).astype(np.float32) * 0.3))
    return model


OPTIMIZERS: list[Callable[[Any], Any]] = [
    lambda ps: flow.optim.SGD(ps, lr=0.05, momentum=0.9, weight_decay=0.01), lambda ps: flow.optim.LAMB(ps, lr=0.01),
    lambda ps: flow.optim.SGD(ps, lr=0.05),
]  # fmt: skip


class Train(nn.Graph):
    def __init__(self, model: Any, case: dict[str, Any], places: list[Any]) -> None:
        super().__init__()
        self.model, self.places = model, places
        self.add_optimizer(OPTIMIZERS[case["optimizer"]](model.parameters()))
        self.config.set_gradient_accumulation_steps(case["micro"])
        if case["zero"]:
            self.config.enable_zero(stage=case["zero"], shard_min_size=case["least"])
        if len(set(places)) > 1:
            self.config.enable_zero_bubble(case["late"])
        for s, block in enumerate(self.model):
            block.to(nn.graph.GraphModule).set_stage(s, places[s])
            block.to(nn.graph.GraphModule).activation_checkpointing = case["again"]

    def build(self, x: Any) -> Any:
        for block, place in zip(self.model, self.places, strict=True):
            x = block(x.to_global(placement=place, sbp=S))
        loss = (x**2).mean()
        loss.backward()
        return loss


def data(step: int) -> np.ndarray:
    return np.random.default_rng(step).normal(size=(8, WIDTH)).astype(np.float32)


def cases(count: int) -> list[dict[str, Any]]:
    draw, found = random.Random(11), []
    for n in range(count):
        staged = n % 2 == 0
        found.append({
            "seed": n, "kinds": draw.choices(list(BODIES), k=draw.choice((2, 4)) if staged else 2), "staged": staged,
            "optimizer": draw.randrange(3), "micro": draw.choice((2, 4)) if staged else draw.choice((1, 2)),
            "zero": 0 if staged else draw.randrange(4), "least": draw.choice((1, 20)), "late": draw.random() < 0.5,
            "again": draw.random() < 0.3,
        })  # fmt: skip
    return found


def on_two_ranks(all_cases: list[dict[str, Any]]) -> list[Any]:
    found = []
    for case in all_cases:
        model = made(case)
        ranks = [[s % 2] if case["staged"] else [0, 1] for s in range(len(model))]
        places = [flow.placement("cpu", ranks=r) for r in ranks]
        for block, place in zip(model, places, strict=True):
            block.to_global(placement=place, sbp=B)
        graph = Train(model, case, places)
        losses = [graph(flow.tensor(data(i), placement=places[0], sbp=S)).numpy().mean() for i in range(3)]
        assert parse(str(graph.plan)) == graph.plan
        verify(graph.plan)
        found.append((losses, [p.detach().numpy().copy() for p in model.parameters()]))
        graph.close()
    return found


def alone(case: dict[str, Any]) -> Any:
    model, losses = made(case), []
    optimizer = OPTIMIZERS[case["optimizer"]](model.parameters())
    for i in range(3):
        loss = (model(flow.tensor(data(i))) ** 2).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    return losses, [p.detach().numpy() for p in model.parameters()]


def test_as_on_one_rank() -> None:
    drawn = cases(10)
    for rank in spawn_threads(2, on_two_ranks, drawn, deadline=60):
        for case, (losses, weights) in zip(drawn, rank, strict=True):
            expected, trained = alone(case)
            np.testing.assert_allclose(losses, expected, rtol=2e-4, err_msg=str(case))
            for a, b in zip(weights, trained, strict=True):
                np.testing.assert_allclose(a, b, rtol=2e-3, atol=2e-4, err_msg=str(case))
