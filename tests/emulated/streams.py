"""Streams and events, and a check that accesses to memory from several streams are in order.

Each stream has a clock, which says what its next access comes after: as waits and events ask, and as any thread of the
host has waited for.
"""

from __future__ import annotations

import contextlib
import itertools
import threading
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

COUNT = 4  # devices
Clock = dict[int, int]  # of each stream, how many of its accesses have happened before
Access = tuple[int, int, bool, int, int, str]  # first byte and end, whether it writes; stream, its time; what


class Race(AssertionError):
    """An access to memory that doesn't wait for one before it on another stream."""


class _Here(threading.local):
    device = 0
    capture: Any = None  # the graph that records what this thread launches
    composing: int | None = None  # the device of the tensors that a function of torch's is given

    def __init__(self) -> None:
        self.streams: dict[int, Stream] = {}


here = _Here()
host: Clock = {}
guard = threading.RLock()
accesses: defaultdict[int, list[Access]] = defaultdict(list)  # by the address of the memory
owners: dict[int, int] = {}  # the stream that has allocated it,
lent: defaultdict[int, set[int]] = defaultdict(set)  # and those for which it is kept until they are done


def index_of(device: Any) -> int:
    if device is None:
        return here.device
    index = device if isinstance(device, int) else torch.device(device).index
    index = here.device if index is None else index
    if index >= COUNT:
        raise RuntimeError("CUDA error: invalid device ordinal")
    return index


def merge(into: Clock, clock: Clock) -> None:
    for stream, time in list(clock.items()):
        if into.get(stream, 0) < time:
            into[stream] = time


def permitted() -> None:
    if here.capture is not None:
        raise RuntimeError("CUDA error: operation not permitted when stream is capturing")


class _Timed:
    """What the host can wait for."""

    clock: Clock

    def synchronize(self) -> None:
        permitted()
        merge(host, self.clock)

    def query(self) -> bool:
        self.synchronize()
        return True


class Stream(_Timed):
    numbers = itertools.count(1)

    def __init__(self, device: Any = None, priority: int = 0, **_: Any) -> None:
        self.device_index = index_of(device)
        self.device = torch.device("cuda", self.device_index)
        self.cuda_stream = self.stream_id = next(Stream.numbers)
        self.clock: Clock = {}

    def step(self) -> None:
        """Begin another access."""
        with guard:
            merge(self.clock, host)
            self.clock[self.stream_id] = self.clock.get(self.stream_id, 0) + 1

    def wait_stream(self, other: Stream) -> None:
        merge(self.clock, other.clock)

    def wait_event(self, event: Event) -> None:
        merge(self.clock, event.clock)

    def record_event(self, event: Event | None = None) -> Event:
        event = event or Event()
        event.record(self)
        return event


class Event(_Timed):
    def __init__(self, enable_timing: bool = False, **_: Any) -> None:
        self.clock: Clock = {}
        self.at = 0

    def record(self, stream: Stream | None = None) -> None:
        stream = stream or current_stream()
        merge(stream.clock, host)
        self.clock, self.at = dict(stream.clock), next(Stream.numbers)

    def wait(self, stream: Stream | None = None) -> None:
        (stream or current_stream()).wait_event(self)

    def elapsed_time(self, end: Event) -> float:
        return float(end.at - self.at)


DEFAULT = [Stream(i) for i in range(COUNT)]


def current_stream(device: Any = None) -> Stream:
    return here.streams.get(index_of(device), DEFAULT[index_of(device)])


def set_stream(stream: Stream) -> None:
    here.streams[stream.device_index] = stream


@contextlib.contextmanager
def on_stream(stream: Stream | None) -> Iterator[None]:
    if stream is None:
        yield
        return
    before, here.device = (current_stream(stream.device_index), here.device), stream.device_index
    set_stream(stream)
    try:
        yield
    finally:
        set_stream(before[0])
        here.device = before[1]


def synchronize(device: Any = None) -> None:
    permitted()
    with guard:
        for found in accesses.values():
            found.clear()


def keep(t: Tensor, stream: Stream) -> None:
    """Free the memory of t only when the stream is done with it."""
    lent[t.untyped_storage().data_ptr()].add(stream.stream_id)


def reuse(address: int, stream: Stream, what: str) -> None:
    """A stream allocates memory. What it has freed there before must not be in use by others."""
    if owners.get(address) == stream.stream_id:
        for _, _, _, other, time, before in accesses[address]:
            if stream.clock.get(other, 0) < time and other not in lent[address]:
                raise Race(f"{what} gets memory on stream {stream.stream_id} that was freed too early for {before} "
                           f"on stream {other}")  # fmt: skip
    accesses[address].clear()
    lent[address].clear()
    owners[address] = stream.stream_id


def touch(t: Tensor, writes: bool, stream: Stream, what: str, fresh: bool = False) -> None:
    """Note an access, and check that it comes after all those that it must. `fresh` memory was allocated by it."""
    if not t.numel() or t.layout is not torch.strided:
        return
    low = t.storage_offset() * t.itemsize
    high = low + (sum((n - 1) * s for n, s in zip(t.shape, t.stride(), strict=True)) + 1) * t.itemsize
    with guard:
        address = t.untyped_storage().data_ptr()
        if fresh:
            reuse(address, stream, what)
        found = accesses[address]
        kept: list[Access] = []
        for a in found:
            first, end, wrote, other, time, before = a
            ordered, verb = stream.clock.get(other, 0) >= time, "writes" if writes else "reads"
            if (wrote or writes) and first < high and low < end and not ordered:
                raise Race(
                    f"{what} {verb} bytes {low} to {high} on stream {stream.stream_id}, and doesn't wait for {before} "
                    f"on stream {other}"
                )
            if not (ordered and low <= first and end <= high and (writes or not wrote)):
                kept.append(a)
        kept.append((low, high, writes, stream.stream_id, stream.clock[stream.stream_id], what))
        found[:] = kept
