"""Data loaders in a graph: each prefetches as an actor, and tells callers which launches have a batch."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Protocol

import torch

from weft.core import random
from weft.core.errors import EndOfData, ShapeError
from weft.data.graph_loader import GraphLoader, tensors_of
from weft.graph.lines import GraphLine
from weft.job.value import Value
from weft.runtime.actor import Turn
from weft.transport import Channel

DATA, END = 1, 0  # what a rank that reads a loader sends to the others about a launch
AHEAD = 4  # launches by which it may be ahead of them

Until = Callable[[Callable[[], bool]], None]  # drives the graph's actors meanwhile


class Feed(Protocol):
    """The interface that a launch waits on before it begins."""

    def take(self, launch: int, until: Until) -> None:
        """Wait until the launch has its batch; raise the loader's error or end of data."""

    def counts(self) -> list[int]:
        """The number of messages on each of its channels, as this end knows."""
        ...

    def close(self) -> None: ...


class Reader:
    """A loader that this rank reads. `views` are its register's copies, each with one tensor per value (None if it has
    no reader)."""

    def __init__(
        self, loader: GraphLoader, values: Sequence[Value], views: list[list[torch.Tensor | None]],
        channels: list[Channel],
    ) -> None:  # fmt: skip
        self._loader, self._values, self._views, self._channels = loader, values, views, channels
        self._read = 0
        self._over: BaseException | None = None
        self._again = threading.Event()
        self._closing = self._raised = False
        self._said = 0
        here = random.of()
        self._source = random.Source()  # separate, as prefetching doesn't draw in program order
        self._source.manual_seed(random.mix(here.seed, here.draws))

    def act(self, turn: Turn) -> None:
        """Fill a copy of the register. At the end of data the thread waits here until a caller wants another batch."""
        while not self._closing:
            try:
                with random.drawing_from(self._source):
                    self._fill(self._views[turn.produced[0]], tensors_of(self._loader.next()))
            except Exception as error:
                self._over = error
                self._again.wait()
                self._again.clear()
            else:
                self._read += 1
                return

    def _fill(self, views: list[torch.Tensor | None], batch: list[torch.Tensor]) -> None:
        if len(batch) != len(views):
            raise ShapeError(f"the loader's batches hold {len(views)} tensors, and this one {len(batch)}")
        for v, view, t in zip(self._values, views, batch, strict=True):
            if view is None:
                continue
            t = self._loader.part(t, v.spec)
            if t.shape != view.shape or t.dtype != view.dtype:
                raise ShapeError(
                    f"batch {self._loader.batches} of the loader holds {t.dtype}{list(t.shape)} where the first had "
                    f"{view.dtype}{list(view.shape)}: a graph's inputs keep their form. If it is a last, smaller "
                    "batch, drop it: DataLoader(..., drop_last=True)"
                )
            view.copy_(t)

    def take(self, launch: int, until: Until) -> None:
        if self._raised:  # the caller was told, and goes on with the next epoch
            self._raised, self._over = False, None
            self._again.set()
        until(lambda: self._read > launch or self._over is not None)
        has = self._read > launch
        for channel in self._channels:
            until(lambda c=channel: self._said - c.acknowledged() < AHEAD)
            channel.buffer(self._said % AHEAD)[0] = DATA if has else END
            channel.post()
        self._said += 1
        if not has:
            assert self._over is not None
            self._raised = True
            raise self._over

    def counts(self) -> list[int]:
        return [self._said] * len(self._channels)

    def close(self) -> None:
        self._closing = True
        self._again.set()


class Follower:
    """A loader that only other ranks read: one of them says which launches have a batch, so that all end alike."""

    def __init__(self, name: str, source: int, channel: Channel) -> None:
        self._name, self._source, self._channel = name, source, channel
        self._heard = 0

    def take(self, launch: int, until: Until) -> None:
        until(lambda: self._channel.arrived() > self._heard)
        word = int(self._channel.buffer(self._heard % AHEAD)[0])
        self._heard += 1
        self._channel.acknowledge()
        if word == END:
            raise EndOfData(f"{self._name}, which rank {self._source} reads, has no further batch")

    def counts(self) -> list[int]:
        return [self._heard]

    def close(self) -> None: ...


def follow(name: str, loader: GraphLoader, rank: int, line: GraphLine) -> tuple[list[Channel], list[Feed]]:
    """The channels on which this rank reports a loader to others, or the follower that listens to one."""
    if loader.placement is None:
        return [], []
    first, size = loader.placement.members[0], line.transport.world_size
    others = [r for r in range(size) if r not in loader.placement]
    if rank == first:
        return [line.channel(first, r, 1, AHEAD) for r in others], []
    return [], [Follower(name, first, line.channel(first, rank, 1, AHEAD))] if rank in others else []
