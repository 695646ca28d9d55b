"""How ranks reach each other: collectives, exchange and channels, over threads, shared memory or c10d."""

from __future__ import annotations

import atexit
import functools
import multiprocessing
import os
import sys
from collections.abc import Callable

import torch
from torch.distributed import FileStore, HashStore, PrefixStore, Store, TCPStore

from weft.core.errors import RankError
from weft.core.log import logger
from weft.core.rank import Rank, current, of_process
from weft.transport import c10d_group, local
from weft.transport.base import Channel, Group, PeerFailed, Transport, default_deadline
from weft.transport.c10d import C10dTransport
from weft.transport.forked import refuse_as_children
from weft.transport.hosts import HOSTS, imagined
from weft.transport.line import Line
from weft.transport.local import LocalTransport, LocalWorld
from weft.transport.peers import end_with_agent
from weft.transport.rendezvous import Meeting, is_loopback, tell_absence
from weft.transport.roll import Outsider
from weft.transport.shared import shm_group
from weft.transport.shared.shm import ShmTransport
from weft.transport.whole import raised

__all__ = [
    "ALLOCATES", "BACKENDS", "Channel", "FileStore", "Group", "HashStore", "Line", "LocalTransport", "LocalWorld",
    "PeerFailed", "PrefixStore", "Store", "TCPStore", "Transport", "join", "open_transport", "raised", "transport_of",
]  # fmt: skip

BACKENDS: dict[str, Callable[[Rank, Meeting, float], Transport]] = {
    "shm": ShmTransport,  # processes of one host, CPU
    "c10d": C10dTransport,  # everything else
}

ALLOCATES = {  # what a call of a group allocates meanwhile, by backend
    "local": local.allocates, "shm": shm_group.allocates, "c10d": c10d_group.allocates,
}  # fmt: skip

refuse_as_children(lambda: of_process() if os.environ.get("WORLD_SIZE", "1") != "1" else None)


def open_transport(rank: Rank, deadline: float | None = None) -> Transport:
    """This process's rank joins the others: as WEFT_TRANSPORT says, or as suits where they are."""
    name = os.environ.get("WEFT_TRANSPORT") or "auto"
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
    try:
        meeting.enter(name)
        return _opened(rank, name, meeting, patience)
    except Outsider:
        meeting.run.add(f"opened/{rank.index}", -1)
        raise
    except BaseException as error:
        meeting.give_up(error)
        raise


def _opened(rank: Rank, name: str, meeting: Meeting, patience: float) -> Transport:
    if name == "auto":
        name = _suited(rank, meeting, patience)
    elif name == "shm" and len(set(imagined(rank.world_size) or (0,))) > 1:
        raise RankError(f"WEFT_TRANSPORT=shm joins ranks of one host, and {HOSTS} imagines several: c10d joins them")
    elif name == "shm" and meeting.page is None:
        raise RankError("WEFT_TRANSPORT=shm needs memory that processes can share, which this system has not")
    return BACKENDS[name](rank, meeting, patience)


def _suited(rank: Rank, meeting: Meeting, patience: float) -> str:
    """The backend that all ranks can use. The first rank to know decides, without waiting for all if they can only be
    on one host."""
    roll = meeting.roll
    mine = "c10d"
    if len(set(imagined(rank.world_size) or (0,))) > 1:
        pass
    elif rank.local_size == rank.world_size and meeting.page is not None and not torch.cuda.is_available():
        if "LOCAL_WORLD_SIZE" not in os.environ and not is_loopback(meeting.host):
            roll.gather(patience)
        if all(there.host == roll.mine.host for there in roll.here.values()):
            mine = "shm"
    chosen = meeting.decide("backend", mine)
    if chosen != mine == "c10d":
        roll.refuse_for_all(
            f"can't take the {chosen} transport, which another rank chose, as it has CUDA devices or is on another "
            "host: set WEFT_TRANSPORT=c10d for all ranks"
        )
    return chosen


def transport_of(rank: Rank | None = None) -> Transport:
    """The transport of a rank, or of the running thread's."""
    rank = current() if rank is None else rank
    found = rank.resources.get("transport")
    return found if found is not None else rank.resource("transport", _make)


def join(rank: Rank, deadline: float | None = None) -> Transport:
    """Connect to all other ranks now, by a rendezvous; the deadline bounds every wait."""
    transport = rank.resource("transport", functools.partial(_make, deadline=deadline))
    transport.wait_until(lambda: not transport.missing(), "all others")
    return transport


def _make(rank: Rank, deadline: float | None = None) -> Transport:
    end_with_agent(rank.index)
    transport = open_transport(rank, deadline=deadline)
    logger("transport").info("rank %d of %d, by %s", rank.index, rank.world_size, type(transport).__name__)
    atexit.register(_leave, rank, transport)
    atexit.unregister(_never_came)
    return transport


@atexit.register
def _never_came() -> None:
    """At exit of a rank that was started by hand and ended before the rendezvous: tell those who wait for it."""
    error = getattr(sys, "last_value", None)
    if not hasattr(sys, "ps1") and multiprocessing.parent_process() is None:
        tell_absence("" if error is None else raised(error))


def _leave(rank: Rank, transport: Transport) -> None:
    """At exit: tell the other ranks if the program ended by an exception, or by an error that nobody read."""
    machine = rank.resources.get("vm")
    if machine is not None:
        machine.at_exit()
    error = getattr(sys, "last_value", None)
    if error is not None and not hasattr(sys, "ps1"):
        transport.fail(raised(error), isinstance(error, PeerFailed))
    rank.close()
    transport.close()
