"""One-way shared memory between two processes: links, for messages of any size, and channels, for registers."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import torch
from torch import Tensor

from weft.core.errors import RankError
from weft.transport.base import Channel
from weft.transport.check import DTYPES, Check, dtype_code, unlike
from weft.transport.memory import LINE, PAGE, WORD, Segment, publish
from weft.transport.stuck import Need

PIECE = 1 << 18  # bytes
PIECES = 4  # in flight at most
WRITTEN, READ = 0, LINE // WORD  # counters, with one writer each, on separate cache lines
OPENED = READ + 1  # of a link: the reader has mapped the memory, which outlives the writer then
FORM_OF = 2 * LINE // WORD  # per piece: the whole message's dtype and size
BYTES = 40  # low bits of a form, for the message's bytes; above, its dtype, and a hash of its shape

LAYOUT = 4 * LINE  # offset of a channel's description, by its first end


def link_bytes() -> int:
    return PAGE + PIECES * PIECE


class _Link:
    """The common part of both ends: a queue of messages, as bytes, and the progress of the first."""

    def __init__(self, src: int, dst: int) -> None:
        self.src, self.dst = src, dst
        self._queue: deque[tuple[Tensor, int, Tensor]] = deque()  # the bytes, their form, and the tensor
        self._offset = 0
        self._count = 0
        self._slots: list[Tensor] = []
        self.broken: RankError | None = None  # the error of later messages

    def _map(self, segment: Segment) -> None:
        self._segment, self._words = segment, segment.words
        self._slots = [segment.tensor(PAGE + i * PIECE, (PIECE,), torch.uint8) for i in range(PIECES)]

    def _add(self, flat: Tensor, t: Tensor, check: Check) -> None:
        self._queue.append((flat.view(torch.uint8), form(t, check), t))

    @property
    def taken(self) -> bool:
        """Whether it is in use by another thread's message, or by an interrupted one."""
        return bool(self._queue) or self.broken is not None

    @property
    def busy(self) -> bool:
        return bool(self._queue)

    def promised(self) -> int:
        """The number of pieces so far, with those in the queue."""
        pieces = sum(-(-message.numel() // PIECE) or 1 for message, _, _ in list(self._queue))
        return self._count + pieces - self._offset // PIECE

    def _advance(self, moved: int) -> None:
        self._offset += moved
        self._count += 1
        if self._offset == self._queue[0][0].numel():
            self._queue.popleft()
            self._offset = 0

    def drop(self, broken: RankError) -> None:
        self._queue.clear()
        self._offset = 0
        self.broken = broken


class Outlet(_Link):
    def __init__(self, segment: Segment, src: int, dst: int) -> None:
        super().__init__(src, dst)
        self._map(segment)

    def put(self, t: Tensor, check: Check) -> None:
        self._add(t.reshape(-1), t, check)

    def key(self, line: str) -> str:
        return f"sent {self.src} {self.dst} {line}"

    def need(self, line: str) -> Need:
        return Need(self.dst, f"received {self.src} {self.dst} {line}", self._count - PIECES + 1)

    def reached(self) -> bool:
        """Whether nothing is lost if this end exits."""
        return bool(self._words[OPENED]) or not self._count

    def move(self) -> bool:
        """Write as much as fits; returns whether everything is written."""
        queue, words = self._queue, self._words
        while queue and self._count - words[READ] < PIECES:
            message, words[FORM_OF + self._count % PIECES], _ = queue[0]
            piece = message[self._offset : self._offset + PIECE]
            slot = self._count % PIECES
            self._slots[slot][: piece.numel()].copy_(piece)
            self._advance(piece.numel())
            publish(words, WRITTEN, self._count)
        return not queue

    def awaited(self) -> str:
        return f"send of {_shown(self._queue[0][1])} to rank {self.dst}"


class Inlet(_Link):
    def __init__(self, find: Callable[[], Segment | None], src: int, dst: int) -> None:
        super().__init__(src, dst)
        self._find = find

    def take(self, flat: Tensor, t: Tensor, check: Check) -> None:
        self._add(flat, t, check)

    def key(self, line: str) -> str:
        return f"received {self.src} {self.dst} {line}"

    def need(self, line: str) -> Need:
        return Need(self.src, f"sent {self.src} {self.dst} {line}", self._count + 1)

    def move(self) -> bool:
        """Read what has arrived; returns whether everything has."""
        queue = self._queue
        if not queue:
            return True
        if not self._slots:
            segment = self._find()
            if segment is None:
                return False
            self._map(segment)
            self._words[OPENED] = 1
        words = self._words
        while queue and words[WRITTEN] > self._count:
            (message, expected, t), slot = queue[0], self._count % PIECES
            found = words[FORM_OF + slot]
            if found != expected:
                raise RankError(_differs(self.src, self.dst, found, expected, t))
            piece = message[self._offset : self._offset + PIECE]
            piece.copy_(self._slots[slot][: piece.numel()])
            self._advance(piece.numel())
            publish(words, READ, self._count)
        return not queue

    def awaited(self) -> str:
        return f"recv of {_shown(self._queue[0][1])} from rank {self.src}"


def form(t: Tensor, check: Check) -> int:
    """A message's dtype and size as one number; if shapes are compared, with a hash of its shape."""
    shape = hash(tuple(t.shape)) & 0xFFFF if check else 0
    return (shape << 6 | dtype_code[t.dtype]) << BYTES | t.nbytes


def _parsed(number: int) -> tuple[str, int, int]:
    dtype = DTYPES[(number >> BYTES & 63) % len(DTYPES)]
    return str(dtype).removeprefix("torch."), (number & (1 << BYTES) - 1) // dtype.itemsize, number >> BYTES + 6


def _shown(number: int) -> str:
    name, count, _ = _parsed(number)
    return f"{count} {name}"


def _differs(src: int, dst: int, found: int, expected: int, t: Tensor) -> str:
    (a, b, _), (c, d, _) = _parsed(found), _parsed(expected)
    if (a, b) == (c, d):
        return unlike(src, dst, (f"{a} of another shape than ", t.shape), (c, t.shape))
    return unlike(src, dst, (a, (b,)), (c, (d,)))


class ShmChannel(Channel):
    """Registers that the producer writes and the consumer reads in place."""

    def __init__(
        self, segment: Segment, produces: bool, dst: int, key: str, layout: tuple[tuple[int, ...], torch.dtype, int],
        stride: int,
    ) -> None:  # fmt: skip
        self.shape, self.dtype, self.copies = layout
        self.dst = dst
        self._segment, self._words = segment, segment.words
        self._agree(produces, key, layout)
        self._buffers = [segment.tensor(PAGE + i * stride, self.shape, self.dtype) for i in range(self.copies)]
        self._count = 0  # of my own posts or acknowledgements

    def _agree(self, produces: bool, key: str, layout: object) -> None:
        """The handshake of a channel: each end writes its description; the second one compares."""
        mine, theirs = (LAYOUT, LAYOUT + 1024) if produces else (LAYOUT + 1024, LAYOUT)
        text = repr(layout).encode()[:1000]
        self._segment.bytes[mine : mine + len(text)] = text
        found = self._segment.bytes[theirs : theirs + 1024].split(b"\0", 1)[0]
        if found and found != text:
            raise RankError(
                f"the two ends of channel {key!r} differ in (shape, dtype, copies): {text.decode()} here, "
                f"{found.decode(errors='replace')} there"
            )

    def reached(self) -> bool:
        """Producer: whether nothing is lost if this end exits."""
        return not self._count or self.opened()

    def opened(self) -> bool:
        return self._segment.bytes[LAYOUT + 1024] != 0

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
