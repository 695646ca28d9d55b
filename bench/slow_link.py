"""Training over a slow link: two processes on imagined hosts, and Gloo between them.

The link's bandwidth is chosen so that a step's collectives take as long as computing the step. Data-parallel, three
steps are measured alternately: Weft's with collectives on a separate stream, Weft's with inline collectives, and
torch's DDP. In DDP a communication hook reduces by Gloo and then waits as Weft's transport does, in a separate thread,
so that it overlaps with backward as DDP does without a hook. Tensor-parallel, a step of micro-batches is measured
beside the same with inline collectives.

On a busy machine a whole step mostly measures waits for a core. So the overlap is also simulated, with the minimum time
of each task over all steps, against the same tasks one after another.
"""

import queue
import threading
from collections.abc import Callable, Mapping
from typing import Any, Final

import torch
import torch.distributed as dist
from msgspec.structs import replace

import weft as flow
from bench.measure import Row, least
from bench.models import GPTS
from bench.steps import Training, gpt_pair, step_of
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
MICRO: Final = 4  # micro-batches of the tensor-parallel step, each of this size
DIVIDED: Final = {  # how tensor parallelism splits a block's weights
    "qkv.weight": S(0), "qkv.bias": S(0), "out.weight": S(1), "up.weight": S(0), "up.bias": S(0), "down.weight": S(1),
}  # fmt: skip
HALVED: Final = ("box.reduce_scatter", "box.all_to_all")  # of two ranks, each sends half of what it has


def rows(quickly: bool) -> list[Row]:
    workers = ("slow_link_worker", "tensor_parallel_worker")
    return [row for w in workers for row in run(w, quickly, "c10d", {HOSTS: "2"}, "bench.slow_link")]


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


def least_times(graph: Any, step: Callable[[], Any], count: int) -> dict[str, float]:
    """The minimum seconds of an act of each task, over some steps."""
    least_of: dict[str, float] = {}

    def note(task: Task, act: int, start: int, end: int) -> None:
        least_of[task.name] = min((end - start) / 1e9, least_of.get(task.name, float("inf")))

    executor = graph._compiled.running.executor
    executor.trace = note
    for _ in range(count):
        step()
    executor.trace = None
    return least_of


def moved(task: Task) -> float:
    """The bytes that each of two ranks sends in an act of a collective task."""
    held = {r.name: r.bytes for c in task.step.calls if c.op == "read" for r in c.results}
    return sum(held.get(v, 0) * (0.5 if c.op in HALVED else 1) for c in task.step.calls if c.op != "box.copy"
               for v in c.operands())  # fmt: skip


def simulated(plan: Plan, seconds: Mapping[str, float], speed: float) -> tuple[float, float]:
    """Seconds of a step's tasks one after another, and overlapped as the plan's streams allow. A collective takes its
    bytes over the link's bandwidth; the link carries one at a time."""
    call = min(seconds[t.name] for t in plan.tasks if t.stream)  # the smallest collective: latency alone
    took = {t.name: max(moved(t) / speed, call) if t.stream else seconds[t.name] for t in plan.tasks}
    return sum(took[t.name] * t.acts for t in plan.tasks), simulate(on_one_stream(plan), took).span


def on_one_stream(plan: Plan) -> Plan:
    """The plan with all collectives on one stream."""
    first = min(t.stream for t in plan.tasks if t.stream)
    ids = {t.id: encode(t.rank, "cpu", 0, first if t.stream else 0, number) for number, t in enumerate(plan.tasks, 1)}
    registers = tuple(
        replace(r, producer=ids[r.producer], consumers=tuple(ids[c] for c in r.consumers)) for r in plan.registers
    )
    return replace(plan, tasks=tuple(replace(t, id=ids[t.id]) for t in plan.tasks), registers=registers)


def divided_graph(size: str, micro_batches: int) -> tuple[Training, list[Any]]:
    """A tensor-parallel training step of micro-batches on two ranks, and its inputs."""
    place = flow.placement("cpu", ranks=[0, 1])
    _, m, ids, targets = gpt_pair(size)
    m.to_global(placement=place, sbp=lambda name, p: DIVIDED.get(".".join(name.split(".")[-2:]), B))
    graph = Training(m, lambda m, x, y: m(x, y), flow.optim.AdamW(m.parameters(), lr=1e-3))
    graph.config.set_gradient_accumulation_steps(micro_batches)
    whole = (from_torch(t.repeat(micro_batches, 1)) for t in (ids, targets))
    return graph, [t.to_global(placement=place, sbp=B) for t in whole]


def tensor_parallel_worker() -> None:
    everyone = begin()
    transport = transport_of()
    assert isinstance(transport, C10dTransport)
    repeats = 3 if quick() else 20

    def graph(way: Any) -> Any:
        before, WAYS["c10d", "cpu"] = WAYS["c10d", "cpu"], way
        made, batch = divided_graph(SIZE, MICRO)
        made(*batch).numpy()
        WAYS["c10d", "cpu"] = before
        return made, lambda: made(*batch).numpy()

    (streamed, step), (inline, held_up) = graph("stream"), graph("inline")
    plan, seconds = streamed.plan, least_times(streamed, step, repeats)
    compute = torch.tensor([sum(seconds[t.name] * t.acts for t in plan.tasks if not t.stream)])
    everyone.all_reduce(compute, "avg")
    speed = sum(moved(t) * t.acts for t in plan.tasks if t.stream) / compute.item()
    transport.link = SlowLink(speed)
    in_row, beside = simulated(plan, seconds, speed)
    o, i = least([step, held_up], 1, repeats, everyone.barrier)
    case = f"tensor-parallel GPT step of {MICRO} micro-batches over a slow link, 2 ranks, {SIZE}"
    tell(
        [Row(case, "the same inline", i, o, 0.9), Row(f"{case}, simulated", "its tasks in a row", in_row, beside, 0.75)]
    )
    for made in (streamed, inline):
        made.close()


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
    theirs = step_of(lambda: ddp(x, y), torch.optim.AdamW(a.parameters(), lr=1e-3))
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
    in_row, beside = simulated(streamed.plan, least_times(streamed, step, repeats), link.speed)
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
