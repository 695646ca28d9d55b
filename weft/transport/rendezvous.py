"""How the ranks of a run find each other: c10d's store, at the address in torchrun's variables."""

from __future__ import annotations

import errno
import ipaddress
import os
import queue
import socket
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any, cast

import torch.distributed as dist

from weft.core.errors import DeadlineError, RankError
from weft.core.rank import Rank

LONGEST_NAP = 0.02  # seconds between looks into the store
ANSWER = 1.0  # seconds beyond its own deadline that c10d has to say that there is no answer


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def address() -> tuple[str, int]:
    host, port = os.environ.get("MASTER_ADDR", "127.0.0.1"), os.environ.get("MASTER_PORT", "")
    if not port.isdigit() or int(port) > 65535:
        raise RankError(
            f"several ranks meet at MASTER_ADDR:MASTER_PORT, and MASTER_PORT is {port!r}. Start the program with "
            "`python -m weft.launch --nproc_per_node 2 program.py`, or with torchrun, or set for each process RANK, "
            "WORLD_SIZE, MASTER_ADDR=127.0.0.1 and MASTER_PORT=29500, say"
        )
    return host, int(port)


def serve(host: str, port: int, patience: float) -> dist.TCPStore:
    """The store itself; where ranks meet at loopback, nobody else can come."""
    listening = _listen(port) if is_loopback(host) else None
    try:
        # `multi_tenant`: torch.distributed in the same process may meet at the same port, as it would without Weft.
        return dist.TCPStore(
            host,
            listening.getsockname()[1] if listening else port,
            None,
            True,
            timedelta(seconds=patience),
            wait_for_workers=False,
            multi_tenant=True,
            master_listen_fd=listening.detach() if listening else None,
        )
    except (dist.DistNetworkError, dist.DistStoreError, RuntimeError) as error:
        raise RankError(
            f"can't serve the store at {host}:{port}: {str(error).splitlines()[0]}. Is the port taken by another "
            "run? Set another MASTER_PORT, or --master_port"
        ) from None


def reach(host: str, port: int, patience: float, who: str, server: str) -> dist.TCPStore:
    """A connection to the store, and an answer from it.

    Who listens there may be no store, and never say a word, and then c10d would wait on.
    """
    found: queue.SimpleQueue[dist.TCPStore | Exception] = queue.SimpleQueue()

    def run() -> None:
        try:
            store = dist.TCPStore(host, port, None, False, timedelta(seconds=patience), wait_for_workers=False)
            store.check(["weft"])
            found.put(store)
        except Exception as error:
            found.put(error)

    threading.Thread(target=run, name="weft-meeting", daemon=True).start()
    try:
        got = found.get(timeout=patience + ANSWER)
    except queue.Empty:
        got = RuntimeError("there came no answer")
    if isinstance(got, Exception):
        raise RankError(
            f"{who} can't reach the store at {host}:{port}: {str(got).splitlines()[0]}. Is {server} running?"
        ) from None
    return got


def own_address(host: str, port: int) -> str:
    """This host's address on the way to the store: the others reach the store, and so this host, over that network."""
    failed: OSError | None = None
    for family, kind, protocol, _, there in socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM):
        try:
            with socket.socket(family, kind, protocol) as probe:
                probe.connect(there)  # finds the way, and sends nothing
                return probe.getsockname()[0]
        except OSError as error:
            failed = error
    raise RankError(f"there is no way from this host to {host}: {failed}")


def _listen(port: int) -> socket.socket | None:
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind(("127.0.0.1", port))
        listening.listen(1024)
    except OSError as error:
        listening.close()
        if error.errno == errno.EADDRINUSE:  # torch.distributed may serve there in this process: then it is shared
            return None
        raise
    return listening


def restart() -> str:
    """Which attempt at this run this is: torchrun counts them."""
    return os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")


def tell_failure(store: dist.Store, rank: int, why: str) -> str:
    """Write down the run's first failure, for the others and the launcher; returns what stands there then."""
    told = store.compare_set(f"weft/{restart()}/failure", "", f"{rank}|rank {rank} {why}")
    return bytes(told).decode(errors="replace").partition("|")[2]


def told_failure(store: dist.Store) -> tuple[int, str] | None:
    """The run's first failure, if a rank told of one: the rank, and what happened to it."""
    key = f"weft/{restart()}/failure"
    if not store.check([key]):
        return None
    rank, _, why = bytes(store.get(key)).decode(errors="replace").partition("|")
    return int(rank), why


class Meeting:
    """One rank's view of the run's store, under a prefix of its own."""

    def __init__(self, rank: Rank, patience: float) -> None:
        host, port = address()
        self.host, self.port = host, port
        agent = os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"
        self.serves = rank.index == 0 and not agent
        if self.serves:
            self.tcp = serve(host, port, patience)
        else:
            self.tcp = reach(host, port, patience, f"rank {rank.index}", "rank 0")
        # A program may close its rank and open it again: each time is a meeting of its own.
        opened = self.tcp.add(f"weft/{restart()}/opened/{rank.index}", 1)
        self.prefix = f"weft/{restart()}/{opened}"
        self.store = dist.PrefixStore(self.prefix, self.tcp)

    def put(self, key: str, value: bytes) -> None:
        self._try(lambda: self.store.set(key, cast(str, value)))

    def add(self, key: str, amount: int = 1) -> int:
        return self._try(lambda: self.store.add(key, amount))

    def has(self, key: str) -> bool:
        return self._try(lambda: self.store.check([key]))

    def value(self, key: str) -> bytes:
        """The value of a key that is there."""
        return self._try(lambda: self.store.get(key))

    def get(self, key: str, patience: float, look_around: Callable[[], None] = lambda: None) -> bytes:
        """The value of a key that is there, or will be."""
        end, nap = time.monotonic() + patience, 1e-4
        while not self.has(key):
            look_around()
            if time.monotonic() > end:
                raise DeadlineError(
                    f"waited {patience:g} s for {key!r} in the store at {self.host}:{self.port}: no rank put it "
                    "there. Did every rank start, and do all run the same program?"
                )
            time.sleep(nap)
            nap = min(nap * 1.5, LONGEST_NAP)
        return self.value(key)

    def under(self, prefix: str) -> dist.Store:
        """A part of the store, through a connection of its own."""
        return dist.PrefixStore(f"{self.prefix}/{prefix}", self.connect())

    def claim(self, key: str) -> bool:
        """Whether this rank is the first to come for `key`, so that it makes what the others then get."""
        return self.add(f"{key}/claim") == 1

    def own_address(self) -> str:
        """Where the other ranks reach this one."""
        return "127.0.0.1" if is_loopback(self.host) else own_address(self.host, self.port)

    def connect(self) -> dist.Store:
        """Another connection, for another thread."""
        return self.tcp.clone()  # pyright: ignore[reportAttributeAccessIssue]  (missing in torch's stubs)

    def _try(self, action: Callable[[], Any]) -> Any:
        try:
            return action()
        except (dist.DistNetworkError, dist.DistStoreError) as error:
            raise self._lost(error) from None

    def _lost(self, error: Exception) -> RankError:
        return RankError(
            f"the store at {self.host}:{self.port} is gone ({str(error).splitlines()[0]}): the launcher, or rank 0, "
            "which serves it, has ended"
        )
