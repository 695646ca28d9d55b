"""Events between the streams of an imitated device: what is written before it is read, in whatever order it runs."""

from __future__ import annotations

import contextlib
import itertools
import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from weft.graph.on_cuda.device_streams import Streams, in_order
from weft.plan.net import Net
from weft.runtime.actor import Turn
from weft.runtime.executor import Executor


class Stream:
    """A queue of what was asked for, which the test lets run later."""

    def __init__(self) -> None:
        self.queue: list[Callable[[], bool]] = []  # each tells whether it could run

    def wait_event(self, event: Event) -> None:
        record = event.latest
        self.queue.append(lambda: record in event.reached)


class Event:
    def __init__(self) -> None:
        self.latest, self.reached = 0, set[int]()

    def record(self, stream: Stream) -> None:
        self.latest = record = self.latest + 1
        stream.queue.append(lambda: self.reached.add(record) or True)


class Imitated:
    def __init__(self) -> None:
        self.streams: list[Stream] = []
        self.current: Stream | None = None

    def stream(self) -> Stream:
        self.streams.append(Stream())
        return self.streams[-1]

    own = stream
    event = Event

    @contextlib.contextmanager
    def on(self, stream: Stream) -> Iterator[None]:
        before, self.current = self.current, stream
        yield
        self.current = before

    def drain(self, rng: random.Random) -> None:
        """Run everything, the streams in any order."""
        while waiting := [s for s in self.streams if s.queue]:
            ran = [s.queue.pop(0) for s in rng.sample(waiting, len(waiting)) if s.queue[0]()]
            assert ran, "the streams wait for each other"


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("copies", [1, 2])
def test_kernels_of_several_streams_keep_the_order_of_registers(seed: int, copies: int) -> None:
    net = Net().node("read").node("compute").node("sum", stream="collectives").node("update")
    for a, b in itertools.pairwise(("read", "compute", "sum", "update")):
        net.wire(a, b, copies=copies)
    net.wire("update", "compute", full=1)
    (plan,) = net.plans()
    device, memory, seen = Imitated(), dict[tuple[int, int], int](), list[tuple[str, int, list[Any]]]()

    def act(name: str, reads: list[int], writes: list[int]) -> Callable[[Turn], None]:
        def call(turn: Turn) -> None:
            number, consumed, produced = turn.act, turn.consumed, turn.produced
            stream = device.current or device.streams[0]

            def kernel() -> bool:
                seen.append((name, number, [memory.get(at) for at in zip(reads, consumed, strict=True)]))
                memory.update(dict.fromkeys(zip(writes, produced, strict=True), number))
                return True

            stream.queue.append(kernel)

        return call

    acts = {t.id: act(t.name, [p.register for p in t.consumes], [p.register for p in t.produces]) for t in plan.tasks}
    executor = Executor(plan, in_order(plan, acts, Streams(plan, device)), deadline=60)
    executor.launch(6).wait()
    executor.close()
    device.drain(random.Random(seed))
    for name, number, values in seen:
        wanted = [number, number - 1 if number else None] if name == "compute" else [number]
        assert values == wanted[: len(values)], (name, number)
    assert len(seen) == 24
