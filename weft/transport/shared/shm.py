"""The transport for ranks as processes of one host, by shared memory."""

from __future__ import annotations

import contextlib
import select
import threading
import time
from collections import defaultdict, deque
from collections.abc import Sequence

import torch
from torch import Tensor

from weft.core.errors import RankError
from weft.core.rank import Rank
from weft.transport.base import Channel, Group
from weft.transport.board import ALIVE, Board
from weft.transport.check import PROGRAM
from weft.transport.memory import LINE, PAGE, Segment
from weft.transport.rendezvous import Meeting, Met
from weft.transport.roll import LATE, tell_failure
from weft.transport.shared.shm_group import ShmGroup, bytes_needed
from weft.transport.shared.shm_link import Inlet, Outlet, ShmChannel, link_bytes
from weft.transport.whereabouts import Whereabouts
from weft.transport.whole import at_once, broken_message


class _Yielder(threading.local):
    """An empty poll object for each thread, since two threads can't use one at a time."""

    def __init__(self) -> None:
        self.poll = select.poll()


class ShmTransport(Met):
    backend = "shm"

    def __init__(self, rank: Rank, meeting: Meeting, deadline: float | None = None) -> None:
        super().__init__(rank, meeting, deadline)
        self._kept: list[Segment] = []
        self._outlets: dict[tuple[int, str], Outlet] = {}
        self._inlets: dict[tuple[int, str], Inlet] = {}
        self._sending: list[ShmChannel] = []  # which the other end may not have opened yet
        self._to_myself: defaultdict[str, deque[Tensor]] = defaultdict(deque)
        self._yielder = _Yielder()
        self._waits = 0
        self._closed = False
        self._met = False  # whether all ranks have joined
        assert meeting.page is not None
        self._board = Board(meeting.page, meeting.roll)
        self._whereabouts = Whereabouts(self.rank, self._board.at)

    def _shared(self, key: str, size: int, ranks: Sequence[int]) -> Segment:
        """The segment of a key: the first of these ranks to ask makes it, the others open it."""
        if self._meeting.claim(key):
            segment = Segment.make(f"weft-{key}", size)
            self._kept.append(segment)
            self._meeting.put(key, segment.handle)
            return segment
        handle = self._meeting.get(key, self.deadline, lambda: self.look_around(ranks), ranks)
        return self._segment(handle, ranks)

    def _segment(self, handle: bytes, ranks: Sequence[int]) -> Segment:
        try:
            return Segment.open(handle)
        except RankError:
            for rank, there in self._meeting.roll.here.items():
                if handle.startswith(b"%d:" % there.pid):
                    self._meeting.roll.settled(rank)  # its files are closed a moment before its end is reported
            self.look_around(ranks)  # raises if one has ended, and says how
            raise

    def _make_group(self, ranks: tuple[int, ...], line: str) -> Group:
        key = "group/" + ",".join(map(str, ranks)) + f"/{line}" * bool(line)
        # A member's last note is read from its page, which can't be opened any more once it is dead.
        self.wait_until(lambda: self._board.knows(ranks), f"ranks {ranks} to come", ranks)
        return ShmGroup(self, ranks, self._shared(key, bytes_needed(len(ranks)), ranks), line)

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
            segment = self._shared(f"link/{self.rank}/{dst}/{line}", link_bytes(), (dst,))
            self._outlets[dst, line] = outlet = Outlet(segment, self.rank, dst)
            return outlet
        segment = Segment.make(f"weft-link-{self.rank}-{dst}", link_bytes())
        self._kept.append(segment)
        self._outlets[dst, line] = outlet = Outlet(segment, self.rank, dst)
        self._board.offer(dst, int(segment.handle.split(b":")[2]))
        return outlet

    def _inlet(self, src: int, line: str) -> Inlet:
        def find() -> Segment | None:
            if line:
                return self._shared(f"link/{src}/{self.rank}/{line}", link_bytes(), (src,))
            handle = self._board.offered(src, link_bytes())
            return None if handle is None else self._segment(handle, (src,))

        self._inlets[src, line] = inlet = Inlet(find, src, self.rank)
        return inlet

    def channel(self, key: str, src: int, dst: int, shape: Sequence[int], dtype: torch.dtype, copies: int) -> Channel:
        name = f"channel/{src}/{dst}/{key}/{self._opens(key, src, dst, copies)}"
        layout = (tuple(shape), dtype, copies)
        stride = -(-torch.Size(shape).numel() * dtype.itemsize // LINE) * LINE
        segment = self._shared(name, PAGE + max(stride, LINE) * copies, (src, dst))
        made = ShmChannel(segment, self.rank == src, dst, key, layout, max(stride, LINE))
        self._channels.add(made)
        if self.rank == src:
            self._sending = [one for one in self._sending if not one.opened()] + [made]
        return made

    def note(self, what: str) -> None:
        if not self._met:
            if self._closed:
                return
            self._board.meet()
            self._met = self._board.complete
        self._board.note(what)

    def whereabouts(self, rank: int) -> str:
        return self._board.whereabouts(rank)

    def look_around(self, needed: Sequence[int]) -> None:
        if not self._closed:
            self._board.look_around(needed)

    def give_way(self) -> None:
        super().give_way()
        self._waits += 1
        if not self._waits & 15:
            self._yielder.poll.poll(0)  # the cheapest call that also lets the other threads of this process run

    def fail(self, why: str, followed: bool = False) -> None:
        if self._closed:
            return
        self._board.leave(why, followed)
        if not followed:
            with contextlib.suppress(RankError, RuntimeError):  # the store may be gone already
                tell_failure(self._meeting.run, self.rank, self._board.cause(self.rank))
        self._meeting.tell_late()

    def close(self) -> None:
        if self._closed:
            return
        board = self._board
        if board.state(self.rank) == ALIVE:
            for last in (self._deliver, self._meeting.roll.leave, self._stay):
                with contextlib.suppress(RankError):  # if another failed, nothing is needed any more
                    last()
            board.leave()
        self._closed, self._met = True, False
        self._whereabouts.close()
        self._groups.clear()
        self._outlets.clear()
        self._inlets.clear()
        self._sending.clear()
        for segment in (*self._kept, board.page):
            segment.forget()
        self._kept.clear()
        self._meeting.roll.peers.close()

    def _deliver(self) -> None:
        """Wait until live receivers have taken what was sent, which lies in memory of this process."""
        sent = [(dst, outlet) for (dst, _), outlet in self._outlets.items()]
        sent += [(channel.dst, channel) for channel in self._sending]

        def waiting() -> list[int]:
            return sorted({dst for dst, end in sent if not end.reached() and not self._board.gone(dst)})

        if waiting():
            self.wait_until(
                lambda: not waiting(),
                lambda: f"rank {', '.join(map(str, waiting()))} to take what was sent, which would end with this rank",
            )

    def _stay(self) -> None:
        """Whoever serves the store leaves last, unless somebody failed."""
        roll, others = self._meeting.roll, [r for r in range(self.world_size) if r != self.rank]

        def left(rank: int) -> bool:
            return self._board.gone(rank) or (rank in roll.absent and time.monotonic() - roll.came > LATE)

        if self._meeting.serves:
            self.wait_until(lambda: all(map(left, others)), "the others, whose store this rank serves, to end")
