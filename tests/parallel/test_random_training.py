"""Random training over ranks, in layouts that change at a checkpoint: what one device trains with torch.

A case draws a model of uneven sizes, optimizers, a schedule, clipping, accumulation, recomputation, and how one, two or
four ranks hold it: as replicas, shards, global tensors of random layouts, or a graph of these.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch

import weft as flow
import weft.distributed.checkpoint as dcp
from weft.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from weft.distributed.fsdp import fully_shard
from weft.launch import spawn_threads
from weft.parallel.ddp import DistributedDataParallel

WIDTH, BATCH, STEPS = 5, 8, 3  # steps before the checkpoint, and after it
WAYS = {
    1: ["alone", "global"], 2: ["replicas", "shards", "global", "graph"],
    4: ["replicas", "shards", "grid of shards", "global", "grid", "graph"],
}  # fmt: skip

BODIES: dict[str, Callable[[Any, Any, Any], Any]] = {
    "residual": lambda lib, m, x: m.same(x) + m.down(lib.tanh(m.up(m.norm(x)))),
    "three rows": lambda lib, m, x: lib.cat([m.same(x)[:, :3] * m.rows[0] + m.three, x[:, 3:]], 1),
    "table": lambda lib, m, x: m.same(x) + m.table((x[:, 0] > 0).long()),
    "scalar": lambda lib, m, x: m.same(x) * m.scalar,
    "gate": lambda lib, m, x: lib.nn.functional.prelu(m.same(x), m.slope) + x,
    "convolution": lambda lib, m, x: m.conv(m.same(x)[:, None])[:, 0] + x,
}
USED = {
    "residual": "norm up down", "three rows": "rows three", "table": "table", "scalar": "scalar", "gate": "slope",
    "convolution": "conv",
}  # fmt: skip
OPTIMIZERS: list[tuple[str, dict[str, Any]]] = [
    ("SGD", {"lr": 0.05}), ("SGD", {"lr": 0.05, "momentum": 0.9, "nesterov": True, "weight_decay": 0.01}),
    ("Adam", {"lr": 0.01, "eps": 1e-3, "amsgrad": True}), ("AdamW", {"lr": 0.01, "eps": 1e-3}),
    ("RMSprop", {"lr": 0.01, "eps": 1e-2, "centered": True, "momentum": 0.5}), ("Adagrad", {"lr": 0.05, "eps": 1e-3}),
    ("Adadelta", {"lr": 0.5}), ("Adamax", {"lr": 0.01, "eps": 1e-3}), ("NAdam", {"lr": 0.01, "eps": 1e-3}),
    ("RAdam", {"lr": 0.01, "eps": 1e-3}), ("ASGD", {"lr": 0.05}), ("Adafactor", {"lr": 0.02}),
]  # fmt: skip
SCHEDULES: list[Callable[[Any, Any], Any]] = [
    lambda at, o: at.StepLR(o, 2, 0.5), lambda at, o: at.CosineAnnealingLR(o, 5), lambda at, o: at.LinearLR(o),
    lambda at, o: at.SequentialLR(o, [at.ConstantLR(o, 0.5), at.ExponentialLR(o, 0.9)], [2]),
]  # fmt: skip


class Case(NamedTuple):
    seed: int
    kinds: list[str]
    tied: bool
    unused: bool  # the first block is left out of odd steps
    frozen: bool
    optimizers: list[int]
    schedule: int | None
    clip: float | None  # by which norm
    parts: int  # micro-batches
    again: bool  # what is computed again in backward
    overflow: bool  # in the second step, which is skipped
    ranks: int
    ways: tuple[str, str]  # before and after the checkpoint

    @property
    def leaves_some_out(self) -> bool:
        """Torch's scaler asks for a gradient of each optimizer."""
        return self.unused and not self.frozen

    @property
    def fits_a_graph(self) -> bool:
        """Whether all steps are alike, and one norm is of one optimizer's gradients."""
        return not self.leaves_some_out and not self.overflow and (self.clip is None or len(self.optimizers) == 1)


def drawn(seed: int) -> Case:
    draw = random.Random(seed)
    ranks = draw.choice((1, 2, 2, 4))
    return Case(
        seed, draw.choices(list(BODIES), k=draw.choice((1, 2, 3))), draw.random() < 0.3, draw.random() < 0.3,
        draw.random() < 0.3, draw.choices(range(len(OPTIMIZERS)), k=draw.choice((1, 1, 2))),
        draw.choice((None, 0, 1, 2, 3)), draw.choice((None, None, 2.0, float("inf"), 1.0)), draw.choice((1, 1, 2)),
        draw.random() < 0.3, draw.random() < 0.3, ranks, (draw.choice(WAYS[ranks]), draw.choice(WAYS[ranks])),
    )  # fmt: skip


def made(lib: Any, case: Case) -> Any:
    """The model, of one library or the other."""
    nn = lib.nn

    class Block(nn.Module):  # type: ignore[name-defined]
        def __init__(self, kind: str) -> None:
            super().__init__()
            self.kind, self.norm, self.same = kind, nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WIDTH)
            self.up, self.down = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(3 * WIDTH, WIDTH, bias=False)
            self.table, self.conv = nn.Embedding(2, WIDTH), nn.Conv1d(1, 1, 3, padding=1)
            self.rows, self.three = nn.Parameter(lib.ones(3, 3)), nn.Parameter(lib.ones(3))
            self.scalar, self.slope = nn.Parameter(lib.tensor(0.5)), nn.Parameter(lib.ones(1))
            for other in {*self._modules, *self._parameters} - {"kind", "same", *USED[kind].split()}:
                delattr(self, other)

        def forward(self, x: Any) -> Any:
            return BODIES[self.kind](lib, self, x)

    class Net(nn.Module):  # type: ignore[name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.blocks, self.head = nn.ModuleList([Block(kind) for kind in case.kinds]), nn.Linear(WIDTH, 1)
            if case.tied:
                self.blocks[-1].same.weight = self.blocks[0].same.weight

        def forward(self, x: Any, step: int) -> Any:
            for n, block in enumerate(self.blocks):
                if case.leaves_some_out and n == 0 and step % 2:
                    continue
                x = lib.utils.checkpoint.checkpoint(block, x, use_reentrant=False) if case.again else block(x)
            return self.head(x)

    model, rng = Net().double(), np.random.default_rng(case.seed)
    for p in model.parameters():
        p.data.copy_(lib.tensor(rng.normal(size=tuple(p.shape)) * 0.4, dtype=lib.float64))
    if case.frozen:
        model.head.weight.requires_grad_(False)
    return model


def means(lib: Any, case: Case, model: Any) -> list[tuple[Any, Any]]:
    """Optimizers of every other parameter, and their schedules."""
    params, n = [p for p in model.parameters() if p.requires_grad], len(case.optimizers)
    made = [
        getattr(lib.optim, OPTIMIZERS[o][0])(params[i::n], **OPTIMIZERS[o][1]) for i, o in enumerate(case.optimizers)
    ]
    at = lib.optim.lr_scheduler
    return [(o, None if case.schedule is None else SCHEDULES[case.schedule](at, o)) for o in made]


def data(step: int) -> np.ndarray:
    return np.random.default_rng(step).normal(size=(BATCH, WIDTH))


def train(
    lib: Any, case: Case, model: Any, pairs: list[tuple[Any, Any]], steps: range, give: Callable[[np.ndarray], Any],
    waiting: Callable[[], Any] = contextlib.nullcontext,
) -> None:  # fmt: skip
    """`give` makes this rank's part of some rows; gradients aren't exchanged while `waiting`."""
    scaler = lib.amp.GradScaler(**({"device": "cpu"} if lib is torch else {}), init_scale=16.0, growth_interval=2)
    for step in steps:
        parts = np.split(data(step), case.parts)
        for n, rows in enumerate(parts):
            with waiting() if n + 1 < len(parts) else contextlib.nullcontext():
                loss = model(give(rows), step).square().mean() / case.parts
                scaler.scale(loss * float("inf") if case.overflow and step == 1 else loss).backward()
        for o, _ in pairs:
            scaler.unscale_(o)
        if case.clip is not None:
            lib.nn.utils.clip_grad_norm_(model.parameters(), 0.1, case.clip)
        for o, schedule in pairs:
            scaler.step(o)
            if schedule is not None:
                schedule.step()
            o.zero_grad()
        scaler.update()


# ---- over ranks ------------------------------------------------------------------------------------------


class Step(flow.nn.Graph):
    """A step of `train`."""

    def __init__(self, case: Case, model: Any, pairs: list[tuple[Any, Any]]) -> None:
        super().__init__()
        self.model = model
        for optimizer, schedule in pairs:
            if case.clip is not None:
                for group in optimizer.param_groups:
                    group.update(clip_grad_max_norm=0.1, clip_grad_norm_type=case.clip)
            self.add_optimizer(optimizer, lr_sch=schedule)
        self.config.set_gradient_accumulation_steps(case.parts)

    def build(self, x: Any) -> Any:
        loss = self.model(x, 0).square().mean()
        loss.backward()
        return loss


def held(case: Case, way: str, draw: random.Random) -> tuple[Any, Callable[[np.ndarray], Any], Any]:
    """The model as ranks hold it, what gives them their data, and what lets gradients wait."""
    model, rank, world = made(flow, case), flow.env.get_rank(), flow.env.get_world_size()

    def own(rows: np.ndarray) -> Any:
        return flow.tensor(np.split(rows, world)[rank])

    if way == "alone":
        return model, own, contextlib.nullcontext
    if way == "replicas":
        wrapped: Any = DistributedDataParallel(
            model,
            find_unused_parameters=case.leaves_some_out,
            static_graph=not case.leaves_some_out,
            bucket_size=draw.choice((1, 1 << 20)),
        )
        return wrapped, own, wrapped.no_sync
    if way.endswith("shards"):
        mesh = flow.distributed.init_device_mesh("cpu", (2, 2) if way == "grid of shards" else (world,))
        for block in model.blocks if not case.tied else ():
            fully_shard(block, mesh=mesh, reshard_after_forward=draw.random() < 0.5)
        net = fully_shard(model, mesh=mesh)

        @contextlib.contextmanager
        def waiting() -> Any:
            net.set_requires_gradient_sync(False)
            yield
            net.set_requires_gradient_sync(True)

        return net, own, waiting
    place = flow.placement("cpu", [[0, 1], [2, 3]] if way == "grid" else list(range(world)))
    for module in model.modules():
        for name, p in list(module.named_parameters(recurse=False)):
            choices = [flow.sbp.broadcast, *map(flow.sbp.split, range(p.ndim))]
            sbp = [draw.choice(choices) for _ in place.shape]
            moved = p.to_global(placement=place, sbp=sbp) if p.is_local else p
            setattr(module, name, flow.nn.Parameter(moved.detach(), requires_grad=p.requires_grad))
    if case.tied:
        model.blocks[-1].same.weight = model.blocks[0].same.weight
    sbp = [draw.choice([flow.sbp.broadcast, flow.sbp.split(0)]) for _ in place.shape]
    return model, lambda rows: flow.tensor(rows, placement=place, sbp=sbp), contextlib.nullcontext


def over_ranks(case: Case, where: Path) -> list[np.ndarray]:
    draw, schedules = random.Random(case.seed), list[Any]()
    for phase, way in enumerate(case.ways):
        model, give, waiting = held(case, way, draw)
        pairs = means(flow, case, model)
        if phase:
            found, states = get_state_dict(model, [o for o, _ in pairs])
            state = {"model": found, "optim": states}
            dcp.load(state, checkpoint_id=where)
            set_state_dict(
                model, [o for o, _ in pairs], model_state_dict=state["model"], optim_state_dict=state["optim"]
            )
            for (_, schedule), known in zip(pairs, schedules, strict=True):
                if schedule is not None:
                    schedule.load_state_dict(known)
        steps = range(phase * STEPS, (phase + 1) * STEPS)
        if way == "graph" and case.fits_a_graph:
            step = Step(case, model, pairs)
            for n in steps:
                step(give(data(n)))
            step.close()
        else:
            train(flow, case, model, pairs, steps, give, waiting)
        if not phase:
            found, states = get_state_dict(model, [o for o, _ in pairs])
            dcp.save({"model": found, "optim": states}, checkpoint_id=where)
            schedules = [None if s is None else s.state_dict() for _, s in pairs]
    return [p.numpy() if p.is_global else p.detach().numpy() for p in model.parameters()]


def difference(case: Case, where: Path) -> str:
    model = made(torch, case)
    pairs = means(torch, case, model)
    train(torch, case, model, pairs, range(2 * STEPS), torch.tensor)
    for rank, found in enumerate(spawn_threads(case.ranks, over_ranks, case, where, deadline=60)):
        for (name, p), q in zip(model.named_parameters(), found, strict=True):
            if not np.allclose(p.detach().numpy(), q, rtol=1e-5, atol=1e-7, equal_nan=True):
                return f"{case}, rank {rank}: {name} is {q}, not {p}"
    return ""


@pytest.mark.parametrize("seed", range(12))
def test_ranks_train_as_one_device(seed: int, tmp_path: Path) -> None:
    assert not (found := difference(drawn(seed), tmp_path / "at")), found
