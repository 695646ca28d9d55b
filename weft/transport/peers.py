"""Other processes of this host, and when they end: the kernel tells it of each, whatever ended it."""

from __future__ import annotations

import os
import select
import threading
from pathlib import Path


def visible() -> bool:
    """Whether /proc shows this process under its id; that of another process namespace shows others there."""
    try:
        return os.readlink("/proc/self") == str(os.getpid())
    except OSError:
        return False


def started(pid: int) -> int:
    """When a process began, in the kernel's ticks: another process that gets the same id began at another time."""
    if not visible():
        return 0
    return int(Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[19])


class Peers:
    """Ranks by the descriptors of their processes, which become readable at the processes' ends."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # several threads may wait at a time
        self._poller = select.poll()
        self._watched: dict[int, int] = {}
        self._dead: set[int] = set()

    def watch(self, rank: int, pid: int, since: int) -> None:
        """`since`: what `started` says of the process."""
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
        """Whose processes have ended."""
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
