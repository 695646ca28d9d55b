"""Who has come to a run: each rank says in the store what it was told, and is watched from then on.

Nobody waits here for all. Ranks that were told different things end at once, on all sides.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import msgspec
import torch.distributed as dist

from weft.core.errors import RankError
from weft.transport.base import PeerFailed
from weft.transport.peers import Peers, started
from weft.transport.secret import Signed

if TYPE_CHECKING:
    from weft.transport.rendezvous import Meeting

PROTOCOL = 2  # of what ranks write for each other; raised by whoever changes it
LOOK = 0.05  # seconds between looks for who has come
SWEEP = 1.0  # seconds between looks for each that hasn't, whatever the counter says
LATE = 10.0  # seconds after it came until which a rank that serves the store waits at its end for those absent
SETTLE = 0.5  # seconds until the kernel tells of an end whose traces are seen already
Lost: Final = (dist.DistNetworkError, dist.DistStoreError)


def restart() -> str:
    """Which attempt at this run this is: torchrun counts them."""
    return os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")


def run_of(store: dist.Store, secret: str) -> Signed:
    """What is said about the run as a whole, by its launchers too."""
    return Signed(store, secret, f"weft/{restart()}/")


def tell_failure(run: Signed, rank: int, why: str) -> str:
    """Write down the run's first failure, for the others and the launcher; returns what stands there then."""
    return run.first("failure", f"{rank}|rank {rank} {why}").decode(errors="replace").partition("|")[2]


def told_failure(run: Signed) -> tuple[int, str] | None:
    """The run's first failure, if a rank told of one: the rank, and what happened to it."""
    if not run.check(["failure"]):
        return None
    rank, _, why = run.get("failure").decode(errors="replace").partition("|")
    return int(rank), why


def tell_end(run: Signed, rank: int, how: str = "") -> None:
    """A launcher saw a rank's process end, and `how` it failed, if it did: the rank may never have come."""
    run.set(f"gone/{rank}", how)
    run.add("gone", 1)


def host_identity() -> str:
    """The same for processes that see each other: one kernel, one process namespace."""
    with contextlib.suppress(OSError):
        with open("/proc/sys/kernel/random/boot_id") as f:
            return f"{f.read().strip()}/{os.stat('/proc/self/ns/pid').st_ino}"
    return os.uname().nodename


class Come(msgspec.Struct, frozen=True):
    """What a rank says of itself when it comes."""

    protocol: int
    world_size: int
    transport: str
    pid: int
    since: int  # when its process began
    host: str
    page: str  # the memory that it shows to all others, if it shares any


# What all ranks must have been told alike, in words, and what to do where they weren't.
ALIKE = (
    ("protocol", "speaks version {} of Weft's protocol", "install the same Weft for all"),
    ("world_size", "was told WORLD_SIZE={}", "all ranks of a run are told the same, and each a RANK below it"),
    ("transport", "was told WEFT_TRANSPORT={}", "set it for all ranks, or for none"),
)


class Roll:
    """here    who has come, and what it said; without this rank
    absent  who hasn't, and may still
    ended   who ended well, as far as it is known
    """

    def __init__(self, meeting: Meeting, rank: int, world_size: int) -> None:
        self.rank, self.world_size = rank, world_size
        self.here: dict[int, Come] = {}
        self.absent = set(range(world_size)) - {rank}
        self.ended: set[int] = set()
        self.peers = Peers()
        self.came = time.monotonic()
        self._meeting = meeting
        self._lock = threading.Lock()
        self._count = 0
        self._nap, self._next, self._swept = 1e-4, 0.0, self.came

    def enter(self, transport: str, page: bytes) -> None:
        pid = os.getpid()
        self.mine = Come(PROTOCOL, self.world_size, transport, pid, started(pid), host_identity(), page.decode())
        if self._meeting.times > 1:
            self._refuse_twin()
        self._meeting.put(f"come/{self.rank}", msgspec.json.encode(self.mine))
        self._meeting.add("come")

    def _refuse_twin(self) -> None:
        """Somebody came as this rank before: this process itself, one that ended since, or one that lives."""
        before, key = self._meeting.run.under(str(self._meeting.times - 1)), f"come/{self.rank}"
        end = time.monotonic() + 2 * SETTLE
        while not self._meeting.attempt(lambda: before.check([key])) and time.monotonic() < end:
            time.sleep(LOOK / 10)  # it has just said that it comes, and will say more
        if not self._meeting.attempt(lambda: before.check([key])):
            return
        twin = self._understood(self.rank, self._meeting.attempt(lambda: before.get(key)))
        peers = Peers()
        if twin.host == self.mine.host and twin.pid != self.mine.pid:
            peers.watch(self.rank, twin.pid, twin.since)
            if not peers.dead():
                self.contradict(
                    f"was started twice, as processes {twin.pid} and {self.mine.pid}: each process of a run has a RANK "
                    "of its own, from 0 to WORLD_SIZE - 1, and what a rank starts must not take part as that rank"
                )
        peers.close()

    def look(self) -> None:
        """See who has come since. Raises if somebody failed, or was told otherwise. Never waits."""
        if not self.absent or not self._lock.acquire(blocking=False):
            return
        try:
            now = time.monotonic()
            if now >= self._next:
                self._next = now + self._nap
                self._nap = min(self._nap * 1.5, LOOK)
                self._meeting.attempt(lambda: self._look(now))
        finally:
            self._lock.release()

    def hurry(self) -> None:
        """The next look is due now: somebody has come."""
        self._nap, self._next, self._swept = 1e-4, 0.0, 0.0

    def _look(self, now: float) -> None:
        run, store = self._meeting.run, self._meeting.store
        if (told := told_failure(run)) is not None:
            raise PeerFailed(told[1])
        count = store.add("come", 0)
        if count != self._count or now - self._swept > SWEEP:
            self._count, self._swept = count, now
            for rank in sorted(self.absent):
                if store.check([f"come/{rank}"]):
                    self._greet(rank, store.get(f"come/{rank}"))
        if run.add("gone", 0):
            for rank in sorted(self.absent):
                if run.check([f"gone/{rank}"]):
                    how = run.get(f"gone/{rank}").decode()
                    if how:
                        raise PeerFailed(tell_failure(run, rank, f"{how} before it had come"))
                    self.absent.discard(rank)
                    self.ended.add(rank)

    def _greet(self, rank: int, said: bytes) -> None:
        there = self._understood(rank, said)
        for field, words, remedy in ALIKE:
            mine, theirs = getattr(self.mine, field), getattr(there, field)
            if mine != theirs:
                self.contradict(f"{words.format(mine)}, and rank {rank} {words.format(theirs)}: {remedy}")
        if there.host == self.mine.host and there.pid != self.mine.pid and hasattr(os, "pidfd_open"):
            self.peers.watch(rank, there.pid, there.since)
        self.here[rank] = there
        self.absent.discard(rank)

    def _understood(self, rank: int, said: bytes) -> Come:
        try:
            return msgspec.json.decode(said, type=Come)
        except msgspec.DecodeError:
            pass
        return self.contradict(f"speaks another version of Weft's protocol than rank {rank}: {ALIKE[0][2]}")

    def contradict(self, why: str) -> Come:
        """This rank can't be of one run with another: all are told."""
        tell_failure(self._meeting.run, self.rank, why)
        raise RankError(f"rank {self.rank} {why}")

    def bury(self, rank: int, note: str = "") -> str:
        """The process of a rank has ended: whether well, or else what is told of it."""
        if self._meeting.has(f"left/{rank}"):
            self.ended.add(rank)
            return ""
        return self.died(rank, note)

    def died(self, rank: int, note: str) -> str:
        """Say that a rank was killed, for those who come when all who saw it have gone; returns the run's failure."""
        why = f"(process {self.here[rank].pid}) died without a word{note}"
        try:
            return tell_failure(self._meeting.run, rank, why)
        except Lost:
            return f"rank {rank} {why}"

    def settled(self, rank: int) -> set[int]:
        """Whose processes have ended, after a moment for this rank's end to be told."""
        end = time.monotonic() + SETTLE
        while rank in self.here and rank not in self.peers.dead() and time.monotonic() < end:
            time.sleep(LOOK / 10)
        return self.peers.dead()

    def gather(self, patience: float) -> None:
        """Wait for all, or until it is known that some are on other hosts."""

        def ready() -> bool:
            return not self.absent or any(there.host != self.mine.host for there in self.here.values())

        def look_around() -> None:
            self.look()
            for rank in self.peers.dead() - self.ended:
                if told := self.bury(rank):
                    raise PeerFailed(told)

        self._meeting.wait_until(ready, "all ranks, to see whether they are on one host,", patience, look_around)

    def missing(self, needed: Sequence[int] = ()) -> str:
        """In words, who of these, or of all, hasn't come yet."""
        late = sorted(r for r in self.absent if not needed or r in needed)
        if not late:
            return ""
        where = f"{self._meeting.host}:{self._meeting.port}"
        many = "ranks" if len(late) > 1 else "rank"
        have = "have" if len(late) > 1 else "has"
        return f"{many} {', '.join(map(str, late))} of {self.world_size} {have} not come to {where}"

    def leave(self) -> None:
        """Say that this rank ended well; those who come later ask."""
        self._meeting.put(f"left/{self.rank}", b"")
