"""The programs whose ranks `bench.kills` kills: one per phase of a run, from before the rendezvous to the exit.

`mark()` reports that a rank has reached its phase; the kill follows soon, at a random time. Most phases repeat their
work until the kill, so that it can hit any point of it.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import weft as flow
from weft import nn
from weft.core.rank import current
from weft.data import DataLoader
from weft.launch import spawn_threads
from weft.transport import join, transport_of

LIFE = 60  # seconds after which a rank ends in any case
LATE = "late"  # once this file exists, the last rank of "registered" starts
Mark = Callable[[], None]


def everywhere(sbp: flow.sbp.sbp = flow.sbp.broadcast) -> dict[str, Any]:
    return {"placement": flow.placement.all("cpu"), "sbp": sbp}


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(8, 8).to_global(**everywhere())

    def forward(self, x: flow.Tensor) -> flow.Tensor:
        return flow.relu(self.inner(x)).sum()


class Train(nn.Graph):
    def __init__(self) -> None:
        super().__init__()
        self.net = Net()
        self.add_optimizer(flow.optim.SGD(self.net.parameters(), lr=1e-3))

    def build(self, x: flow.Tensor) -> flow.Tensor:
        loss = self.net(x)
        loss.backward()
        return loss.to_global(sbp=flow.sbp.broadcast)


class Stages(nn.Graph):
    """A stage per rank, and four micro-batches."""

    def __init__(self) -> None:
        super().__init__()
        places = [flow.placement("cpu", [i]) for i in range(current().world_size)]
        self.parts = nn.ModuleList(nn.Linear(8, 8).to_global(placement=p, sbp=flow.sbp.broadcast) for p in places)
        for i, place in enumerate(places):
            self.parts[i].to(nn.graph.GraphModule).set_stage(i, place)
        self.config.set_gradient_accumulation_steps(4)
        self.add_optimizer(flow.optim.SGD(self.parts.parameters(), lr=1e-3))

    def build(self, x: flow.Tensor) -> flow.Tensor:
        for part in self.parts:
            x = part(x)
        loss = x.sum()
        loss.backward()
        return loss


def batch() -> flow.Tensor:
    return flow.ones(8, 8, **everywhere(flow.sbp.split(0)))


def eager_step() -> Callable[[flow.Tensor], float]:
    net = Net()
    optimizer = flow.optim.SGD(net.parameters(), lr=1e-3)

    def step(x: flow.Tensor) -> float:
        loss = net(x)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss.item()

    return step


def store(mark: Mark) -> Iterator[None]:
    mark()
    yield  # the victim is killed here, before it has joined
    flow.comm.barrier()


def registered(mark: Mark) -> Iterator[None]:
    transport = transport_of()
    transport.wait_until(lambda: not transport.missing((0, 1)), "the other")  # not for the third, which joins later
    mark()
    yield
    flow.comm.barrier()


def met(mark: Mark) -> Iterator[None]:
    join(current())
    mark()
    yield
    flow.comm.barrier()


def first(mark: Mark) -> Iterator[None]:
    join(current())
    mark()
    flow.comm.all_reduce(flow.ones(1 << 16))
    yield


def eager(mark: Mark) -> Iterator[None]:
    step, x = eager_step(), batch()
    step(x)
    mark()
    while True:
        step(x)
        yield


def collective(mark: Mark) -> Iterator[None]:
    x = flow.ones(1 << 20)
    flow.comm.all_reduce(x)
    mark()
    while True:
        flow.comm.all_reduce(x)
        yield


def messages(mark: Mark) -> Iterator[None]:
    """A ring of sends and receives."""
    me, n, x = current().index, current().world_size, flow.ones(1 << 16)
    flow.comm.barrier()
    mark()
    while True:
        for turn in range(n):
            flow.comm.send(x, (me + 1) % n, send_meta=False) if turn == me else None
            flow.comm.recv((me - 1) % n, out=x) if turn == (me - 1) % n else None
        yield


def compiling(mark: Mark) -> Iterator[None]:
    x = batch()
    Train()(x)
    mark()
    while True:
        Train()(x).item()
        yield


def launches(mark: Mark) -> Iterator[None]:
    x, graph = batch(), Train()
    graph(x).item()
    mark()
    for n in itertools.count():
        loss = graph(x)
        if n % 50 == 49:
            loss.item()
        yield


def pipeline(mark: Mark) -> Iterator[None]:
    graph = Stages()
    x = flow.ones(32, 8, placement=flow.placement("cpu", [0]), sbp=flow.sbp.broadcast)
    loss = graph(x)
    loss.to_local().numpy()
    mark()
    for n in itertools.count():
        loss = graph(x)
        if n % 20 == 19:
            loss.to_local().numpy()
        yield


class Numbers:
    def __len__(self) -> int:
        return 10**6

    def __getitem__(self, i: int) -> flow.Tensor:
        return flow.full((8,), float(i % 7))


def loader(mark: Mark) -> Iterator[None]:
    step = eager_step()
    batches = iter(DataLoader(Numbers(), 8, num_workers=2))
    step(next(batches).to_global(**everywhere(flow.sbp.split(0))))
    mark()
    for x in batches:
        step(x.to_global(**everywhere(flow.sbp.split(0))))
        yield


def saving(mark: Mark) -> Iterator[None]:
    held = {"w": flow.ones(256, 256, **everywhere(flow.sbp.split(0)))}
    flow.save(held, "checkpoint", global_dst_rank=0)
    mark()
    while True:
        flow.save(held, "checkpoint", global_dst_rank=0)
        yield


def ending(mark: Mark) -> Iterator[None]:
    flow.comm.barrier()
    mark()
    yield from ()


PHASES: dict[str, Callable[[Mark], Iterator[None]]] = {
    "before the store": store,
    "registered": registered,
    "met": met,
    "first collective": first,
    "eager steps": eager,
    "collectives": collective,
    "messages": messages,
    "compiling": compiling,
    "launches": launches,
    "pipeline": pipeline,
    "data loader": loader,
    "saving": saving,
    "at exit": ending,
}
IDLE = ("before the store", "registered", "met")  # the victim sleeps until the kill


def main(phase: str, victim: str, folder: str) -> None:
    """Run as one rank. Output goes to a file; files also tell the pid, and that the victim has reached its phase."""
    signal.alarm(LIFE)
    place, me, last = Path(folder), os.environ["RANK"], int(os.environ["WORLD_SIZE"]) - 1
    os.chdir(place)
    log = os.open(place / f"rank{me}", os.O_WRONLY | os.O_CREAT)
    for standard in (1, 2):
        os.dup2(log, standard)
    write(place / f"pid{me}", str(os.getpid()))

    def mark() -> None:
        if me == victim:
            write(place / "marked", str(os.getpid()))

    while phase == "registered" and me == str(last) and not (place / LATE).exists():
        time.sleep(0.01)
    for _ in PHASES[phase](mark):
        if me == victim and phase in IDLE:
            rest()
    if phase == "first collective":
        flow.comm.barrier() if me != victim else rest()


class Mistake(Exception):
    """Raised by a victim that is a thread, as it can't be killed."""


def threads(phase: str, victim: str, folder: str) -> None:
    """Run ranks as threads; the victim raises as soon as it has reached its phase. Writes how the others ended."""
    signal.alarm(LIFE)
    os.chdir(folder)
    raised, ended = [0.0], {}

    def mark() -> None:
        if current().index == int(victim):
            raised[0] = time.monotonic()
            raise Mistake("on purpose")

    def body() -> None:
        said = ""
        try:
            for _ in PHASES[phase](mark):
                pass
        except Exception as error:
            said = f"{type(error).__name__}: {error}"
            raise
        finally:
            ended[current().index] = time.monotonic(), said

    with contextlib.suppress(Mistake):
        spawn_threads(2, body, deadline=float(os.environ["WEFT_DEADLINE"]))
    after = {rank: (when - raised[0], said) for rank, (when, said) in ended.items() if rank != int(victim)}
    write(Path("ended"), json.dumps(after))


def endless(phase: str, victim: str, folder: str) -> None:
    """Run ranks as threads, in one phase until they are interrupted."""
    signal.alarm(LIFE)
    os.chdir(folder)

    def body() -> None:
        me = str(current().index)
        for _ in PHASES[phase](lambda: write(Path("marked"), me) if me == victim else None):
            if me == victim and phase in IDLE:
                rest()
        rest()

    spawn_threads(2, body, deadline=float(os.environ["WEFT_DEADLINE"]))


def rest() -> None:
    """Sleep until the end, but wake often: a signal that comes just before a sleep is only heard after it."""
    while True:
        time.sleep(0.1)


def write(path: Path, words: str) -> None:
    path.with_suffix(".new").write_text(words)
    path.with_suffix(".new").rename(path)


if __name__ == "__main__":
    main(*sys.argv[1:])
