"""Who is alive, where ranks share no memory: a thread per rank that says so in the store, and looks for the others.

Processes of the same host are watched through the kernel; those of other hosts through their heartbeat. Whoever first
sees a rank fail writes it into the store, so that all name the same one.
"""

from __future__ import annotations

import contextlib
import os
import select
import threading
import time
from collections.abc import Sequence

import torch.distributed as dist

from weft.core.errors import RankError
from weft.core.rank import Rank
from weft.transport.base import PeerFailed
from weft.transport.rendezvous import Meeting, tell_failure, told_failure

BEAT = 0.5  # seconds
SILENCE = 6.0  # seconds without a beat that mean death
SETTLE = 8.0  # seconds to find out why a connection broke


def host_identity() -> str:
    """The same for processes that see each other: one kernel, one process namespace."""
    with contextlib.suppress(OSError):
        with open("/proc/sys/kernel/random/boot_id") as f:
            return f"{f.read().strip()}/{os.stat('/proc/self/ns/pid').st_ino}"
    return os.uname().nodename


class Watch:
    def __init__(self, meeting: Meeting, rank: Rank, patience: float) -> None:
        self.rank, self.world_size = rank.index, rank.world_size
        self.note = ""
        self.failure: str | None = None
        self._ended: set[int] = set()
        self._host = host_identity()
        self._meeting = meeting
        meeting.put(f"peer/{self.rank}", f"{os.getpid()} {self._host}".encode())
        self._poller, self._local, self._remote = select.poll(), {}, []
        for other in range(self.world_size):
            if other != self.rank:
                self._find(other, meeting.get(f"peer/{other}", patience).decode())
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, args=(meeting.connect(),), name="weft-watch", daemon=True)
        if self.world_size > 1:
            self._thread.start()

    def _find(self, other: int, where: str) -> None:
        pid, host = where.split(" ", 1)
        if host != self._host or not hasattr(os, "pidfd_open"):
            self._remote.append(other)
            return
        if int(pid) == os.getpid():
            return
        try:
            descriptor = os.pidfd_open(int(pid))
        except ProcessLookupError:
            self.failure = f"rank {other} (process {pid}) died without a word"
            return
        self._local[descriptor] = other
        self._poller.register(descriptor, select.POLLIN)

    def _run(self, tcp: dist.Store) -> None:
        store = dist.PrefixStore(f"{self._meeting.prefix}/watch", tcp)
        beats: dict[int, tuple[bytes | None, float]] = {}
        count = 0
        try:
            while not self._stop.wait(BEAT):
                count += 1
                store.set(f"beat/{self.rank}", f"{count}|{self.note}")
                self._look(tcp, store, beats)
        except (dist.DistNetworkError, dist.DistStoreError):
            if not self._stop.is_set():
                self.failure = self.failure or "the launcher, or rank 0, which serves the store, died without a word"

    def _look(self, tcp: dist.Store, store: dist.Store, beats: dict[int, tuple[bytes | None, float]]) -> None:
        if (told := told_failure(tcp)) is not None and told[0] != self.rank:
            self.failure = self.failure or told[1]
            return
        for descriptor, _ in self._poller.poll(0):
            other = self._local.pop(descriptor)
            self._poller.unregister(descriptor)
            os.close(descriptor)
            self._gone(tcp, store, other)
        now = time.monotonic()
        for other in list(self._remote):
            if store.check([f"left/{other}"]):
                self._remote.remove(other)
                self._ended.add(other)
            else:
                beat = store.get(f"beat/{other}") if store.check([f"beat/{other}"]) else b""
                last, since = beats.get(other, (None, now))
                beats[other] = (beat, now if beat != last else since)
                if now - beats[other][1] > SILENCE:
                    self._remote.remove(other)
                    self._gone(tcp, store, other)

    def _gone(self, tcp: dist.Store, store: dist.Store, other: int) -> None:
        if store.check([f"left/{other}"]):
            self._ended.add(other)
            return
        note = ""
        if store.check([f"beat/{other}"]):
            note = store.get(f"beat/{other}").decode(errors="replace").split("|", 1)[1]
        told = tell_failure(tcp, other, "died without a word" + (f", at {note}" if note else ""))
        self.failure = self.failure or told

    def look_around(self, needed: Sequence[int]) -> None:
        if self.failure is not None:
            raise PeerFailed(self.failure)
        for rank in needed:
            if rank in self._ended:
                raise PeerFailed(f"rank {rank} has ended")

    def settle(self, needed: Sequence[int]) -> None:
        """A connection broke: wait until it is known why, and raise that."""
        end = time.monotonic() + SETTLE
        while time.monotonic() < end and self._thread.is_alive():
            self.look_around(needed)
            time.sleep(BEAT / 5)
        self.look_around(needed)

    def leave(self, why: str | None = None, followed: bool = False) -> None:
        """This rank ends: well, or because of `why`."""
        if self._stop.is_set():
            return
        self._stop.set()
        with contextlib.suppress(RankError, RuntimeError):
            if why is not None and not followed:
                note = f", at {self.note}" if self.note else ""
                tell_failure(self._meeting.tcp, self.rank, why + note)
            self._meeting.put(f"watch/left/{self.rank}", b"1")
        if self._thread.is_alive():
            self._thread.join(2 * BEAT)
        if self._meeting.serves and why is None:
            self._stay()
        for descriptor in self._local:
            os.close(descriptor)
        self._local.clear()

    def _stay(self) -> None:
        """Whoever serves the store leaves last, unless somebody failed."""
        with contextlib.suppress(RankError, RuntimeError):
            left = {self.rank} | self._ended
            while len(left) < self.world_size and told_failure(self._meeting.tcp) is None:
                dead = {self._local[d] for d, _ in self._poller.poll(0)}
                left |= {r for r in range(self.world_size) if r in dead or self._meeting.has(f"watch/left/{r}")}
                time.sleep(0.01)
