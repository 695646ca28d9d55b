"""The rendezvous: how the ranks of a run find each other, by c10d's store at the address in torchrun's variables."""

from __future__ import annotations

import atexit
import contextlib
import errno
import ipaddress
import os
import queue
import socket
import threading
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, NoReturn

import torch.distributed as dist

from weft.core.errors import DeadlineError, RankError, SecretError
from weft.core.rank import Rank
from weft.transport.base import SPEAK, PeerFailed, Transport, default_deadline
from weft.transport.memory import Segment, available, page_bytes
from weft.transport.peers import STARTED_BY_AGENT
from weft.transport.roll import SETTLE, WELL, Lost, Outsider, Roll, run_of, tell_end, tell_failure
from weft.transport.secret import Signed, known
from weft.transport.stuck import say
from weft.transport.whole import raised

LONGEST_NAP = 0.02  # seconds between polls of the store
UNKNOWN = 20.0  # seconds to wait for a host's name to be resolved, or for who listens to answer
AGENT = "TORCHELASTIC_USE_AGENT_STORE"  # a launcher serves the store, and sees how its ranks end
LEFT_OPEN = (
    "torchrun's store at {} asks nobody for a secret and listens on all interfaces. What bears no proof of this run is "
    "not believed; but whoever reaches it can stop the run, read how ranks find each other, and talk to torchrun "
    "itself. On one host `python -m weft.launch` leaves none of that open"
)
STAND_IN = 2.5  # seconds for which another rank serves the store in place of rank 0
QUICK = 1.0  # seconds for a port to answer
ANSWERS = 15.0  # seconds for a store that listens to answer a rank that exits


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def address() -> tuple[str, int]:
    host, port = os.environ.get("MASTER_ADDR") or "127.0.0.1", os.environ.get("MASTER_PORT", "")
    if not port.isdigit() or int(port) > 65535:
        raise RankError(
            f"several ranks meet at MASTER_ADDR:MASTER_PORT, and MASTER_PORT is {port!r}. Start the program with "
            "`python -m weft.launch --nproc_per_node 2 program.py`, or with torchrun, or set for each process RANK, "
            "WORLD_SIZE, MASTER_ADDR=127.0.0.1 and MASTER_PORT=29500, say"
        )
    if not int(port):
        raise RankError("MASTER_PORT=0 would be another port for each rank; all ranks are told the same, 29500, say")
    return host, int(port)


def resolved(host: str, port: int, patience: float, who: str) -> None:
    """Wait a little for a host's name to be resolved: it may be new."""
    start, spoke = time.monotonic(), -SPEAK
    while True:
        try:
            socket.getaddrinfo(host, port)
            return
        except OSError as error:
            why = f"MASTER_ADDR={host!r} is the name of no host that is known here: {error}"
        now = time.monotonic() - start
        if now > min(patience, UNKNOWN):
            raise RankError(f"{why}. Is it written right? An address, as 10.0.0.1, needs no name")
        if now - spoke > SPEAK:
            spoke = now
            say(f"{who} waits, as {why}")
        time.sleep(LONGEST_NAP * 10)


def serve(host: str, port: int, patience: float) -> dist.TCPStore:
    """Serve the store; at a loopback address, only this host can reach it."""
    try:
        with _listen(host, port) or contextlib.nullcontext() as listening:
            if listening is not None:
                port = listening.getsockname()[1]
                socket.create_connection((host, port), min(patience, SPEAK)).close()
            # `multi_tenant`: torch.distributed in the same process may meet at the same port, as without Weft.
            return dist.TCPStore(
                host, port, None, True, timedelta(seconds=patience), wait_for_workers=False, multi_tenant=True,
                master_listen_fd=None if listening is None else listening.detach(),
            )  # fmt: skip
    except OSError as error:
        raise RankError(
            f"the store can't be served at {host}:{port} ({error}): MASTER_ADDR is the address, or the name, of the "
            "host on which rank 0, or the launcher that serves it, runs"
        ) from None
    except RuntimeError as error:  # c10d's errors are such
        if "EADDRINUSE" not in str(error):
            raise RankError(f"the store can't be served at {host}:{port}: {str(error).splitlines()[0]}") from None
        raise Taken(
            f"the store can't be served at {host}:{port}, as another process listens there. Is the port taken by "
            "another run, or another program? Set another MASTER_PORT, or --master_port, for all ranks"
        ) from None


def reach(host: str, port: int, patience: float, who: str, server: str, *, again: bool = False) -> dist.TCPStore:
    """Connect to the store, and check that it answers, by attempts that are short at first; `again`, if it has been
    reached before, and is lost once nobody listens there.

    c10d's own connecting looks up the names of both ends, for its logs, which takes 5 s for each message that a name
    server loses; it retries less and less often, and doesn't know that whoever listens may be a rank 0 that is dying,
    for which another rank soon stands in; or something else that never answers.
    """
    found: queue.SimpleQueue[dist.TCPStore | Exception] = queue.SimpleQueue()

    def attempt(seconds: float) -> None:
        try:
            store = dist.TCPStore(host, port, None, False, timedelta(seconds=seconds), wait_for_workers=False)
            store.check(["weft"])
            store.set_timeout(timedelta(seconds=patience))
            found.put(store)
        except Exception as error:
            found.put(error)

    start = spoke = silent = time.monotonic()
    wait, why = QUICK / 4, (nobody := "nobody answers there")
    while (left := start + patience - time.monotonic()) > 0 and time.monotonic() - silent < UNKNOWN:
        if time.monotonic() - spoke > SPEAK:
            spoke = time.monotonic()
            say(f"{who} waits for {server}, which serves the store at {host}:{port}; {why}")
        try:
            socket.create_connection((host, port), QUICK).close()
        except OSError as error:  # nobody listens yet
            if again and isinstance(error, ConnectionRefusedError):  # else it is late
                raise dist.DistNetworkError(f"nobody answers at {host}:{port}: {error}") from None
            silent, why = time.monotonic(), nobody
            time.sleep(LONGEST_NAP)
            continue
        threading.Thread(target=attempt, args=(left,), name="weft-meeting", daemon=True).start()
        why = "there came no answer from what listens there, which may be another program"
        with contextlib.suppress(queue.Empty):
            got = found.get(timeout=min(wait, left))
            if isinstance(got, dist.TCPStore):
                return got
            time.sleep(LONGEST_NAP)
        wait = min(2 * wait, SPEAK)
    raise RankError(f"{who} can't reach the store at {host}:{port}: {why}. Is {server} running?") from None


def tell_absence(why: str = "") -> None:
    """Report in the store, if it is served, that this process, a rank that was started by hand, exits before the
    rendezvous: by an error, or well; then another process may still join as this rank."""
    rank, size = os.environ.get("RANK", ""), os.environ.get("WORLD_SIZE", "1")
    if not rank.isdigit() or rank == "0" or AGENT in os.environ or size == "1":
        return
    with contextlib.suppress(RankError, OSError, dist.DistError):
        host, port = address()
        socket.create_connection((host, port), QUICK).close()
        run = run_of(reach(host, port, ANSWERS, f"rank {rank}", "rank 0"), known())
        if why and size.isdigit() and int(rank) >= int(size):
            tell_failure(run, int(rank), why)  # nobody waits for a rank of this number
        else:
            tell_end(run, int(rank), why or f"{WELL}process {os.getpid()} of rank {rank} ended well, but never came")


def own_address(host: str, port: int) -> str:
    """This host's address on the way to the store: the others reach the store, and so this host, over that network."""
    failed: OSError | None = None
    for family, kind, protocol, _, there in socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM):
        try:
            with socket.socket(family, kind, protocol) as probe:
                probe.connect(there)  # UDP: chooses the interface, and sends nothing
                return probe.getsockname()[0]
        except OSError as error:
            failed = error
    raise RankError(f"there is no way from this host to {host}: {failed}")


def _moment(most: float, over: Callable[[], bool]) -> None:
    end = time.monotonic() + most
    while not over() and time.monotonic() < end:
        time.sleep(LONGEST_NAP)


def _listen(host: str, port: int) -> socket.socket | None:
    """A socket that listens at a loopback address, or on all interfaces; None if the port is taken."""
    if is_loopback(host):
        family, *_, place = min(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM), key=lambda found: found[0])
        listen: dict[str, Any] = {"address": place, "family": family}
    elif socket.has_dualstack_ipv6():
        listen = {"address": ("", port), "family": socket.AF_INET6, "dualstack_ipv6": True}
    else:
        listen = {"address": ("", port)}
    try:
        return socket.create_server(**listen, backlog=1024)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:  # torch.distributed may serve there in this process: then it is shared
            return None
        raise


class Taken(Outsider):
    """Another process listens where this one should serve the store."""


class Meeting:
    """One rank's rendezvous with the others: its view of the run's store.

    run    keys of the run as a whole
    store  keys of this rendezvous
    roll   who has joined it
    page   the segment that this rank shares with all others, if it can share memory
    """

    def __init__(self, rank: Rank, patience: float) -> None:
        host, port = address()
        secret = self._secret = known()
        self.host, self.port, self.rank, self.world_size = host, port, rank.index, rank.world_size
        agent = os.environ.get(AGENT) == "True"
        self.server_rank = None if agent else 0  # whose process serves the store
        self.serves, self._patience = rank.index == self.server_rank, patience
        who, self.server = f"rank {rank.index}", "the launcher" if agent else "rank 0"
        resolved(host, port, patience, who)
        try:
            tcp = serve(host, port, patience) if self.serves else reach(host, port, patience, who, self.server)
        except Taken as taken:
            self._refuse(taken)
        self.run = run_of(tcp, secret)
        self.page: Segment | None = None
        self.roll = Roll(self, rank.index, rank.world_size)
        self._begin(1)

    def _begin(self, times: int) -> None:
        self.times, self.store = times, self.run.under(str(times))

    def _refuse(self, taken: Taken) -> NoReturn:
        """If the port is taken by another rank 0, end both, unless its run is complete; else end ranks of this run that
        reach what listens there."""
        with contextlib.suppress(SecretError, OSError, dist.DistError):
            try:
                self.run = run_of(reach(self.host, self.port, 2 * QUICK, "rank 0", "another"), self._secret)
            except RankError:
                raise taken from None
            before = self.run.add("opened/0", 0)
            if before:
                Roll(self, 0, self.world_size).refuse_twin(self.run.under(str(before)))
            else:
                tell_failure(self.run, 0, f"failed: {taken}")
        raise taken

    def enter(self, transport: str) -> None:
        """Join the rendezvous; `transport` is this rank's setting."""
        # A program may close its rank and open it again: each time is a new rendezvous.
        self._begin(self.attempt(lambda: self.run.add(f"opened/{self.rank}", 1)))
        if not self.serves and self.rank == 0 and self.times == 1 and STARTED_BY_AGENT in os.environ:
            say(LEFT_OPEN.format(f"{self.host}:{self.port}"))
        if available():
            self.page = Segment.make("weft-page", page_bytes(self.world_size))
        self.roll.enter(transport, self.page.handle if self.page else b"")

    def give_up(self, error: BaseException) -> None:
        """This rank failed before it had a transport: tell the others."""
        with contextlib.suppress(RankError, OSError, dist.DistError):
            if not isinstance(error, PeerFailed):
                tell_failure(self.run, self.rank, raised(error))
        atexit.register(self.tell_late)

    def put(self, key: str, value: bytes) -> None:
        self.attempt(lambda: self.store.set(key, value))

    def add(self, key: str, amount: int = 1) -> int:
        return self.attempt(lambda: self.store.add(key, amount))

    def has(self, key: str) -> bool:
        return self.attempt(lambda: self.store.check([key]))

    def value(self, key: str) -> bytes:
        """The value of a key that is set."""
        return self.attempt(lambda: self.store.get(key))

    def decide(self, key: str, mine: str) -> str:
        """Set `key` unless another rank was first; returns its value."""
        return self.attempt(lambda: self.store.first(key, mine)).decode()

    def wait_until(
        self, ready: Callable[[], object], what: str, patience: float, look_around: Callable[[], None] = lambda: None,
        needed: Sequence[int] = (),
    ) -> None:  # fmt: skip
        """Wait until the store is `ready`; meanwhile report which of `needed`, or of all, haven't joined."""
        start = spoke = time.monotonic()
        nap = 1e-4
        while not ready():
            look_around()
            now = time.monotonic()
            if now - start > patience:
                missing = self.roll.missing(needed) or "no rank put it there. Do all run the same program?"
                raise DeadlineError(
                    f"rank {self.rank} waited {patience:g} s for {what} in the store at {self.host}:{self.port}: "
                    f"{missing}. WEFT_DEADLINE=seconds sets how long a wait may take"
                )
            if now - spoke > SPEAK:
                spoke = now
                if missing := self.roll.missing(needed):
                    say(f"rank {self.rank} waits for {what}; {missing}")
            time.sleep(nap)
            nap = min(nap * 1.5, LONGEST_NAP)

    def get(
        self, key: str, patience: float, look_around: Callable[[], None] = lambda: None, needed: Sequence[int] = ()
    ) -> bytes:
        """The value of a key; waits until it is set."""
        self.wait_until(lambda: self.has(key), repr(key), patience, look_around, needed)
        return self.value(key)

    def under(self, prefix: str) -> Signed:
        """A part of the store, over a separate connection."""
        return self.connected_again(self.store.under(prefix))

    def connected_again(self, part: Signed) -> Signed:
        """The same part of the store over a separate connection, for another thread."""
        return part.over(reach(self.host, self.port, self._patience, f"rank {self.rank}", self.server, again=True))

    def claim(self, key: str) -> bool:
        """Whether this rank is the first to claim `key`, and so makes what the others then get."""
        return self.add(f"{key}/claim") == 1

    def own_address(self) -> str:
        """The address at which other ranks reach this host."""
        return "127.0.0.1" if is_loopback(self.host) else own_address(self.host, self.port)

    def tell_late(self) -> None:
        """After a failure of ranks started by hand, keep the store up for a moment so that others can read why: rank 0
        serves it, or, if that has gone, a rank that is alive stands in."""
        roll, late = self.roll, len(self.roll.absent)
        if AGENT in os.environ or (late and time.monotonic() - roll.came > default_deadline()):
            return  # a rank absent for a whole deadline won't join in a moment
        with contextlib.suppress(RankError, OSError, dist.DistError):
            if self.serves:
                run, expected = self.run, self.world_size
            elif late and is_loopback(self.host) and (0 in roll.settled(0) or self._lost_store()):
                run, expected = self._stand_in(), len(roll.absent - {0})
                tell_failure(run, 0, f"{roll.process(0)}, which served the store, ended before all had come")
            else:
                return
            come = run.under(str(self.times))
            _moment(STAND_IN, lambda: not late or come.add("come", 0) >= expected)
            _moment(2 * SETTLE, lambda: not late and roll.here.keys() <= roll.peers.dead())

    def _lost_store(self) -> bool:
        try:
            self.run.check(["failure"])
        except Lost:
            return True
        return False

    def _stand_in(self) -> Signed:
        end = time.monotonic() + SETTLE
        while True:
            try:
                return run_of(serve(self.host, self.port, QUICK), self._secret)
            except Taken:  # by another survivor, or by rank 0 for another moment
                if time.monotonic() > end:
                    raise
                time.sleep(LONGEST_NAP)

    def attempt(self, action: Callable[[], Any]) -> Any:
        try:
            return action()
        except Lost as error:
            raise self._lost(error) from None

    def _lost(self, error: Exception) -> RankError:
        if not self.serves and 0 in self.roll.settled(0):
            return PeerFailed(f"rank 0 {self.roll.process(0)}, which serves the store, has ended")
        return RankError(
            f"the store at {self.host}:{self.port} is gone ({str(error).splitlines()[0]}): {self.server}, which serves "
            "it, has ended"
        )


class Met(Transport):
    """A transport of ranks that met, whose keys are in the store of their meeting."""

    def __init__(self, rank: Rank, meeting: Meeting, deadline: float | None) -> None:
        super().__init__(rank.index, rank.world_size, deadline)
        self._meeting = meeting

    def put(self, key: str, value: bytes) -> None:
        self._meeting.put(f"user/{key}", bytes(value))

    def get(self, key: str, timeout: float | None = None) -> bytes:
        patience = self.deadline if timeout is None else timeout
        return self._meeting.get(f"user/{key}", patience, lambda: self.look_around(()))

    def missing(self, needed: Sequence[int] = ()) -> str:
        return self._meeting.roll.missing(needed)
