"""Channels between hosts: registers with a copy at each end, synchronized by messages."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import torch
from torch import Tensor

from weft.core.errors import RankError
from weft.transport.base import Channel
from weft.transport.c10d_connections import Connected


class C10dChannel(Channel):
    """Receives are posted for every free slot in advance; acknowledgements are separate messages of one byte."""

    def __init__(
        self, transport: Connected, src: int, dst: int, layout: tuple[tuple[int, ...], torch.dtype, int], tag: int
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
