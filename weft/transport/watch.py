"""Failure detection for ranks without shared memory: a thread per rank that writes its heartbeat to the store, and
watches the others.

Processes of the same host are watched by the kernel's pidfds, those of other hosts by their heartbeats. The first rank
to see a failure records it in the store, so that all report the same one.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Iterator, Sequence

from weft.core.errors import RankError
from weft.transport.base import PeerFailed
from weft.transport.board import AT, AT_SIZE, NOTE, NOTE_SIZE
from weft.transport.memory import Segment
from weft.transport.rendezvous import Meeting
from weft.transport.roll import LATE, Lost, first_failure, tell_failure
from weft.transport.secret import Signed
from weft.transport.whereabouts import whereabouts
from weft.transport.whole import PeerEnded

BEAT = 0.5  # seconds
SILENCE = 6.0  # seconds without a heartbeat after which a rank counts as dead
SETTLE = 8.0  # seconds to find out why a connection broke
NEARBY = 2.0  # the same if all needed ranks are on this host
HAS_PIDFD = hasattr(os, "pidfd_open")


class Watch:
    def __init__(self, meeting: Meeting) -> None:
        self.rank, self.world_size = meeting.rank, meeting.world_size
        self.note = ""
        self.failure: str | None = None
        self._meeting, self._roll = meeting, meeting.roll
        self._pages: dict[int, Segment] = {}  # of those whose notes can be read here
        self._beats: dict[int, tuple[bytes | None, float]] = {}
        self._buried: set[int] = set()
        self.meet()  # of any two ranks the later one compares their settings here
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="weft-watch", daemon=True)
        if self.world_size > 1:
            self._thread.start()

    def _run(self) -> None:
        count, said = 0, ""
        with self._as_failure():
            run, store = self._meeting.connected_again(self._meeting.run), self._meeting.under("watch")
            while not self._stop.is_set():
                count += 1
                store.set(f"beat/{self.rank}", f"{count}|{self.note}")
                if (at := whereabouts()) != said and self._meeting.page is not None:
                    self._meeting.page.write(AT, at, AT_SIZE)
                    said = at
                self._look(run, store)
                self._stop.wait(BEAT)

    @contextlib.contextmanager
    def _as_failure(self) -> Iterator[None]:
        try:
            yield
        except RankError as error:  # a rank failed, or this one's settings differ
            lost = self._at(0) if "which serves the store, has ended" in str(error) else ""
            self.failure = self.failure or str(error) + lost
        except Lost:
            if not self._stop.is_set():
                died = f"{self._meeting.server}, which serves the store, died without a word"
                self.failure = self.failure or died + self._at(0)

    def _look(self, run: Signed, store: Signed) -> None:
        if (failure := first_failure(run)) is not None:
            self.failure = self.failure or failure[1]
            return
        roll, now = self._roll, time.monotonic()
        self.meet()
        self._see_ends(store)
        for other in list(roll.here):
            if self._nearby(other) or other in self._buried or other in roll.ended:
                continue
            beat = store.get(f"beat/{other}") if store.check([f"beat/{other}"]) else b""
            last, since = self._beats.get(other, (None, now))
            self._beats[other] = (beat, now if beat != last else since)
            if self._meeting.has(f"left/{other}") or now - self._beats[other][1] > SILENCE:
                self._gone(store, other)

    def _see_ends(self, store: Signed | None = None) -> None:
        """Check for exits of processes of this host."""
        for other in self._roll.peers.dead() - self._buried:
            self._gone(store, other)

    def _gone(self, store: Signed | None, other: int) -> None:
        note = self._at(other)
        if other == self._meeting.server_rank:  # c10d would look up names for its log, perhaps for 5 s
            raise PeerFailed(f"rank 0 {self._roll.process(0)}, which serves the store, died without a word{note}")
        if not note and store is not None and store.check([f"beat/{other}"]):
            note = ", at " + store.get(f"beat/{other}").decode(errors="replace").partition("|")[2]
        if failure := self._roll.handle_exit(other, note):
            self.failure = self.failure or failure
        self._buried.add(other)

    def _at(self, other: int) -> str:
        page = self._pages.get(other)
        note = "" if page is None else page.read(NOTE, NOTE_SIZE)
        return f", at {note}" if note else ""

    def whereabouts(self, other: int) -> str:
        page = self._pages.get(other)
        return self._roll.whereabouts(other, "" if page is None else page.read(AT, AT_SIZE))

    def meet(self) -> None:
        """Check for new ranks, and map the pages of those on this host: their notes outlive them. Notes of other hosts
        come with the heartbeat."""
        self._roll.look()
        for other in self._roll.here.keys() - self._pages.keys() - self._buried:
            if self._nearby(other) and (page := self._roll.here[other].page):
                with contextlib.suppress(RankError):
                    self._pages[other] = Segment.open(page.encode())

    def _nearby(self, other: int) -> bool:
        return HAS_PIDFD and other in self._roll.here and self._roll.here[other].host == self._roll.mine.host

    def tell(self, what: str) -> None:
        """Set the note of what this rank does."""
        self.note = what
        if self._meeting.page is not None:
            self._meeting.page.write(NOTE, what, NOTE_SIZE)

    def look_around(self, needed: Sequence[int]) -> None:
        if self.failure is None:
            self.meet()
            with self._as_failure():  # at once, as torchrun ends the others within a tenth of a second
                self._see_ends()
        if self.failure is not None:
            raise PeerFailed(self.failure)
        for rank in needed:
            if rank in self._roll.ended:
                raise PeerEnded(f"rank {rank} has ended")

    def settle(self, needed: Sequence[int]) -> None:
        """After a broken connection: wait until the cause is known, and raise that."""
        near = all(r == self.rank or self._nearby(r) for r in needed)
        end = time.monotonic() + (NEARBY if near else SETTLE)
        while time.monotonic() < end and self._thread.is_alive():
            self.look_around(needed)
            time.sleep(BEAT / 50)
        self.look_around(needed)

    def leave(self, why: str | None = None, followed: bool = False) -> None:
        """This rank ends: well, or because of `why`."""
        if self._stop.is_set():
            return
        self._stop.set()
        with contextlib.suppress(RankError, RuntimeError):
            if why is not None and not followed:
                note = f", at {self.note}" if self.note else ""
                tell_failure(self._meeting.run, self.rank, why + note)
            if why is None:
                self._roll.leave()
        if self._thread.is_alive():
            self._thread.join(2 * BEAT)
        if why is not None:
            self._meeting.tell_late()
        elif self._meeting.serves:
            self._stay()
        self._roll.peers.close()
        if self._meeting.page is not None:
            self._meeting.page.forget()

    def _stay(self) -> None:
        """Whoever serves the store leaves last, unless somebody failed."""
        roll, meeting = self._roll, self._meeting
        with contextlib.suppress(RankError, RuntimeError):
            while first_failure(meeting.run) is None:
                roll.look()
                live = [r for r in roll.here if r not in roll.peers.dead() and not meeting.has(f"left/{r}")]
                if not live and (not roll.absent or time.monotonic() - roll.came > LATE):
                    break
                time.sleep(0.01)
