"""Data-parallel training over a slow link: two processes on imagined hosts, and Gloo between them.

The link's bandwidth is chosen so that reducing a step's gradients takes as long as computing the step. Three steps are
measured alternately: Weft's with collectives on a separate stream, Weft's with inline collectives, and torch's DDP. In
DDP a communication hook reduces by Gloo and then waits as Weft's transport does, in a separate thread, so that it
overlaps with backward as DDP does without a hook.

On a busy machine a whole step mostly measures waits for a core. So the overlap is also simulated, with the minimum time
of each task over all steps, against the same tasks one after another.
"""

import queue
import threading
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from msgspec.structs import replace

import weft as flow
from bench.measure import Row, least
from bench.models import GPTS
from bench.steps import Training, gpt_pair, torch_step
from bench.two_ranks import B, S, begin, quick, run, tell
from weft.compiler.streams import WAYS
from weft.core.rank import current
from weft.interop import from_torch
from weft.plan.ids import encode
from weft.plan.plan import Plan, Task
from weft.simulator import simulate
from weft.transport import transport_of
from weft.transport.c10d import C10dTransport
from weft.transport.hosts import HOSTS, SlowLink, until

SIZE = list(GPTS)[-1]


def rows(quickly: bool) -> list[Row]:
    return run("slow_link_worker", quickly, "c10d", {HOSTS: "2"}, "bench.slow_link")


class Hook:
    """DDP's all-reduces over the slow link, one after another."""

    def __init__(self, link: SlowLink) -> None:
        self.link, self.given = link, queue.SimpleQueue[Any]()
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        while True:
            t, done = self.given.get()
            come = self.link.arrival(t.nbytes)  # in a ring of two, each rank sends and receives as many bytes as it has
            dist.all_reduce(t.div_(2))
            until(come)
            done.set_result(t)

    def hook(self, state: object, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
        done: torch.futures.Future[torch.Tensor] = torch.futures.Future()
        self.given.put((bucket.buffer(), done))
        return done


def simulated(graph: Any, step: Callable[[], Any], count: int, link: SlowLink) -> tuple[float, float]:
    """Seconds of a step's tasks one after another, and overlapped as the plan's streams allow. A bucket takes its bytes
    over the link's bandwidth; the link carries one bucket at a time."""
    least_of: dict[str, float] = {}

    def note(task: Task, act: int, start: int, end: int) -> None:
        least_of[task.name] = min((end - start) / 1e9, least_of.get(task.name, float("inf")))

    executor = graph._compiled.running.executor
    executor.trace = note
    for _ in range(count):
        step()
    executor.trace = None
    call = min(least_of[t.name] for t in graph.plan.tasks if t.stream)  # the smallest collective: latency alone
    for task in graph.plan.tasks:
        if task.stream:
            moved = sum(r.bytes for c in task.step.calls if c.op == "read" for r in c.results)
            least_of[task.name] = max(moved / link.speed, call)
    return sum(least_of.values()), simulate(on_one_stream(graph.plan), least_of).span


def on_one_stream(plan: Plan) -> Plan:
    """The plan with all collectives on one stream."""
    first = min(t.stream for t in plan.tasks if t.stream)
    ids = {
        t.id: encode(t.rank, "cpu", 0, first if t.stream else 0, number) for number, t in enumerate(plan.tasks, 1)
    }  # fmt: skip
    registers = tuple(
        replace(r, producer=ids[r.producer], consumers=tuple(ids[c] for c in r.consumers)) for r in plan.registers
    )
    return replace(plan, tasks=tuple(replace(t, id=ids[t.id]) for t in plan.tasks), registers=registers)


def slow_link_worker() -> None:
    everyone = begin()
    transport, rank = transport_of(), current().index
    assert isinstance(transport, C10dTransport)
    a, b, ids, targets = gpt_pair(SIZE)
    half = ids.shape[0] // 2
    mine = slice(rank * half, (rank + 1) * half)
    x, y = ids[mine].clone(), targets[mine].clone()
    alone = Training(b, lambda m, x, y: m(x, y), flow.optim.AdamW(b.parameters(), lr=1e-3))
    local = from_torch(x), from_torch(y)
    repeats = 3 if quick() else 30
    (compute,) = least([lambda: alone(*local).item()], 3, repeats, everyone.barrier)
    alone.close()
    mean = torch.tensor([compute])
    everyone.all_reduce(mean, "avg")
    gradients = sum(p.nelement() * p.element_size() for p in a.parameters())
    link = transport.link = SlowLink(gradients / mean.item())
    ddp = torch.nn.parallel.DistributedDataParallel(a)
    ddp.register_comm_hook(None, Hook(link).hook)
    theirs = torch_step(lambda: ddp(x, y), torch.optim.AdamW(a.parameters(), lr=1e-3))
    place = flow.placement("cpu", ranks=[0, 1])

    def graph(way: Any) -> Any:
        before, WAYS["c10d", "cpu"] = WAYS["c10d", "cpu"], way
        _, m, _, _ = gpt_pair(SIZE)
        m.to_global(placement=place, sbp=B)
        batch = [from_torch(t).to_global(placement=place, sbp=S(0)) for t in (x, y)]
        made = Training(m, lambda m, x, y: m(x, y), flow.optim.AdamW(m.parameters(), lr=1e-3))
        made(*batch).to_local().item()
        WAYS["c10d", "cpu"] = before
        return made, lambda: made(*batch).to_local().item()

    (streamed, step), (inline, held_up) = graph("stream"), graph("inline")
    in_row, beside = simulated(streamed, step, repeats, link)
    t, o, i = least([theirs, step, held_up], 1, repeats, everyone.barrier)
    case = f"data-parallel GPT step over a slow link, 2 ranks, {SIZE}"
    tell([
        Row(case, "the same inline", i, o, 0.75),
        Row(case, "torch DDP", t, o, 0.9),
        Row(f"{case}, simulated", "its tasks in a row", in_row, beside, 0.75),
        Row(f"{case}: computing alone", "-", None, compute),
    ])  # fmt: skip
    for made in (streamed, inline):
        made.close()
