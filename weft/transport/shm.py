"""Ranks as processes of one host, through shared memory."""

from __future__ import annotations

import contextlib
import secrets
import select
import threading
from collections import defaultdict, deque
from collections.abc import Sequence

import torch
from torch import Tensor

from weft.core.errors import RankError
from weft.core.rank import Rank
from weft.transport.base import Channel, Group, Transport
from weft.transport.board import ALIVE, Board, words_needed
from weft.transport.check import PROGRAM
from weft.transport.memory import LINE, PAGE, Segment
from weft.transport.rendezvous import Meeting, tell_failure
from weft.transport.shm_group import ShmGroup, bytes_needed
from weft.transport.shm_link import Inlet, Outlet, ShmChannel, link_bytes
from weft.transport.whole import at_once, broken_message


class _Yielder(threading.local):
    """A poll of nothing, for each thread its own: no two may run one at a time."""

    def __init__(self) -> None:
        self.poll = select.poll()


class ShmTransport(Transport):
    def __init__(self, rank: Rank, meeting: Meeting, deadline: float | None = None) -> None:
        super().__init__(rank.index, rank.world_size, deadline)
        self._meeting = meeting
        self._board: Board | None = None
        self._kept: list[Segment] = []
        self._outlets: dict[tuple[int, str], Outlet] = {}
        self._inlets: dict[tuple[int, str], Inlet] = {}
        self._to_myself: defaultdict[str, deque[Tensor]] = defaultdict(deque)
        self._yielder = _Yielder()
        self._waits = 0
        # The secret keeps one run's memory apart from another's, also in `/proc/*/maps`.
        segment = self._shared("board", words_needed(self.world_size) * self.world_size, secrets.token_hex(8))
        self._board = Board(segment, self.rank, self.world_size)
        self._board.arrive()
        board = self._board
        self.wait_until(lambda: not board.missing(), lambda: f"rank {board.missing()} to start")
        self._board.watch()

    def _shared(self, key: str, size: int, secret: str = "") -> Segment:
        """Memory that several ranks ask for by the same key: the first makes it, the others open it."""
        if self._meeting.claim(key):
            segment = Segment.make(f"weft-{secret or 'memory'}-{key}", size)
            self._kept.append(segment)
            self._meeting.put(key, segment.handle)
            return segment
        return Segment.open(self._meeting.get(key, self.deadline, self._look))

    def _look(self) -> None:
        if self._board is not None:
            self._board.look_around(())

    def _make_group(self, ranks: tuple[int, ...], line: str) -> Group:
        key = "group/" + ",".join(map(str, ranks)) + f"/{line}" * bool(line)
        return ShmGroup(self, ranks, self._shared(key, bytes_needed(len(ranks))), line)

    def exchange(
        self, sends: Sequence[tuple[int, Tensor]], receives: Sequence[tuple[int, Tensor]], line: str = ""
    ) -> None:
        outgoing: dict[int, Outlet] = {}
        incoming: dict[int, Inlet] = {}
        for dst, _ in sends:
            if self._peer(dst, "send to") != self.rank:
                outgoing[dst] = self._outlets.get((dst, line)) or self._outlet(dst, line)
        for src, _ in receives:
            if self._peer(src, "receive from") != self.rank:
                incoming[src] = self._inlets.get((src, line)) or self._inlet(src, line)
        links = [*outgoing.values(), *incoming.values()]
        for link in links:
            if link.taken:
                raise link.broken or at_once(link.src, link.dst)
        for dst, t in sends:
            if dst == self.rank:
                self._to_myself[line].append(t.clone())
            else:
                outgoing[dst].put(t, self.check)
        back: list[tuple[Tensor, Tensor]] = []
        for src, t in receives:
            if src == self.rank:
                self._from_myself(t, self._to_myself[line])
                continue
            flat = t.view(-1) if t.is_contiguous() else torch.empty(t.numel(), dtype=t.dtype, device=t.device)
            if not t.is_contiguous():
                back.append((t, flat))
            incoming[src].take(flat, t, self.check)
        if links:
            try:
                self.wait_until(
                    lambda: all([link.move() for link in links]),
                    lambda: "; ".join(link.awaited() for link in links if link.busy),
                    tuple(outgoing) + tuple(incoming),
                    waiting=lambda: (
                        line,
                        "; ".join(link.awaited() for link in links if link.busy),
                        [link.need(line) for link in links if link.busy],
                        self.promises(line),
                    ),
                )
            except BaseException as error:
                for link in links:
                    link.drop(broken_message(link.src, link.dst, error))
                raise
        for t, flat in back:
            t.copy_(flat.view(t.shape))

    def promises(self, line: str) -> dict[str, int]:
        lines = PROGRAM if line in PROGRAM else (line,)
        links = [*self._outlets.items(), *self._inlets.items()]
        return super().promises(line) | {link.key(on): link.promised() for (_, on), link in links if on in lines}

    def _from_myself(self, t: Tensor, mail: deque[Tensor]) -> None:
        if not mail:
            raise RankError(f"rank {self.rank} receives from itself what it has not sent; send first")
        t.copy_(mail.popleft().view(t.shape))

    def _outlet(self, dst: int, line: str) -> Outlet:
        if line:
            segment = self._shared(f"link/{self.rank}/{dst}/{line}", link_bytes())
            self._outlets[dst, line] = outlet = Outlet(segment, self.rank, dst)
            return outlet
        segment = Segment.make(f"weft-link-{self.rank}-{dst}", link_bytes())
        self._kept.append(segment)
        self._outlets[dst, line] = outlet = Outlet(segment, self.rank, dst)
        assert self._board is not None
        self._board.offer(dst, int(segment.handle.split(b":")[1]))
        return outlet

    def _inlet(self, src: int, line: str) -> Inlet:
        board = self._board
        assert board is not None

        def find() -> Segment | None:
            if line:
                return self._shared(f"link/{src}/{self.rank}/{line}", link_bytes())
            descriptor = board.offered(src)
            if descriptor is None:
                return None
            return Segment.open(f"{board.pid(src)}:{descriptor}:{link_bytes()}".encode())

        self._inlets[src, line] = inlet = Inlet(find, src, self.rank)
        return inlet

    def channel(self, key: str, src: int, dst: int, shape: Sequence[int], dtype: torch.dtype, copies: int) -> Channel:
        name = f"channel/{src}/{dst}/{key}/{self._opens(key, src, dst, copies)}"
        layout = (tuple(shape), dtype, copies)
        stride = -(-torch.Size(shape).numel() * dtype.itemsize // LINE) * LINE
        segment = self._shared(name, PAGE + max(stride, LINE) * copies)
        return ShmChannel(segment, self.rank == src, key, layout, max(stride, LINE))

    def put(self, key: str, value: bytes) -> None:
        self._meeting.put(f"user/{key}", bytes(value))

    def get(self, key: str, timeout: float | None = None) -> bytes:
        return self._meeting.get(f"user/{key}", self.deadline if timeout is None else timeout, self._look)

    def note(self, what: str) -> None:
        if self._board is not None:
            self._board.note(what)

    def look_around(self, needed: Sequence[int]) -> None:
        if self._board is not None:
            self._board.look_around(needed)

    def give_way(self) -> None:
        super().give_way()
        self._waits += 1
        if not self._waits & 15:
            self._yielder.poll.poll(0)  # the cheapest call that also lets the other threads of this process run

    def fail(self, why: str, followed: bool = False) -> None:
        if self._board is not None:
            self._board.leave(why, followed)
            if not followed:
                with contextlib.suppress(RuntimeError):  # the store may be gone already
                    tell_failure(self._meeting.tcp, self.rank, self._board.told(self.rank))

    def close(self) -> None:
        board, self._board = self._board, None
        if board is None:
            return
        failed = board.state(self.rank) != ALIVE
        if not failed:
            if self._meeting.serves:
                self._stay(board)
            board.leave()
        self._groups.clear()
        self._outlets.clear()
        self._inlets.clear()
        for segment in self._kept:
            segment.forget()
        self._kept.clear()

    def _stay(self, board: Board) -> None:
        """Whoever serves the store leaves last, unless somebody failed."""
        with contextlib.suppress(RankError):
            self.wait_until(
                lambda: board.everyone_left() or board.look_around(()),
                "the others, whose store this rank serves, to end",
            )
