"""Pipelines of 4 ranks and 16 micro-batches: the bubble of the busiest rank, against the textbook formula.

`python -m bench.pipelines` draws docs/pipelines.svg. In the timed rows a sleep stands for each part of an act
(forward, gradients of inputs, gradients of weights), so that stages take equal times and four ranks fit on two cores.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any, Final

import torch

import weft as flow
from bench.measure import Row
from weft import nn
from weft.core.rank import current
from weft.launch import spawn, spawn_threads
from weft.plan.plan import Task
from weft.simulator.schedule import Schedule, pictures
from weft.transport import transport_of

RANKS, MICRO, UNIT = 4, 16, 0.05
PICTURE = Path(__file__).parent.parent / "docs" / "pipelines.svg"
SCHEDULES: Final = {  # stages per rank, zero bubble, and the textbook's bubble in units
    "1F1B": (1, False, 3),
    "interleaved": (2, False, 3),
    "zero bubble": (1, True, 1),
    "zero bubble, interleaved": (2, True, 1),
}


class Stages(nn.Graph):
    """A pipeline of equal stages."""

    def __init__(self, places: list[Any], zero_bubble: bool, micro: int = MICRO) -> None:
        super().__init__()
        layers = [nn.Linear(8, 8).to_global(placement=p, sbp=flow.sbp.broadcast) for p in places]
        self.model = nn.Sequential(*layers)
        for s, (block, place) in enumerate(zip(self.model, places, strict=True)):
            block.to(nn.graph.GraphModule).set_stage(s, place)
        self.config.set_gradient_accumulation_steps(micro)
        self.config.enable_zero_bubble(zero_bubble)
        self.add_optimizer(flow.optim.SGD(self.model.parameters(), lr=0.01))

    def build(self, x: flow.Tensor) -> flow.Tensor:
        loss = self.model(x).pow(2).mean()
        loss.backward()
        return loss


def compiled(each: int, zero_bubble: bool, micro: int = MICRO) -> tuple[Stages, flow.Tensor]:
    """A graph whose stages are assigned to the ranks round-robin."""
    places = [flow.placement("cpu", ranks=[s % RANKS]) for s in range(each * RANKS)]
    graph = Stages(places, zero_bubble, micro)
    inputs = flow.ones(micro, 8, placement=places[0], sbp=flow.sbp.broadcast)
    graph.compile(inputs)
    return graph, inputs


def rows(quick: bool) -> list[Row]:
    found = []
    ended = spawn(RANKS, "bench.pipelines:worker", transport="shm", deadline=300.0)
    measured = json.loads(ended[0].out.splitlines()[-1])
    for name, (_, _, units) in SCHEDULES.items():
        imagined, real = measured[name]
        textbook = (RANKS - 1) * units * UNIT
        case = f"pause in a step, {RANKS} ranks, {MICRO} micro-batches, {name}"
        found.append(Row(f"{case}, imagined", "textbook", textbook, imagined * UNIT, 1.1))
        found.append(Row(f"{case}, real", "textbook", textbook, real, 1.1))
    few, many = (spawn_threads(world, _compile_time, world)[0] for world in (4, 64))
    found.append(Row("compile a pipeline of 64 ranks, CPU time of the one that proves it", "4 ranks", few, many, 1.5))
    return found


def _compile_time(world: int) -> float:
    """Seconds that rank 0 computes to compile: the minimum of some. The others, which don't share a process with it but
    here, compile before, and wait for it."""
    each = world // RANKS
    places = [flow.placement("cpu", ranks=list(range(s * each, (s + 1) * each))) for s in range(RANKS)]
    everyone, least = transport_of().group(range(world)), float("inf")
    x = flow.zeros(4 * world, 8, placement=places[0], sbp=flow.sbp.split(0))
    for _ in range(12):  # 64 threads leave few of them undisturbed
        graph = Stages(places, True, 4)
        everyone.barrier()
        if current().index == 0:
            _still()
        start = time.thread_time()
        graph.compile(x)
        least = min(least, time.thread_time() - start)
        graph.close()
    return least


def _still(interval: float = 0.05) -> None:
    """Wait until this process computes next to nothing."""
    before, now = -1.0, time.process_time()
    while now - before > interval / 10:
        time.sleep(interval)
        before, now = now, time.process_time()


def worker() -> None:
    """For each schedule: the bubble in units, simulated, and in seconds, in the best of some launches."""
    found: dict[str, tuple[float, float]] = {}
    everyone = transport_of().group(range(RANKS))
    for name, (each, zero_bubble, _) in SCHEDULES.items():
        graph, x = compiled(each, zero_bubble)
        took = [_launch(graph, x, everyone) for _ in range(6)]
        found[name] = graph.schedule().pause, min(took)
        graph.close()
    if current().index == 0:
        print(json.dumps(found))


def _launch(graph: Stages, x: flow.Tensor, everyone: Any) -> float:
    """The bubble of one launch in seconds: from the first act of any rank to the last, minus a rank's work."""
    roles, acts = graph._need().lowered.roles, []

    def hold(task: Task, act: int, start: int, end: int) -> None:
        parts = len(roles.get(task.name, ""))
        if parts:
            time.sleep(max(0.0, parts * UNIT - (end - start) / 1e9))
            acts.append((start / 1e9, time.perf_counter()))

    graph.running.executor.trace = hold
    everyone.barrier()
    graph(x)
    graph.running.vm.sync()
    work = sum(b - a for a, b in acts)
    mine = torch.tensor([min(a for a, _ in acts), max(b for _, b in acts), work], dtype=torch.float64)
    times = [torch.empty_like(mine) for _ in range(RANKS)]
    everyone.all_gather(times, mine)
    begun, ended, worked = torch.stack(times).T
    return (ended.max() - begun.min() - worked.mean()).item()


def draw(micro: int = 8) -> str:
    """Draw all schedules in one picture."""
    return pictures(spawn_threads(RANKS, _schedules, micro)[0])


def _schedules(micro: int) -> list[Schedule]:
    found = []
    for name, (each, zero_bubble, _) in SCHEDULES.items():
        graph, _ = compiled(each, zero_bubble, micro)
        schedule = graph.schedule()
        found.append(Schedule(schedule.rows, name))
        graph.close()
    return found


if __name__ == "__main__":
    PICTURE.write_text(draw())
    print(f"written to {PICTURE.name}")
