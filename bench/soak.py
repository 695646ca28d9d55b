"""Leaks: what a process holds before and after many graphs are compiled and dropped, and many launches are made.

`python -m bench.soak` runs two ranks over each transport, `python -m bench.soak 100 5000` with so many graphs and
launches. Each part warms up first with a tenth; what grows afterwards is a leak. Memory levels off after some hundred
graphs, so give it a thousand or more.
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
READ_EVERY: Final = 500  # every so many unread launches one is read, which bounds how far the program runs ahead
LEFT: Final = 8.0  # bytes that memory may grow per launch, 64 times as many per graph: allocators' noise


_looking = threading.Lock()  # ranks may be threads of one process, and measuring opens files


class Held(NamedTuple):
    """What a process holds. `blocks` are Python's allocated blocks, `memory` is the resident set in bytes."""

    threads: int
    descriptors: int
    mappings: int
    blocks: int
    memory: int


class Row(NamedTuple):
    """What the process held when a part began, after its warm-up, and when it ended."""

    transport: str
    part: str
    times: int
    began: Held
    ended: Held
    seconds: float

    def grown(self) -> Held:
        return Held(*(b - a for a, b in zip(self.began, self.ended, strict=True)))

    def flat(self) -> bool:
        """Whether nothing grew, memory aside by allocators' noise."""
        more = self.grown()
        each = LEFT * (64 if "graphs" in self.part else 1)
        noise = 8_000_000 + each * self.times
        return max(more.threads, more.descriptors, more.mappings - 8) <= 2 and more.memory <= noise

    def __str__(self) -> str:
        counts = ", ".join(f"{name} {a:,} -> {b:,}" for name, a, b in zip(Held._fields, *self[3:5], strict=True))
        kind = "flat" if self.flat() else "GROWS"
        return f"{kind:5} {self.transport:7} {self.part:32} {self.times:>9,} in {self.seconds:6.1f} s: {counts}"


def held() -> Held:
    """Measure what this process holds, after pending work and a garbage collection."""
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
    """A step that moves values between ranks in every way: collectives, an exchange, a register."""

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
    """Compile and launch a graph, then close it or just drop it."""
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
    """Launch on local tensors, so that the process holds nothing but the runtime."""
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
    """Run all parts on this rank. Barriers stop the others during measurements: they may be threads of this process."""
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
    """The rows of rank 0, over each transport."""
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
    """Print every part's row as it is known."""
    torch.set_num_threads(1)
    for transport in TRANSPORTS:
        for row in rows(cycles, launches, (transport,)):
            print(row, flush=True)


if __name__ == "__main__":
    soak(*map(int, sys.argv[1:]))
