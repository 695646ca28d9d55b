"""After a call that was broken off, none that could pair wrongly: over every transport, and by two threads, too."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest
import torch

from weft.core.errors import DeadlineError, RankError
from weft.core.rank import current, enter
from weft.launch import spawn, spawn_threads
from weft.transport import Line, Transport, local, transport_of


class Broken(BaseException):
    """What a signal's handler raises wherever the program is."""


def ones() -> torch.Tensor:
    return torch.ones(4)


CALLS: dict[str, Callable[[Any, int], None]] = {
    "all_reduce": lambda line, rank: line.group((0, 1)).all_reduce(ones()),
    "all_reduce, large": lambda line, rank: line.group((0, 1)).all_reduce(torch.ones(1 << 20)),
    "all_gather": lambda line, rank: line.group((0, 1)).all_gather([ones(), ones()], ones()),
    "reduce_scatter": lambda line, rank: line.group((0, 1)).reduce_scatter(ones(), [ones(), ones()]),
    "all_to_all": lambda line, rank: line.group((0, 1)).all_to_all([ones(), ones()], [ones(), ones()]),
    "broadcast": lambda line, rank: line.group((0, 1)).broadcast(ones(), 0),
    "barrier": lambda line, rank: line.group((0, 1)).barrier(),
    "begin_all_reduce": lambda line, rank: line.group((0, 1)).begin_all_reduce(ones()).wait(),
    "a message": lambda line, rank: line.exchange([], [(1 - rank, ones())]),
}


def interrupted(transport: Transport, call: Callable[[], None]) -> None:
    """Amid a wait for the other rank, as by a signal."""

    def look_around(needed: object) -> None:
        raise Broken("stop")

    transport.look_around = look_around  # type: ignore[method-assign]
    try:
        with pytest.raises(Broken):
            call()
    finally:
        del transport.look_around


def body() -> None:
    transport, rank = transport_of(), current().index
    everyone = transport.group((0, 1), "apart")
    everyone.barrier()
    for name, call in CALLS.items():
        line = Line(transport, name)
        if name != "a message":
            call(line, rank)
        everyone.barrier()
        if rank == 0:
            interrupted(transport, lambda call=call, line=line: call(line, rank))
            for _ in range(2):
                with pytest.raises(RankError, match=r"was broken off, as it raised Broken: stop\. Others may"):
                    call(line, rank)
        everyone.barrier()
    late()
    everyone.barrier()
    mistakes()
    everyone.barrier()


def late() -> None:
    """The wait's own end breaks a call off, too; groups and ways that it doesn't concern go on."""
    transport, rank = transport_of(), current().index
    line = Line(transport, "late")
    group = line.group((0, 1))
    group.barrier()
    line.exchange([(1 - rank, ones())], [(1 - rank, ones())])
    if rank == 0:
        patience, transport.deadline = transport.deadline, 0.05
        for act in (group.barrier, lambda: line.exchange([], [(1, ones())])):
            with pytest.raises(DeadlineError):
                act()
            with pytest.raises(RankError, match="was broken off, as it raised DeadlineError"):
                act()
        transport.deadline = patience
        line.exchange([(1, ones() * 5)], [])
    else:
        got = ones()
        line.exchange([], [(0, got)])
        assert got[0] == 5


def mistakes() -> None:
    """What is refused before anything moved, or by all members alike, leaves a group in step."""
    transport, rank = transport_of(), current().index
    group = transport.group((0, 1), "mistakes")
    for i in range(3):
        with pytest.raises((RankError, TypeError)):
            group.all_gather([ones()], ones())
        if rank:
            with pytest.raises(TypeError):
                group.all_reduce(ones(), "most")
        with pytest.raises(RankError, match="diverged"):
            group.all_reduce(ones(), ("sum", "max")[rank])
        t = torch.full((4,), float(rank + i))
        group.all_reduce(t)
        assert t[0] == 2 * i + 1


def test_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "LOOK", 0.01)  # nobody wakes a wait that a signal is to end
    spawn_threads(2, body, deadline=60)


@pytest.mark.parametrize("transport", ["shm", "c10d"])
def test_processes(world: Any, transport: str) -> None:
    world("body", 2, transport, env={"WEFT_DEADLINE": "60"}).well()


def at_once() -> None:
    """Rank 0's second call begins while its first one waits; one after another, threads may take turns."""
    transport, rank = transport_of(), current()
    apart, group = transport.group((0, 1), "apart"), transport.group((0, 1))
    group.barrier()
    if rank.index == 0:
        begun = threading.Event()
        wait = transport.group_waiting

        def noticed(*given: Any) -> Any:
            begun.set()
            return wait(*given)

        def first() -> None:
            with enter(rank):
                transport.group_waiting = noticed  # type: ignore[method-assign]
                group.all_reduce(ones())

        thread = threading.Thread(target=first)
        thread.start()
        assert begun.wait(60)
        del transport.group_waiting
        with pytest.raises(RankError, match=r"all_reduce in group .* while another call of this rank is under way"):
            group.all_reduce(ones())
        apart.barrier()
        thread.join(60)
    else:
        apart.barrier()
        group.all_reduce(ones())
    group.barrier()
    apart.barrier()


def test_two_threads_of_a_rank() -> None:
    spawn_threads(2, at_once, deadline=60)


@pytest.mark.parametrize("transport", ["shm", "c10d"])
def test_two_threads_of_a_process(world: Any, transport: str) -> None:
    world("at_once", 2, transport, env={"WEFT_DEADLINE": "60"}).well()


def ends() -> None:
    """A child of one rank ends; then both wait for a message that nobody sends, give up, and end with a code of their
    own."""
    transport, rank = transport_of(), current().index
    exchange = (((1 - rank, ones()),), ((1 - rank, ones()),))
    transport.exchange(*exchange)
    if rank:
        child = os.fork()
        if child == 0:
            sys.exit()
        assert os.waitpid(child, 0)[1] == 0
    transport.exchange(*exchange)
    transport.deadline = 0.5
    with pytest.raises(DeadlineError):
        transport.exchange((), exchange[1])
    sys.exit(3)


def test_processes_end_as_programs_do() -> None:
    """Over c10d. What a forked child inherited must not be taken down when it ends, and the rank stays connected. A
    thread is left in the wait that never ends: it must be out of Gloo before Python ends."""
    for ended in spawn(2, f"{__file__}:ends", transport="c10d", check=False):
        assert (ended.code, ended.err) == (3, "")
