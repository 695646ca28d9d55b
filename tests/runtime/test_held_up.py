"""Threads are held up at any line of what runs launches, as a busy machine does: no result changes, and no wait is
lost."""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import pytest

import weft as flow
from weft import nn
from weft.launch import spawn_threads

ROOT = os.path.dirname(flow.__file__) + os.sep
HELD = tuple(
    ROOT + where for where in ("vm", "runtime", "graph/run.py", "graph/draws.py", "transport", "system", "tensor")
)
SHARE, LONGEST = 0.01, 0.004  # of the lines, seconds: the background thread drives after one to two milliseconds
S, B = flow.sbp.split(0), flow.sbp.broadcast


class Train(nn.Graph):
    """One block for each placement."""

    def __init__(self, places: list[Any], micro: int) -> None:
        super().__init__()
        self.places = places
        self.blocks = nn.ModuleList([nn.Linear(4, 4).to_global(placement=p, sbp=B) for p in places])
        self.add_optimizer(flow.optim.SGD(self.blocks.parameters(), lr=0.1, momentum=0.9))
        self.config.set_gradient_accumulation_steps(micro)
        for stage, (block, place) in enumerate(zip(self.blocks, places, strict=True)):
            block.to(nn.graph.GraphModule).set_stage(stage, place)

    def build(self, x: flow.Tensor) -> flow.Tensor:
        for block, place in zip(self.blocks, self.places, strict=True):
            x = block(x.to_global(placement=place, sbp=S)).relu()
        loss = x.square().mean()
        loss.backward()
        return loss


class Noisy(nn.Graph):
    def build(self, x: flow.Tensor) -> flow.Tensor:
        return x * 2 + flow.rand(4)


def trained(places: list[Any], micro: int) -> list[Any]:
    graph, x = Train(places, micro), flow.ones(8, 4, placement=places[0], sbp=S)
    unread = [graph(x * i) for i in range(4)]
    found: list[Any] = [loss.numpy().tolist() for loss in unread]
    found += [graph(x).numpy().tolist() for _ in range(2)]
    beside = [(graph(x), graph.blocks[0].weight.sum()) for _ in range(3)]  # eager calls beside launches in flight
    return [*found, *([t.numpy().tolist() for t in pair] for pair in beside)]


def program() -> list[Any]:
    flow.manual_seed(3)
    both, apart = flow.placement("cpu", [0, 1]), [flow.placement("cpu", [i]) for i in range(2)]
    found = [trained([both], 1), trained(apart, 4)]
    y, noisy = flow.ones(4), Noisy()
    for _ in range(4):  # each launch reads the one before
        y = noisy(y)
    z, drawn = noisy(y), flow.rand(4)
    with flow.asyncs.thread(flow.asyncs.Thread()):
        z = z @ z.t() + drawn
    flow.comm.all_reduce(z)
    if flow.env.get_rank() == 0:
        flow.comm.send(z, 1)
    else:
        z = flow.comm.recv(0)
    return [*found, y.tolist(), z.tolist()]


@pytest.fixture
def held_up() -> Iterator[Callable[[int], None]]:
    """Hold up the threads that start from now on."""

    def begin(seed: int) -> None:
        rng = random.Random(seed)

        def at_line(frame: FrameType, event: str, arg: Any) -> Any:
            if event == "line" and rng.random() < SHARE:
                time.sleep(rng.random() * LONGEST)
            return at_line

        threading.settrace(lambda frame, *_: at_line if frame.f_code.co_filename.startswith(HELD) else None)

    yield begin
    threading.settrace(None)  # type: ignore[arg-type]


def test_threads_that_are_held_up_change_nothing(
    held_up: Callable[[int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WEFT_DEADLINE", "30")
    expected = spawn_threads(2, program, deadline=30)
    for seed in range(5):
        held_up(seed)
        assert spawn_threads(2, program, deadline=30) == expected
