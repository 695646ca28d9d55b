"""The board of a run on one host: every rank's status in shared memory, readable even after it was killed.

Each rank has a page, which the others map when it has joined: its state, its latest note, why it failed; and words for
each other rank: the file descriptor of the memory that leads to it, and whether it has joined and mapped this page.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

from weft.core.errors import RankError
from weft.transport.base import PeerFailed
from weft.transport.memory import PAGE, WORD, Segment, handle_of, publish
from weft.transport.roll import Roll

ABSENT, ALIVE, ENDED, FAILED, FOLLOWED = range(5)  # FOLLOWED: it ended because another rank had failed
STATE = 0  # the first word of a rank's page; then, as bytes of it:
NOTE, NOTE_SIZE, WHY, WHY_SIZE, AT, AT_SIZE = 1024, 1000, 2048, 1500, 3584, 480


class Board:
    def __init__(self, page: Segment, roll: Roll) -> None:
        self.rank, self.world_size = roll.rank, roll.world_size
        self._roll, self.page = roll, page
        self._pages: dict[int, Segment] = {self.rank: page}
        self._meeting = threading.Lock()
        self._offers = PAGE // WORD
        self._hails = slice(PAGE + self.world_size * WORD, PAGE + 2 * self.world_size * WORD)
        self._hailed = b""
        publish(page.words, STATE, ALIVE)
        self.meet()

    @property
    def complete(self) -> bool:
        """Whether all ranks have joined."""
        return len(self._pages) + len(self._roll.ended) >= self.world_size

    def meet(self) -> None:
        """Map the pages of ranks that have joined since. Never waits."""
        if self.complete or not self._meeting.acquire(blocking=False):
            return
        try:
            hailed = self.page.bytes[self._hails]
            if hailed != self._hailed:
                self._hailed = hailed
                self._roll.look_at_once()
            self._roll.look()
            for rank in [r for r in self._roll.here if r not in self._pages and r not in self._roll.ended]:
                self._open(rank)
        finally:
            self._meeting.release()

    def _open(self, rank: int) -> None:
        there = self._roll.here[rank]
        if there.host != self._roll.mine.host or not there.page:
            self._roll.refuse_for_all(
                f"shares memory, and rank {rank} is on another host or in another container, or can't share any: set "
                "WEFT_TRANSPORT=c10d for all ranks"
            )
        try:
            page = self._pages[rank] = Segment.open(there.page.encode())
            page.words[self._offers + self.world_size + self.rank] = 1
        except RankError:
            # It has closed its memory: its exit is known, or will be in a moment.
            dead = self._roll.settled(rank)
            if failure := self._roll.handle_exit(rank):
                if rank in dead:
                    raise PeerFailed(failure) from None
                raise

    def knows(self, ranks: Sequence[int]) -> bool:
        """Whether the pages of these ranks are mapped here. Never waits."""
        self.meet()
        return all(r in self._pages or r in self._roll.ended for r in ranks)

    def state(self, rank: int) -> int:
        page = self._pages.get(rank)
        if page is None:
            return ENDED if rank in self._roll.ended else ABSENT
        return page.words[STATE]

    def gone(self, rank: int) -> bool:
        """Whether a rank has exited."""
        return self.state(rank) > ALIVE or rank in self._roll.peers.dead()

    def note(self, what: str) -> None:
        self.page.write(NOTE, what, NOTE_SIZE)

    def at(self, where: str) -> None:
        self.page.write(AT, where, AT_SIZE)

    def whereabouts(self, rank: int) -> str:
        return self._roll.whereabouts(rank, self._read(rank, AT, AT_SIZE))

    def leave(self, why: str | None = None, followed: bool = False) -> None:
        """This rank ends: well, or because of `why`."""
        if why is not None:
            self.page.write(WHY, why, WHY_SIZE)
        publish(self.page.words, STATE, ENDED if why is None else FOLLOWED if followed else FAILED)

    def look_around(self, needed: Sequence[int]) -> None:
        """Raise PeerFailed if a rank has failed, or if one that is needed has ended."""
        self.meet()
        dead = self._roll.peers.dead()
        states = {r: self.state(r) for r in range(self.world_size)}
        gone = sorted(r for r in dead if states[r] <= ALIVE)  # also before it has said so
        if gone:
            raise PeerFailed(self._roll.died(gone[0], self._at(gone[0])))
        for wanted in (FAILED, FOLLOWED):
            for rank, state in states.items():
                if state == wanted and rank != self.rank:
                    raise PeerFailed(f"rank {rank} {self.cause(rank)}")
        for rank in needed:
            if states[rank] == ENDED and rank != self.rank:
                raise PeerFailed(f"rank {rank} has ended{self._at(rank)}")

    def offer(self, dst: int, descriptor: int) -> None:
        """Publish the file descriptor of the shared memory that leads to `dst`."""
        publish(self.page.words, self._offers + dst, descriptor + 1)

    def offered(self, src: int, size: int) -> bytes | None:
        """The handle of the shared memory that leads here from `src`, once it is published."""
        self.meet()
        page = self._pages.get(src)
        found = 0 if page is None else page.words[self._offers + self.rank]
        there = self._roll.here.get(src)
        return handle_of(there.pid, there.since, found - 1, size) if found and there else None

    def cause(self, rank: int) -> str:
        """Why a rank failed, and what it was doing."""
        return self._read(rank, WHY, WHY_SIZE) + self._at(rank)

    def _at(self, rank: int) -> str:
        note = self._read(rank, NOTE, NOTE_SIZE)
        return f", at {note}" if note else ""

    def _read(self, rank: int, offset: int, most: int) -> str:
        page = self._pages.get(rank)
        return "" if page is None else page.read(offset, most)
