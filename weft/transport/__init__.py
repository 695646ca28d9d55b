"""How ranks reach each other: collectives, exchange and channels, over threads, shared memory or c10d."""

from __future__ import annotations

import atexit
import functools
import os
import sys
from collections.abc import Callable

import torch

from weft.core.errors import RankError
from weft.core.rank import Rank, current
from weft.transport.base import Channel, Group, Line, PeerFailed, Transport, default_deadline
from weft.transport.c10d import C10dTransport
from weft.transport.local import LocalTransport, LocalWorld
from weft.transport.memory import available
from weft.transport.rendezvous import Meeting
from weft.transport.shm import ShmTransport
from weft.transport.watch import host_identity
from weft.transport.whole import raised

__all__ = [
    "BACKENDS",
    "Channel",
    "Group",
    "Line",
    "LocalTransport",
    "LocalWorld",
    "PeerFailed",
    "Transport",
    "join",
    "open_transport",
    "raised",
    "transport_of",
]

BACKENDS: dict[str, Callable[[Rank, Meeting, float], Transport]] = {
    "shm": ShmTransport,  # processes of one host, CPU
    "c10d": C10dTransport,  # everything else
}


def open_transport(rank: Rank, backend: str | None = None, deadline: float | None = None) -> Transport:
    """This process's rank joins the others: as WEFT_TRANSPORT says, or as suits where they are."""
    name = backend or os.environ.get("WEFT_TRANSPORT") or "auto"
    if name not in (*BACKENDS, "auto", "local"):
        raise RankError(f"WEFT_TRANSPORT is one of auto, {', '.join(BACKENDS)}, got {name!r}")
    if rank.world_size == 1 and name in ("auto", "local"):
        return LocalTransport(LocalWorld(1), 0, deadline)
    if name == "local":
        raise RankError(
            "the local transport joins threads of one process: start with `python -m weft.launch --threads`, or call "
            "weft.launch.spawn_threads"
        )
    patience = default_deadline() if deadline is None else deadline
    meeting = Meeting(rank, patience)
    if name == "auto":
        name = _suited(rank, meeting, patience)
    return BACKENDS[name](rank, meeting, patience)


def _suited(rank: Rank, meeting: Meeting, patience: float) -> str:
    """What all ranks can use; each says where it is, and the last to come decides."""
    if rank.local_size == rank.world_size and available() and not torch.cuda.is_available():
        meeting.put(f"host/{rank.index}", host_identity().encode())
    else:
        meeting.put(f"host/{rank.index}", b"")
    if meeting.add("hosts") == rank.world_size:
        hosts = {meeting.value(f"host/{r}") for r in range(rank.world_size)}
        meeting.put("backend", b"shm" if len(hosts) == 1 and b"" not in hosts else b"c10d")
    return meeting.get("backend", patience).decode()


def transport_of(rank: Rank | None = None) -> Transport:
    """The transport of a rank, or of the running thread's."""
    rank = current() if rank is None else rank
    found = rank.resources.get("transport")
    return found if found is not None else rank.resource("transport", _make)


def join(rank: Rank, deadline: float | None = None) -> Transport:
    """Meet the other ranks now; waits end after the deadline."""
    return rank.resource("transport", functools.partial(_make, deadline=deadline))


def _make(rank: Rank, deadline: float | None = None) -> Transport:
    transport = open_transport(rank, deadline=deadline)
    atexit.register(_leave, rank, transport)
    return transport


def _leave(rank: Rank, transport: Transport) -> None:
    """At the end of the program: tell the others if it ended by an exception."""
    error = getattr(sys, "last_value", None)
    if error is not None and not hasattr(sys, "ps1"):
        transport.fail(raised(error), isinstance(error, PeerFailed))
    rank.close()
    transport.close()
