"""Random training: graphs over ranks and plans loaded without the model train what the eager program does.

A case draws a model of uneven sizes, where its stages lie and how, batches, and the settings of the graph.
"""

from __future__ import annotations

import contextlib
import itertools
import random
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft as flow
from weft import nn
from weft.core.errors import CompileError
from weft.launch import spawn_threads
from weft.plan import parse, verify
from weft.simulator import simulate
from weft.transport.hosts import HOSTS

F, S, B = nn.functional, flow.sbp.split, flow.sbp.broadcast
STEPS = 3

BODIES: dict[str, Callable[[Any, Any], Any]] = {
    "residual": lambda m, x: x + m.down(F.gelu(m.up(m.norm(x)))),
    "concatenation": lambda m, x: flow.cat([m.up(x)[:, :3], m.up(x)[:, m.width + 3 :]], 1).relu() + x,
    "reshape that copies": lambda m, x: x @ m.w.t().reshape(-1).reshape(m.w.shape) + x.t().reshape(m.width, -1).t(),
    "in place": lambda m, x: m.same(x).mul_(0.5).add_(x).tanh_().neg().exp_() * x,
    "views": lambda m, x: flow.cat([m.same(x)[:, ::2].sin(), m.same(x)[:, 1::2].cos()], 1).reshape(x.shape),
    "gate": lambda m, x: m.up(x)[:, : m.width] * flow.sigmoid(m.up(x)[:, m.width :]) + x.max(1, keepdim=True)[0],
    "where": lambda m, x: flow.where(m.same(x) > 0, x, m.w.sum(0) * x),
    "dropout": lambda m, x: x + F.dropout(m.same(x), 0.3),
    "noise": lambda m, x: x + flow.rand_like(x) * m.same(x),
    "twice": lambda m, x: m.same(F.silu(m.same(x))) + x.detach(),
    "softmax": lambda m, x: F.log_softmax(m.same(x), 1) + flow.einsum("bi,ij->bj", x, m.w).clamp(-1, 1),
    "chunks": lambda m, x: m.down(flow.cat([a * b for a, b in itertools.pairwise(m.up(x).chunk(2, 1) * 2)][:2], 1)) + x,
    "statistics": lambda m, x: m.batch(x @ m.w) + m.same(x),
    "a buffer that is assigned": lambda m, x: m.averaged(x) + m.same(x),
    "a buffer that is written": lambda m, x: m.same(x) / m.count.add_(1.0).clone() + x,
}


class Block(nn.Module):
    def __init__(self, kind: str, width: int) -> None:
        super().__init__()
        self.kind, self.width, self.norm, self.same = kind, width, nn.LayerNorm(width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)
        self.w, self.often = nn.Parameter(flow.ones(width, width)), nn.Parameter(flow.ones(width, width))
        self.batch = nn.BatchNorm1d(width)
        self.register_buffer("mean", flow.zeros(width))
        self.register_buffer("count", flow.ones(()))

    def averaged(self, x: Any) -> Any:
        if self.training:
            self.mean = 0.5 * self.mean + 0.5 * x.detach().mean(0)
        return x - self.mean

    def forward(self, x: Any) -> Any:
        w = self.often
        if x.is_global and w.placement != x.placement:  # a tied one lies with the first who has it
            w = w.to_global(placement=x.placement, sbp=B)
        return BODIES[self.kind](self, x) + F.linear(x, w) * 0.1


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
Trained = tuple[list[np.ndarray], list[np.ndarray]]


def drawn(seed: int) -> Case:
    draw = random.Random(seed)
    chance = lambda p: draw.random() < p  # noqa: E731
    world, micro = draw.choice((2, 2, 4, 4, 3)), draw.choice((1, 1, 2, 3, 4))
    blocks = draw.choice((1, 2, 2, 3, 4))
    whole = list(range(world))
    ways = {
        "one": [whole] * blocks,
        "each": [[s % world] for s in range(blocks)],
        "halves": [whole[: world // 2] if s % 2 == 0 else whole[world // 2 :] for s in range(blocks)],
        "grid": [[[0, 1], [2, 3]]] * blocks,
        "any": [sorted(draw.sample(whole, draw.randint(1, world))) for _ in range(blocks)],
    }
    way = draw.choice(("one", "one", "each", "each", "halves", "any") + ("grid",) * (world == 4))
    places = ways[way]
    first = np.array(places[0])
    sbp = [draw.choice((None, 0)) for _ in first.shape]
    parts = int(np.prod([n for n, s in zip(first.shape, sbp, strict=True) if s == 0]))
    rows = [micro * parts * draw.choice((2, 3)) for _ in range(STEPS)] if micro > 1 or chance(0.5) else None
    rows = rows or [draw.choice((2, 3, 5, 7)) for _ in range(STEPS)]
    dynamic = chance(0.3)
    kinds = draw.choices(list(BODIES), k=blocks)
    return {
        "seed": seed, "world": world, "places": places, "width": draw.choice((5, 6)), "parts": parts, "sbp": sbp,
        "kinds": kinds, "rows": rows if dynamic else rows[:1] * STEPS, "micro": micro,
        "dynamic": dynamic, "shared": chance(0.2), "tied": chance(0.3), "loss": draw.randrange(3),
        "optimizers": [draw.randrange(4) for _ in range(draw.choice((1, 2)))], "schedule": draw.randrange(4),
        "clip": chance(0.4), "again": [chance(0.3) for _ in range(blocks)], "zero": draw.choice((0, 1, 2, 3)),
        "least": draw.choice((1, 20)), "late": chance(0.5), "auto": chance(0.2), "scaled": chance(0.3),
        "frozen": chance(0.3), "half": chance(0.15) and "where" not in kinds, "budget": chance(0.2),
        "inductor": chance(0.0), "parted": chance(0.2),  # tests/compiler/test_fusion.py has it, without a C++ compiler
        "looks": draw.choice(("", "", "same", "shared")), "ahead": draw.choice((1, 2, 2, 3)),
        "hosts": draw.choice(("", "", ",".join(str(draw.randrange(2)) for _ in whole))), "late reads": chance(0.5),
    }  # fmt: skip


def made(case: Case) -> Any:
    rng, blocks = np.random.default_rng(case["seed"]), [Block(kind, case["width"]) for kind in case["kinds"]]
    if case["shared"] and case["places"][0] == case["places"][-1]:
        blocks[-1] = blocks[0]
    elif case["tied"]:
        blocks[-1].often = blocks[0].often
    model = nn.Sequential(*blocks)
    if not case["half"]:
        model.double()
    for n, p in enumerate(model.parameters()):
        p.data.copy_(flow.tensor(rng.normal(size=tuple(p.shape)) * 0.3, dtype=p.dtype))
        if case["frozen"] and n % 5 == 1:
            p.requires_grad_(False)
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
    def __init__(self, model: Any, case: Case, places: list[Any], budget: int = 0) -> None:
        super().__init__()
        self.model, self.case, self.places = model, case, places
        for optimizer, schedule in optimizers(case, model):
            self.add_optimizer(optimizer, lr_sch=schedule)
        self.config.set_gradient_accumulation_steps(case["micro"])
        self.config.enable_amp(case["half"], dtype=flow.bfloat16)
        self.config.enable_inductor(case["inductor"])
        self.config.set_outputs_buffer_size(case["ahead"])
        if budget:
            self.config.set_memory_budget(budget)
        if places:
            self.set_grad_scaler(scaler_of(case))
            self.config.enable_auto_parallel(case["auto"])
            self.config.enable_zero_bubble(case["late"] and case["micro"] > 1 and len(set(places)) > 1)
            if case["zero"]:
                self.config.enable_zero(stage=case["zero"], shard_min_size=case["least"])
        for s, block in enumerate(self.model):
            if places:
                block.to(nn.graph.GraphModule).set_stage(s, places[s])
            block.to(nn.graph.GraphModule).activation_checkpointing = case["again"][s]

    def build(self, x: Any, y: Any) -> Any:
        x, losses = losses_of(self.case, self.model, x, y, self.places)
        for loss in losses:
            loss.backward(retain_graph=True)
        return {"loss": losses[0], "rows": [x, (None, x[:, 0])], "n": 3}


def losses_of(case: Case, blocks: Any, x: Any, y: Any, places: list[Any]) -> tuple[Any, list[Any]]:
    for n, block in enumerate(blocks):
        x = block(x.to_global(placement=places[n]) if places else x)
    if places:
        y = y.to_global(placement=places[-1])
    return x, LOSSES[case["loss"]](x, y)


class Look(nn.Graph):
    def __init__(self, model: Any, case: Case, places: list[Any]) -> None:
        super().__init__()
        self.model, self.case, self.places = model, case, places

    def build(self, x: Any, y: Any) -> Any:
        return losses_of(self.case, self.model, x, y, self.places)


def data(case: Case, step: int) -> tuple[np.ndarray, np.ndarray]:
    rng, rows, width = np.random.default_rng(step), case["rows"][step], case["width"]
    dtype = np.float32 if case["half"] else np.float64
    return rng.normal(size=(rows, width)).astype(dtype), rng.integers(0, width, rows)


def numpy(t: Any) -> np.ndarray:
    return t.detach().double().numpy().copy() if isinstance(t, flow.Tensor) else t


def trained(
    case: Case, graph: Any, model: Any, give: Callable[[np.ndarray], Any], look: Any = None, steps: range = range(STEPS)
) -> Trained:
    losses: list[Any] = []
    for i in steps:
        found = graph(*map(give, data(case, i)))
        losses += [found["loss"], found["rows"][0], found["rows"][1][1]]
        assert found["n"] == 3 and found["rows"][1][0] is None
        if look is not None:
            losses += looked(look, model, *map(give, data(case, i)))
        if not case["late reads"]:
            losses[:] = map(numpy, losses)
    assert parse(str(graph.plan)) == graph.plan
    verify(graph.plan)
    return list(map(numpy, losses)), states(model)


def looked(look: Any, model: Any, x: Any, y: Any) -> list[Any]:
    """What an evaluation finds after a step."""
    for m in (model, look.model.to(nn.Module) if isinstance(look, Look) else model):
        m.eval()
    x, (loss, *_) = look(x, y)
    model.train()
    return [loss, x]


def states(model: Any) -> list[np.ndarray]:
    return [numpy(t) for t in model.state_dict().values()]


def placed(case: Case, model: Any, places: list[Any], draw: random.Random) -> None:
    for block, place in dict(zip(model, places, strict=True)).items():
        for module in block.modules():
            for name, p in [*module.named_parameters(recurse=False), *module.named_buffers(recurse=False)]:
                if p.is_local:
                    sbps = [B, *(S(d) for d in range(p.ndim) if case["parted"] and p.requires_grad)]
                    moved = flow.tensor(
                        p.detach().numpy(), placement=place, sbp=[draw.choice(sbps) for _ in place.shape]
                    )
                    is_parameter = isinstance(p, nn.Parameter)
                    setattr(module, name, nn.Parameter(moved, p.requires_grad) if is_parameter else moved)
    if case["tied"] and model[-1] is not model[0]:
        model[-1].often = model[0].often


def over_ranks(case: Case) -> Trained:
    draw = random.Random(case["seed"])
    places = [flow.placement("cpu", ranks=ranks) for ranks in case["places"]]
    sbp = [B if s is None else S(s) for s in case["sbp"]]
    give = lambda t: flow.tensor(t, placement=places[0], sbp=sbp)  # noqa: E731
    model = made(case)
    placed(case, model, places, draw)
    budget, kind = 0, Train
    if case["budget"]:
        probe = Train(model, case, places, budget=1)
        with pytest.raises(CompileError) as refused:
            probe.compile(*map(give, data(case, int(np.argmax(case["rows"])))))
        budget = int(re.search(r"set_memory_budget\((\d+)\)", str(refused.value))[1])  # type: ignore[index]
    if case["dynamic"]:
        kind = nn.Graph.with_dynamic_input_shape(size=draw.choice((1, 2, 3)))(Train)
    graph = kind(model, case, places, budget)
    look, seen = None, model
    if case["looks"] == "shared":
        seen = made(case)
        placed(case, seen, places, random.Random(case["seed"]))
    if case["looks"]:
        look = (nn.Graph.with_dynamic_input_shape()(Look) if case["dynamic"] else Look)(seen, case, places)
    if look is not None and seen is not model:
        look.share_from(graph)
    flow.manual_seed(case["seed"])
    found = trained(case, graph, model, give, look)
    for g in (graph, look):
        if g is not None:
            g.close()
    return found


def eagerly(case: Case, parts: int = 1) -> Trained:
    """`parts` is how many ranks a batch is split over: a micro-batch has rows of each."""
    model, losses, micro, scaler = made(case), [], case["micro"], scaler_of(case)
    pairs = optimizers(case, model)
    flow.manual_seed(case["seed"])
    for i in range(STEPS):
        found, results = [], {}
        casting = flow.autocast("cpu", flow.bfloat16) if case["half"] else contextlib.nullcontext()
        for j in range(micro):
            count = case["rows"][i]
            rows = np.arange(count) if micro == 1 else np.arange(count).reshape(parts, micro, -1)[:, j].reshape(-1)
            x, y = (flow.tensor(t[rows]) for t in data(case, i))
            with casting:
                x, of_it = losses_of(case, model, x, y, [])
            scaler.scale(sum(of_it[1:], of_it[0]) / micro).backward()
            found.append(of_it[0].item())
            results.update(zip(rows, numpy(x), strict=True))
        for optimizer, schedule in pairs:
            scaler.unscale_(optimizer)
            if case["clip"]:
                optimizer.clip_grad()
            scaler.step(optimizer)
            optimizer.zero_grad()
            if schedule is not None:
                schedule.step()
        scaler.update()
        ordered = np.stack([results[n] for n in sorted(results)])
        losses += [np.array(found if micro > 1 else found[0]), ordered, ordered[:, 0]]
        if case["looks"]:
            with flow.no_grad():
                found = looked(lambda x, y: losses_of(case, model, x, y, []), model, *map(flow.tensor, data(case, i)))
                losses += map(numpy, found)
    return losses, states(model)


def agree(case: Case, found: Trained, expected: Trained) -> None:
    assert [np.shape(a) for a in found[0]] == [np.shape(a) for a in expected[0]]
    rtol, atol = (6e-2, 3e-2) if case["half"] else (1e-6, 1e-8)
    for a, b in zip([*found[0], *found[1]], [*expected[0], *expected[1]], strict=True):
        np.testing.assert_allclose(a, b, rtol=rtol, atol=atol)


@pytest.mark.parametrize("seed", range(12))
def test_ranks_train_as_the_eager_program(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    case = drawn(seed)
    monkeypatch.setenv(HOSTS, case["hosts"])
    expected = eagerly(case, case["parts"])
    for found in spawn_threads(case["world"], over_ranks, case, deadline=60):
        agree(case, found, expected)


class Blank(nn.Graph):
    pass


@pytest.mark.parametrize("seed", range(8))
def test_a_graph_trains_as_the_eager_program_and_so_does_its_saved_plan(seed: int) -> None:
    case = drawn(seed)
    case |= {"scaled": False, "rows": case["rows"][:1] * STEPS, "looks": ""}  # a plan with a scaler isn't saved
    expected, model = eagerly(case), made(case)
    graph = Train(model, case, [])
    flow.manual_seed(case["seed"])
    before = trained(case, graph, model, flow.tensor, steps=range(STEPS - 1))
    state = flow.get_rng_state()
    rates = {f"lr.{o}.0": schedule.get_last_lr()[0] for o, (_, schedule) in enumerate(graph._optimizers) if schedule}
    simulate(graph.plan, launches=2)
    loaded, other = Blank(), made(case)
    loaded.model = other
    loaded.load_runtime_state_dict(graph.runtime_state_dict())
    loaded.numbers.update(rates)
    for one, its in ((graph, model), (loaded, other)):
        flow.set_rng_state(state)
        losses, weights = trained(case, one, its, flow.tensor, steps=range(STEPS - 1, STEPS))
        agree(case, (before[0] + losses, weights), expected)
        one.close()
