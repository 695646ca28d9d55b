"""Channels between hosts: registers with a copy at each end, synchronized by messages; and the threads that wait for
messages.

Gloo's point-to-point work can only be waited for; it can't be polled for completion.
"""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from weft.core.errors import RankError
from weft.transport.base import Channel
from weft.transport.hosts import SlowLink

if TYPE_CHECKING:
    from weft.transport.c10d import C10dTransport

FIRST_TAG = 16  # below: the collectives' and the exchange's own
MESSAGES = 1 << 30  # tags of messages; those of channels are below
LEAVING = 1.0  # seconds that an end waits for what is under way
BREAKING = 0.001  # seconds after which a receive breaks its connections
BROKEN = 0.2  # seconds for those who wait on them to notice


class Waiter:
    """A thread that waits for works in order. `kept` must outlive it: destroying a process group during a wait crashes
    the process. `link` is the simulated link of received messages. `ring` is called when something is complete."""

    def __init__(
        self, name: str, kept: object, ring: Callable[[], None] = lambda: None, link: SlowLink | None = None
    ) -> None:  # fmt: skip
        self._kept, self._ring, self._link = kept, ring, link
        self._bell = threading.Lock()
        self.started = 0
        self.done = 0  # how many works are complete; written by the thread alone
        self.error: RuntimeError | None = None
        self._works: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def add(self, work: Any, message: Tensor | None = None) -> None:
        """Add a work. `message` is the received buffer; a last byte of zero is the sender's farewell, which isn't
        counted."""
        self.started += 1
        self._works.put((work, message))

    def idle(self) -> bool:
        """Whether everything is complete, or has failed."""
        return self.done >= self.started or self.error is not None

    def rest(self, seconds: float) -> None:
        """Sleep until something is complete, or a timeout. It may return early."""
        self._bell.acquire(timeout=seconds)

    def _tell(self) -> None:
        with contextlib.suppress(RuntimeError):  # already rung
            self._bell.release()
        self._ring()

    def _run(self) -> None:
        while (next_work := self._works.get()) is not None:
            work, message = next_work
            try:
                work.wait()
                if message is not None and self._link is not None:
                    self._link.carry(message.nbytes)
                if message is not None and not message[-1].item():
                    return
            except RuntimeError as error:
                self.error = error
                return self._tell()
            self.done += 1
            self._tell()

    def end(self) -> None:
        """Once everything that was added is complete."""
        self._works.put(None)

    def ended(self, patience: float) -> bool:
        """Whether the thread ends in so many seconds."""
        self._thread.join(max(patience, 0.0))
        return not self._thread.is_alive()


def end(waiters: Sequence[Waiter], groups: Sequence[tuple[tuple[int, ...], Any]], rank: int) -> None:
    """End the threads, at the end of a rank. Where ranks diverged, some wait for ever, and where one died, Gloo forgets
    what it was sent. A thread that came back from Gloo when Python has ended would abort the process."""
    for waiter in waiters:
        waiter.end()
    if _ended(waiters, 0.0 if any(waiter.error for waiter in waiters) else LEAVING):
        return
    nothing = torch.empty(1, dtype=torch.uint8)
    for ranks, group in groups:
        peer = next((i for i, r in enumerate(ranks) if r != rank), None)
        with contextlib.suppress(RuntimeError):  # a receive that is late fails all of its group's waits
            if peer is not None:
                group.recv([nothing], peer, MESSAGES - 1).wait(timedelta(seconds=BREAKING))
    _ended(waiters, BROKEN)


def _ended(waiters: Sequence[Waiter], patience: float) -> bool:
    """Whether all threads end in so many seconds."""
    until = time.monotonic() + patience
    return all([waiter.ended(until - time.monotonic()) for waiter in waiters])


class C10dChannel(Channel):
    """Receives are posted for every free slot in advance; acknowledgements are separate messages of one byte."""

    def __init__(
        self, transport: C10dTransport, src: int, dst: int, layout: tuple[tuple[int, ...], torch.dtype, int], tag: int
    ) -> None:
        self.shape, self.dtype, self.copies = layout
        self._transport, self._tag = transport, tag
        self._produces = transport.rank == src
        self._peer = dst if self._produces else src
        self._pair = (min(src, dst), max(src, dst))
        with torch.inference_mode(False):
            # A message: the register's bytes, and one more that is zero in a farewell.
            size = torch.Size(self.shape).numel() * self.dtype.itemsize
            self._wire = [torch.ones(size + 1, dtype=torch.uint8) for _ in range(self.copies)]
            self._words = [torch.ones(1, dtype=torch.uint8) for _ in range(self.copies)]
            self._buffers = [wire[:size].view(self.dtype).view(self.shape) for wire in self._wire]
        processes = transport.processes(self._pair, "cpu")
        self._bell: Callable[[], None] = lambda: None
        link = transport.over_link(self._pair)
        self._sending = transport.waiter("sending", processes, lambda: self._bell())
        self._receiving = transport.waiter("receiving", processes, lambda: self._bell(), link)
        self._sends = self._receives = 0
        for _ in range(self.copies):
            self._expect()

    def _expect(self) -> None:
        slot, self._receives = self._receives % self.copies, self._receives + 1
        t, tag = (self._words[slot], self._tag + 1) if self._produces else (self._wire[slot], self._tag)
        self._receiving.add(self._transport.start("recv", self._pair, t, self._peer, tag), t)

    def _send(self, wire: list[Tensor], tag: int) -> None:
        slot, self._sends = self._sends % self.copies, self._sends + 1
        self._sending.add(self._transport.start("send", self._pair, wire[slot], self._peer, tag))

    def farewell(self) -> list[object]:
        """Complete the receives of the other end; the returned objects must live until the process ends."""
        tag = self._tag if self._produces else self._tag + 1
        bye = torch.zeros_like((self._wire if self._produces else self._words)[0])
        with contextlib.suppress(RankError):
            return [bye, *(self._transport.start("send", self._pair, bye, self._peer, tag) for _ in range(self.copies))]
        return []

    def _came(self) -> int:
        for waiter in (self._receiving, self._sending):
            if waiter.error is not None:
                raise self._transport.explained(waiter.error, f"a channel with rank {self._peer}", (self._peer,))
        return self._receiving.done

    def rings(self, bell: Callable[[], None]) -> bool:
        self._bell = bell
        return True

    def buffer(self, slot: int) -> Tensor:
        return self._buffers[slot]

    def post(self) -> None:
        self._send(self._wire, self._tag)

    def arrived(self) -> int:
        return self._came()

    def acknowledge(self) -> None:
        self._expect()
        self._send(self._words, self._tag + 1)

    def acknowledged(self) -> int:
        came = self._came()
        while self._receives < came + self.copies:
            self._expect()
        return came
