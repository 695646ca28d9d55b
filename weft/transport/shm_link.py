"""One-way memory between two processes: links, for tensors of any size in order, and channels, for registers."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import torch
from torch import Tensor

from weft.core.errors import RankError
from weft.transport.base import Channel
from weft.transport.memory import LINE, PAGE, WORD, Segment, publish

PIECE = 1 << 18  # bytes
PIECES = 4  # under way at most
WRITTEN, READ = 0, LINE // WORD  # how many so far; one writer each, on lines of their own
SIZE_OF = 2 * LINE // WORD  # per piece: the bytes of the whole message

LAYOUT = 4 * LINE  # where a channel's first end says what it is


def link_bytes() -> int:
    return PAGE + PIECES * PIECE


class _Link:
    """The ends share this: a queue of messages, as bytes, and how far the first of them is."""

    def __init__(self, src: int, dst: int) -> None:
        self.src, self.dst = src, dst
        self._queue: deque[Tensor] = deque()
        self._offset = 0
        self._count = 0
        self._slots: list[Tensor] = []

    def _map(self, segment: Segment) -> None:
        self._segment, self._words = segment, segment.words
        self._slots = [segment.tensor(PAGE + i * PIECE, (PIECE,), torch.uint8) for i in range(PIECES)]

    def _add(self, flat: Tensor) -> None:
        if flat.numel():
            self._queue.append(flat.view(torch.uint8))

    def _advance(self, moved: int) -> None:
        self._offset += moved
        self._count += 1
        if self._offset == self._queue[0].numel():
            self._queue.popleft()
            self._offset = 0

    def drop(self) -> None:
        self._queue.clear()
        self._offset = 0


class Outlet(_Link):
    def __init__(self, segment: Segment, src: int, dst: int) -> None:
        super().__init__(src, dst)
        self._map(segment)

    def put(self, t: Tensor) -> None:
        self._add(t.reshape(-1))

    def move(self) -> bool:
        """Write what there is room for; whether everything is written."""
        queue, words = self._queue, self._words
        while queue and self._count - words[READ] < PIECES:
            message = queue[0]
            piece = message[self._offset : self._offset + PIECE]
            slot = self._count % PIECES
            self._slots[slot][: piece.numel()].copy_(piece)
            words[SIZE_OF + slot] = message.numel()
            self._advance(piece.numel())
            publish(words, WRITTEN, self._count)
        return not queue

    def awaited(self) -> str:
        return f"rank {self.dst} to receive {len(self._queue)} tensors"


class Inlet(_Link):
    def __init__(self, find: Callable[[], Segment | None], src: int, dst: int) -> None:
        super().__init__(src, dst)
        self._find = find

    def take(self, flat: Tensor) -> None:
        self._add(flat)

    def move(self) -> bool:
        """Read what has come; whether everything has."""
        queue = self._queue
        if not queue:
            return True
        if not self._slots:
            segment = self._find()
            if segment is None:
                return False
            self._map(segment)
        words = self._words
        while queue and words[WRITTEN] > self._count:
            message, slot = queue[0], self._count % PIECES
            if words[SIZE_OF + slot] != message.numel():
                raise RankError(
                    f"rank {self.src} sent {words[SIZE_OF + slot]} bytes where rank {self.dst} receives "
                    f"{message.numel()}: the ranks diverged, or differ in shape or dtype"
                )
            piece = message[self._offset : self._offset + PIECE]
            piece.copy_(self._slots[slot][: piece.numel()])
            self._advance(piece.numel())
            publish(words, READ, self._count)
        return not queue

    def awaited(self) -> str:
        return f"rank {self.src} to send {len(self._queue)} tensors"


class ShmChannel(Channel):
    """Registers that the producer writes and the consumer reads in place."""

    def __init__(
        self, segment: Segment, produces: bool, key: str, layout: tuple[tuple[int, ...], torch.dtype, int], stride: int
    ) -> None:
        self.shape, self.dtype, self.copies = layout
        self._segment, self._words = segment, segment.words
        self._agree(produces, key, layout)
        self._buffers = [segment.tensor(PAGE + i * stride, self.shape, self.dtype) for i in range(self.copies)]
        self._count = 0  # of my own posts or acknowledgements

    def _agree(self, produces: bool, key: str, layout: object) -> None:
        """Each end writes what it holds the channel to be; whichever comes second sees a difference."""
        mine, theirs = (LAYOUT, LAYOUT + 1024) if produces else (LAYOUT + 1024, LAYOUT)
        text = repr(layout).encode()[:1000]
        self._segment.bytes[mine : mine + len(text)] = text
        found = self._segment.bytes[theirs : theirs + 1024].split(b"\0", 1)[0]
        if found and found != text:
            raise RankError(
                f"the two ends of channel {key!r} differ in (shape, dtype, copies): {text.decode()} here, "
                f"{found.decode()} there"
            )

    def buffer(self, slot: int) -> Tensor:
        return self._buffers[slot]

    def post(self) -> None:
        self._count += 1
        publish(self._words, WRITTEN, self._count)

    def arrived(self) -> int:
        return self._words[WRITTEN]

    def acknowledge(self) -> None:
        self._count += 1
        publish(self._words, READ, self._count)

    def acknowledged(self) -> int:
        return self._words[READ]
