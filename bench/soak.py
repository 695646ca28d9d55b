"""Whether a program may go on for ever: graphs compiled and dropped, launches read and not, in what a process holds.

`python -m bench.soak` prints it for two ranks over each transport, `python -m bench.soak 100 5000` for so many cycles
and launches. Each part warms up first, by a tenth; what grows from there on is a leak. (Memory comes to
rest after some hundred graphs, so give it a thousand or more.)
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import torch

import weft as flow
from weft import nn
from weft.core.rank import current
from weft.launch import spawn, spawn_threads
from weft.vm import vm_of

S, B = flow.sbp.split, flow.sbp.broadcast
TRANSPORTS: Final = ("threads", "shm", "c10d")
READ_EVERY: Final = 500  # of launches that nobody reads: how far a program runs ahead is bounded, and so is what waits
LEFT: Final = 8.0  # bytes of memory that a launch may leave behind, and 64 times as many a graph: noise of allocators


_looking = threading.Lock()  # ranks may be threads of one process, and looking opens files


class Held(NamedTuple):
    """What a process holds. `blocks` are Python's own, `memory` the bytes of it that lie in memory."""

    threads: int
    descriptors: int
    mappings: int
    blocks: int
    memory: int


class Row(NamedTuple):
    """What a part of a soak began and ended with, after its warm-up."""

    transport: str
    part: str
    times: int
    began: Held
    ended: Held
    seconds: float

    def grown(self) -> Held:
        return Held(*(b - a for a, b in zip(self.began, self.ended, strict=True)))

    def flat(self) -> bool:
        """Nothing that is counted grew with the number of times, and memory by no more than allocators' noise."""
        more = self.grown()
        each = LEFT * (64 if "graphs" in self.part else 1)
        noise = 8_000_000 + each * self.times
        return max(more.threads, more.descriptors, more.mappings - 8) <= 2 and more.memory <= noise

    def __str__(self) -> str:
        told = ", ".join(f"{name} {a:,} -> {b:,}" for name, a, b in zip(Held._fields, *self[3:5], strict=True))
        kind = "flat" if self.flat() else "GROWS"
        return f"{kind:5} {self.transport:7} {self.part:32} {self.times:>9,} in {self.seconds:6.1f} s: {told}"


def held() -> Held:
    """What this process holds, once nothing is under way and what nobody needs is gone."""
    vm_of().sync()
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    with _looking, open("/proc/self/maps") as maps, open("/proc/self/statm") as memory:
        pages = int(memory.read().split()[1])
        return Held(
            threading.active_count(), len(os.listdir("/proc/self/fd")), sum(1 for _ in maps), sys.getallocatedblocks(),
            pages * os.sysconf("SC_PAGE_SIZE"),
        )  # fmt: skip


class Across(nn.Graph):
    """A step whose values cross ranks in every way that plans know: collectives, an exchange, a register."""

    def __init__(self, layer: nn.Module, train: bool) -> None:
        super().__init__()
        self.layer, self.train = layer, train
        if train:
            self.add_optimizer(flow.optim.SGD(layer.parameters(), lr=1e-3))

    def build(self, x: Any) -> Any:
        y = self.layer(x)
        if self.train:
            y.sum().backward()
        here, there = (flow.placement("cpu", [r]) for r in (0, current().world_size - 1))
        z = y.to_global(placement=here, sbp=B).to_global(placement=there, sbp=B)
        return y.to_global(sbp=S(1)), z * 2, y.sum()


class Alone(nn.Graph):
    def build(self, x: Any) -> Any:
        return x + 1


def made(train: bool = True) -> tuple[Across, Any]:
    ranks = flow.placement("cpu", list(range(current().world_size)))
    layer = nn.Linear(8, 8).to_global(placement=ranks, sbp=B)
    return Across(layer, train), flow.ones(4, 8, placement=ranks, sbp=S(0))


def compile_and_drop(n: int) -> None:
    """A graph is made, launched, and closed or just forgotten."""
    graph, x = made()
    graph(x)[2].item()
    if n % 2:
        graph.close()


def launch_read() -> Callable[[int], None]:
    graph, x = made()
    return lambda n: graph(x)[2].item()


def launch_unread() -> Callable[[int], None]:
    graph, x = made()

    def once(n: int) -> None:
        y = graph(x)
        if n % READ_EVERY == 0:
            y[2].item()

    return once


def launch_alone() -> Callable[[int], None]:
    """On one rank's own tensors, so that nothing but the runtime is held."""
    graph, x = Alone(), flow.ones(4, 8)

    def once(n: int) -> None:
        graph(x)

    return once


def parts(cycles: int, launches: int) -> list[tuple[str, int, Callable[[], Callable[[int], None]]]]:
    return [
        ("graphs compiled and dropped", cycles, lambda: compile_and_drop),
        ("launches, each read", launches // 4, launch_read),
        ("launches, not read", launches // 4, launch_unread),
        ("launches on one rank, not read", launches // 2, launch_alone),
    ]


def measured(transport: str, cycles: int, launches: int) -> list[Row]:
    """On each rank at once; ranks that are threads look while all of them stand still."""
    rows = []
    for name, times, make in parts(cycles, launches):
        once = make()
        for n in range(max(times // 10, 4)):
            once(n)
        flow.comm.barrier()
        began, start = held(), time.monotonic()
        flow.comm.barrier()
        for n in range(times):
            once(n)
        flow.comm.barrier()
        rows.append(Row(transport, name, times, began, held(), time.monotonic() - start))
        flow.comm.barrier()
    return rows


def worker(transport: str, cycles: str, launches: str) -> None:
    print(json.dumps(measured(transport, int(cycles), int(launches))), flush=True)


def rows(cycles: int, launches: int, transports: tuple[str, ...] = TRANSPORTS, deadline: float = 1e5) -> list[Row]:
    """Of the first rank, over each transport."""
    found: list[Row] = []
    for transport in transports:
        if transport == "threads":
            found += spawn_threads(2, measured, transport, cycles, launches, deadline=300.0)[0]
            continue
        target = ("bench.soak:worker", transport, str(cycles), str(launches))
        ended = spawn(2, *target, transport=transport, deadline=deadline)
        read = json.loads(ended[0].out.splitlines()[-1])
        found += [Row(t, part, n, Held(*began), Held(*after), took) for t, part, n, began, after, took in read]
    return found


def soak(cycles: int = 10_000, launches: int = 1_000_000) -> None:
    """Print what each part held before and after, and whether that is flat."""
    torch.set_num_threads(1)
    for transport in TRANSPORTS:
        for row in rows(cycles, launches, (transport,)):
            print(row, flush=True)


if __name__ == "__main__":
    soak(*map(int, sys.argv[1:]))
