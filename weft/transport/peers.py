"""Watch processes of this host for their exit, by the kernel's process file descriptors (pidfd).

A rank that torchrun started ends when torchrun has gone, even if that was killed. The kernel ends ranks of Weft's
launcher with it. Ranks that were started by hand don't depend on a parent.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import threading
import time
from pathlib import Path

from weft.transport.stuck import say

STARTED_BY_AGENT = "TORCHELASTIC_RUN_ID"
NAME = "weft-agent"
GRACE = 5.0  # seconds to obey SIGTERM


def visible() -> bool:
    """Whether /proc shows this process under its id, as it doesn't in another process namespace."""
    try:
        return os.readlink("/proc/self") == str(os.getpid())
    except OSError:
        return False


def started(pid: int) -> int:
    """A process's start time in the kernel's ticks, which distinguishes it from a later one with the same id."""
    if not visible():
        return 0
    return int(Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[19])


def stopped(pid: int) -> bool:
    """Whether a signal has stopped a process, which can be continued."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] in (b"T", b"t")
    return False


class Peers:
    """Ranks by the pidfds of their processes, which become readable when these exit."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # several threads may wait at a time
        self._poller = select.poll()
        self._watched: dict[int, int] = {}
        self._dead: set[int] = set()

    def watch(self, rank: int, pid: int, since: int) -> None:
        """Watch a process; `since` is its start time (see `started`)."""
        with self._lock:
            try:
                descriptor = os.pidfd_open(pid)
            except ProcessLookupError:
                self._dead.add(rank)
                return
            self._watched[descriptor] = rank
            self._poller.register(descriptor, select.POLLIN)
            try:
                other = started(pid) != since
            except OSError:
                other = True
            if other:
                self._drop(descriptor)

    def dead(self) -> set[int]:
        """The ranks whose processes have exited."""
        with self._lock:
            for descriptor, _ in self._poller.poll(0):
                self._drop(descriptor)
            return self._dead

    def _drop(self, descriptor: int) -> None:
        self._dead.add(self._watched.pop(descriptor))
        self._poller.unregister(descriptor)
        os.close(descriptor)

    def close(self) -> None:
        with self._lock:
            for descriptor in self._watched:
                os.close(descriptor)
            self._watched.clear()
            self._poller = select.poll()


# ---- the agent -----------------------------------------------------------------------------------------------------


def end_with_agent(rank: int) -> None:
    """Let this process end when torchrun's agent does, by a thread that waits for it."""
    if STARTED_BY_AGENT not in os.environ or sys.platform != "linux":
        return
    if any(thread.name == NAME for thread in threading.enumerate()):
        return
    agent = os.getppid()
    try:
        descriptor = os.pidfd_open(agent)
    except ProcessLookupError:
        descriptor = None
    threading.Thread(target=_wait, args=(rank, agent, descriptor), name=NAME, daemon=True).start()


def _wait(rank: int, agent: int, descriptor: int | None) -> None:
    if descriptor is not None:
        ends = select.poll()
        ends.register(descriptor, select.POLLIN)
        ends.poll()
    say(f"rank {rank} ends, as process {agent}, which started it, has gone")
    for number in (signal.SIGTERM, signal.SIGKILL):
        if os.getpgid(0) == os.getpid():  # with whatever it started
            os.killpg(0, number)
        else:
            os.kill(os.getpid(), number)
        time.sleep(GRACE)
