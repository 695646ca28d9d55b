"""The board of a run on one host: what every rank is and does, readable even after it was killed.

A page per rank: state, process, the latest note, why it failed. A rank's death is noticed through its process's
descriptor, which the kernel makes readable at the end of the process, whatever ended it.
"""

from __future__ import annotations

import os
import select
import threading
from collections.abc import Sequence

from weft.transport.base import PeerFailed
from weft.transport.memory import PAGE, WORD, Segment, publish

ABSENT, ALIVE, ENDED, FAILED, FOLLOWED = range(5)  # FOLLOWED: it ended because another rank had failed
STATE, PID = 0, 1  # words of a rank's page; then, as bytes of it:
NOTE, NOTE_SIZE, WHY, WHY_SIZE = 1024, 1000, 2048, 1500


def words_needed(world_size: int) -> int:
    """Bytes of one rank's part: its page, and a word per rank it may send to."""
    return PAGE + -(-world_size * WORD // PAGE) * PAGE


class Board:
    def __init__(self, segment: Segment, rank: int, world_size: int) -> None:
        self.rank, self.world_size = rank, world_size
        self._segment, self._part = segment, words_needed(world_size)
        self._words = segment.words
        self._looking = threading.Lock()  # of the two below; several threads may wait at a time
        self._poller = select.poll()
        self._watched: dict[int, int] = {}  # descriptor of a process -> its rank
        self._dead: set[int] = set()

    def _word(self, rank: int, word: int) -> int:
        return rank * self._part // WORD + word

    def arrive(self) -> None:
        self._words[self._word(self.rank, PID)] = os.getpid()
        publish(self._words, self._word(self.rank, STATE), ALIVE)

    def state(self, rank: int) -> int:
        return self._words[self._word(rank, STATE)]

    def pid(self, rank: int) -> int:
        return self._words[self._word(rank, PID)]

    def missing(self) -> list[int]:
        return [r for r in range(self.world_size) if self.state(r) == ABSENT]

    def watch(self) -> None:
        """Once everybody has arrived: hold a descriptor of every other process."""
        for rank in range(self.world_size):
            if rank == self.rank or self.pid(rank) == os.getpid():
                continue
            try:
                descriptor = os.pidfd_open(self.pid(rank))
            except ProcessLookupError:
                self._dead.add(rank)
                continue
            self._watched[descriptor] = rank
            self._poller.register(descriptor, select.POLLIN)

    def note(self, what: str) -> None:
        self._write(NOTE, what, NOTE_SIZE)

    def note_of(self, rank: int) -> str:
        return self._read(rank, NOTE)

    def leave(self, why: str | None = None, followed: bool = False) -> None:
        """This rank ends: well, or because of `why`."""
        if why is not None:
            self._write(WHY, why, WHY_SIZE)
        state = ENDED if why is None else FOLLOWED if followed else FAILED
        publish(self._words, self._word(self.rank, STATE), state)
        with self._looking:
            for descriptor in self._watched:
                os.close(descriptor)
            self._watched.clear()
            self._poller = select.poll()

    def look_around(self, needed: Sequence[int]) -> None:
        """Raise PeerFailed if a rank has failed, or if one that is needed has ended."""
        with self._looking:
            for descriptor, _ in self._poller.poll(0):
                rank = self._watched.pop(descriptor)
                self._poller.unregister(descriptor)
                os.close(descriptor)
                self._dead.add(rank)
        states = [self.state(r) for r in range(self.world_size)]
        gone = sorted(r for r in self._dead if states[r] == ALIVE)
        if gone:
            raise PeerFailed(f"rank {gone[0]} (process {self.pid(gone[0])}) died without a word{self._at(gone[0])}")
        for wanted in (FAILED, FOLLOWED):
            for rank, state in enumerate(states):
                if state == wanted and rank != self.rank:
                    raise PeerFailed(f"rank {rank} {self.told(rank)}")
        for rank in needed:
            if states[rank] == ENDED and rank != self.rank:
                raise PeerFailed(f"rank {rank} has ended{self._at(rank)}")

    def everyone_left(self) -> bool:
        """Whether no other rank will need anything from this one."""
        with self._looking:
            self._dead.update(self._watched[descriptor] for descriptor, _ in self._poller.poll(0))
        return all(r in self._dead or self.state(r) > ALIVE for r in range(self.world_size) if r != self.rank)

    def offer(self, dst: int, descriptor: int) -> None:
        """Say under which descriptor this process holds the memory that leads to `dst`."""
        publish(self._words, self._word(self.rank, PAGE // WORD + dst), descriptor + 1)

    def offered(self, src: int) -> int | None:
        """The descriptor, in the process of `src`, of the memory that leads here."""
        found = self._words[self._word(src, PAGE // WORD + self.rank)]
        return found - 1 if found else None

    def told(self, rank: int) -> str:
        """Why a rank failed, and at what."""
        return self._read(rank, WHY) + self._at(rank)

    def _at(self, rank: int) -> str:
        note = self.note_of(rank)
        return f", at {note}" if note else ""

    def _write(self, offset: int, text: str, most: int) -> None:
        start = self.rank * self._part + offset
        data = text.encode(errors="replace")[:most]
        self._segment.bytes[start : start + len(data) + 1] = data + b"\0"

    def _read(self, rank: int, offset: int) -> str:
        start = rank * self._part + offset
        data = self._segment.bytes[start : start + WHY_SIZE + 1]
        return data.split(b"\0", 1)[0].decode(errors="replace")
