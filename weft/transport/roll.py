"""The roll: which ranks have joined a run. Each writes its settings to the store, and is watched from then on.

Nobody waits here for all. If settings differ between ranks, all of them fail at once.
"""

from __future__ import annotations

import contextlib
import os
import re
import threading
import time
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Final, Protocol, cast

import msgspec
import torch.distributed as dist

from weft.core.errors import RankError
from weft.transport.base import PeerFailed
from weft.transport.check import decoded
from weft.transport.peers import Peers, started, stopped
from weft.transport.secret import Signed

PROTOCOL = 3  # the version of messages between ranks; to be raised with each change
LOOK = 0.05  # seconds between checks for new ranks
SWEEP = 1.0  # seconds between checks of each absent rank, whatever the counter says
LATE = 10.0  # seconds after joining for which a rank that serves the store waits at exit for absent ranks
SETTLE = 0.5  # seconds until the kernel reports an exit whose effects are already seen
WELL = "well: "  # how a process ended that never came, if another may still come as its rank
Lost: Final = (dist.DistNetworkError, dist.DistStoreError)


class Outsider(RankError):
    """This process has no place in the run that it found; the others need not end."""


def restart() -> str:
    """Which attempt at this run this is: torchrun counts them."""
    return os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")


def run_of(store: dist.Store, secret: str) -> Signed:
    """The part of the store for the run as a whole, which launchers use, too."""
    return Signed(store, secret, f"weft/{restart()}/")


def tell_failure(run: Signed, rank: int, why: str) -> str:
    """Record the run's first failure, for the others and the launcher; returns the recorded one."""
    return run.first("failure", f"{rank}|rank {rank} {why}").decode(errors="replace").partition("|")[2]


def first_failure(run: Signed) -> tuple[int, str] | None:
    """The run's first recorded failure, if any: the rank, and what happened to it."""
    if not run.check(["failure"]):
        return None
    rank, _, why = run.get("failure").decode(errors="replace").partition("|")
    if not re.fullmatch(r"\d{1,9}", rank):
        raise RankError(f"the run's failure is no message of Weft's: {rank[:80]!r}")
    return int(rank), why


def tell_end(run: Signed, rank: int, how: str = "") -> None:
    """Record that a rank's process exited, and `how` it failed, if it did: it may not have joined."""
    run.set(f"gone/{rank}", how)
    run.add("gone", 1)


def host_identity() -> str:
    """An identifier of the host: equal for processes that see each other (one kernel, one process namespace)."""
    with contextlib.suppress(OSError):
        with open("/proc/sys/kernel/random/boot_id") as f:
            return f"{f.read().strip()}/{os.stat('/proc/self/ns/pid').st_ino}"
    return os.uname().nodename


Number = Annotated[int, msgspec.Meta(ge=0, lt=1 << 31)]


class Come(msgspec.Struct, frozen=True):
    """A rank's entry in the roll: what it writes when it joins."""

    protocol: int
    world_size: Number
    transport: str
    pid: Number
    since: int  # when its process began
    host: str
    check: str
    page: str  # the handle of the segment that it shares with all others, if any


# The settings that must be equal on all ranks, as text, and what to do if they aren't.
ALIKE = (
    ("protocol", "speaks version {} of Weft's protocol", "install the same Weft for all"),
    ("world_size", "was given WORLD_SIZE={}", "all ranks of a run need the same, and each a RANK below it"),
    ("transport", "was given WEFT_TRANSPORT={}", "set it for all ranks, or for none"),
    ("check", "was given WEFT_CHECK={}", "set it for all ranks, or for none"),
)


class Store(Protocol):
    """The part of a rendezvous that its roll uses: keys of the `run`, and of this rendezvous (`store`)."""

    host: str
    port: int
    run: Signed
    store: Signed
    times: int

    def put(self, key: str, value: bytes) -> None: ...
    def add(self, key: str) -> int: ...
    def has(self, key: str) -> bool: ...
    def attempt(self, action: Callable[[], Any]) -> Any: ...
    def wait_until(
        self, ready: Callable[[], object], what: str, patience: float, look_around: Callable[[], None]
    ) -> None: ...


class Roll:
    """Which ranks have joined.

    here    the entries of the ranks that have joined, without this one
    absent  those that may still join
    ended   those that are known to have ended well
    went    those that are absent, though a process of theirs has ended well: what is said of it
    """

    def __init__(self, meeting: Store, rank: int, world_size: int) -> None:
        self.rank, self.world_size = rank, world_size
        self.here: dict[int, Come] = {}
        self.absent = set(range(world_size)) - {rank}
        self.ended: set[int] = set()
        self.went: dict[int, str] = {}
        self.peers = Peers()
        self.came = time.monotonic()
        self._meeting = meeting
        self._lock = threading.Lock()
        self._count = 0
        self._nap, self._next, self._swept = 1e-4, 0.0, self.came

    def enter(self, transport: str, page: bytes) -> None:
        pid = os.getpid()
        check = os.environ.get("WEFT_CHECK") or "0"
        self.mine = Come(PROTOCOL, self.world_size, transport, pid, started(pid), host_identity(), check, page.decode())
        if self._meeting.times > 1:
            self.refuse_twin(self._meeting.run.under(str(self._meeting.times - 1)))
        self._meeting.put(f"come/{self.rank}", msgspec.json.encode(self.mine))
        self._meeting.add("come")

    def refuse_twin(self, before: Signed) -> None:
        """Refuse to join if another live process has joined as this rank, `before`. Its run ends too, unless all of its
        ranks have come: then this process is one too many."""
        key, end, pid, peers = f"come/{self.rank}", time.monotonic() + 2 * SETTLE, os.getpid(), Peers()
        while not self._meeting.attempt(lambda: before.check([key])) and time.monotonic() < end:
            time.sleep(LOOK / 10)  # it has only begun to join
        if not self._meeting.attempt(lambda: before.check([key])):
            return
        twin = self._decoded(self.rank, self._meeting.attempt(lambda: before.get(key)))
        if (twin.host, twin.pid) == (here := host_identity(), pid):
            return
        if twin.host == here:
            peers.watch(self.rank, twin.pid, twin.since)
        dead = peers.dead()
        peers.close()
        if dead or self._meeting.attempt(lambda: before.check([f"left/{self.rank}"])):
            return
        why = (
            f"was started twice, as processes {twin.pid} and {pid}: each process of a run has a RANK of its own, from "
            "0 to WORLD_SIZE - 1, and what a rank starts must not take part as that rank"
        )
        come = (f"come/{r}" for r in range(twin.world_size))
        if not self._meeting.attempt(lambda: all(before.check([each]) for each in come)):
            tell_failure(self._meeting.run, self.rank, why)
        raise Outsider(f"rank {self.rank} {why}")

    def look(self) -> None:
        """Check for new ranks. Raises if one has failed, or has other settings. Never waits."""
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

    def look_at_once(self) -> None:
        """Make the next check due now: a rank has joined."""
        self._nap, self._next, self._swept = 1e-4, 0.0, 0.0

    def _look(self, now: float) -> None:
        run, store = self._meeting.run, self._meeting.store
        if (failure := first_failure(run)) is not None:
            raise PeerFailed(failure[1])
        count = store.add("come", 0)
        if count != self._count or now - self._swept > SWEEP:
            self._count, self._swept = count, now
            for rank in sorted(self.absent):
                if store.check([f"come/{rank}"]):
                    self._compare(rank, store.get(f"come/{rank}"))
        if run.add("gone", 0):
            for rank in sorted(self.absent):
                if run.check([f"gone/{rank}"]):
                    how = run.get(f"gone/{rank}").decode(errors="replace")
                    if how.startswith(WELL):
                        self.went[rank] = how.removeprefix(WELL)
                        continue
                    if how:
                        raise PeerFailed(tell_failure(run, rank, f"{how} before it had come"))
                    self.absent.discard(rank)
                    self.ended.add(rank)

    def _compare(self, rank: int, said: bytes) -> None:
        there = self._decoded(rank, said)
        for field, words, remedy in ALIKE:
            mine, theirs = getattr(self.mine, field), getattr(there, field)
            if mine != theirs:
                self.refuse_for_all(f"{words.format(mine)}, and rank {rank} {words.format(theirs)}: {remedy}")
        if there.host == self.mine.host and there.pid != self.mine.pid and hasattr(os, "pidfd_open"):
            self.peers.watch(rank, there.pid, there.since)
        self.here[rank] = there
        self.absent.discard(rank)

    def _decoded(self, rank: int, said: bytes) -> Come:
        with contextlib.suppress(RankError):
            return cast(Come, decoded(said, Come, "an entry"))
        return self.refuse_for_all(f"speaks another version of Weft's protocol than rank {rank}: {ALIKE[0][2]}")

    def refuse_for_all(self, why: str) -> Come:
        """Fail, and tell all: this rank's settings differ from another's."""
        tell_failure(self._meeting.run, self.rank, why)
        raise RankError(f"rank {self.rank} {why}")

    def handle_exit(self, rank: int, note: str = "") -> str:
        """Handle the exit of a rank's process: returns how it failed, or nothing if it ended well."""
        if self._meeting.has(f"left/{rank}"):
            self.ended.add(rank)
            return ""
        return self.died(rank, note)

    def died(self, rank: int, note: str) -> str:
        """Record that a rank was killed, for ranks that join later; returns the run's failure."""
        why = f"{self.process(rank)} died without a word{note}"
        try:
            return tell_failure(self._meeting.run, rank, why)
        except Lost:
            return f"rank {rank} {why}"

    def process(self, rank: int) -> str:
        return f"(process {self.here[rank].pid})" if rank in self.here else "(a process that wasn't known yet)"

    def whereabouts(self, rank: int, at: str) -> str:
        """Where a rank's program is, as it told last."""
        there = self.here.get(rank)
        if there is None or there.host != self.mine.host or not stopped(there.pid):
            return at
        return f"{at or 'a line that it has not told'} {self.process(rank)}, stopped by a signal: SIGCONT continues it"

    def settled(self, rank: int) -> set[int]:
        """The ranks whose processes have exited, after a moment for the kernel to report this rank's exit."""
        end = time.monotonic() + SETTLE
        while rank in self.here and rank not in self.peers.dead() and time.monotonic() < end:
            time.sleep(LOOK / 10)
        return self.peers.dead()

    def gather(self, patience: float) -> None:
        """Wait for all ranks, or until some are known to be on other hosts."""

        def ready() -> bool:
            return not self.absent or any(there.host != self.mine.host for there in self.here.values())

        def look_around() -> None:
            self.look()
            for rank in self.peers.dead() - self.ended:
                if failure := self.handle_exit(rank):
                    raise PeerFailed(failure)

        self._meeting.wait_until(ready, "all ranks, to see whether they are on one host,", patience, look_around)

    def missing(self, needed: Sequence[int] = ()) -> str:
        """Which of these ranks, or of all, haven't joined yet, as text."""
        late = sorted(r for r in self.absent if not needed or r in needed)
        if not late:
            return ""
        where = f"{self._meeting.host}:{self._meeting.port}"
        many = "ranks" if len(late) > 1 else "rank"
        have = "have" if len(late) > 1 else "has"
        went = "".join(f"; {self.went[r]}" for r in late if r in self.went)
        return f"{many} {', '.join(map(str, late))} of {self.world_size} {have} not come to {where}{went}"

    def leave(self) -> None:
        """Record that this rank ended well, for ranks that join later."""
        self._meeting.put(f"left/{self.rank}", b"")
