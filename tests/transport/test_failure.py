"""A rank that raises, dies, diverges or never comes ends the others within seconds, with an error that names it."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import time
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.worlds import World, until_noted
from weft.core import fingerprints
from weft.core.errors import DeadlineError, RankError
from weft.core.rank import Rank, current
from weft.launch import spawn, spawn_threads
from weft.launch.processes import blamed
from weft.transport import PeerFailed, transport_of
from weft.transport.base import default_deadline
from weft.transport.rendezvous import Meeting
from weft.transport.whole import raised as told_of
from weft.vm.machine import VirtualMachine

NOTICED = 30.0  # seconds, where everything else runs at the same time


def killed() -> None:
    """Rank 1 vanishes at its third step; whoever waits for it says which rank, and at what."""
    transport = transport_of()
    group = transport.group(range(transport.world_size))
    for step in range(5):
        transport.note(f"op matmul, step {step}")
        if step == 3 and transport.rank == 1:
            until_noted()
            os.kill(os.getpid(), signal.SIGKILL)
        start = time.monotonic()
        try:
            group.all_reduce(torch.ones(3))
        except RankError as error:
            print(f"{type(error).__name__} {time.monotonic() - start:.1f} {error}")
            raise


def raised() -> None:
    transport = transport_of()
    transport.note("op gelu, step 0")
    if transport.rank == 1:
        raise ValueError("these shapes don't fit")
    transport.group(range(transport.world_size)).barrier()


def diverged() -> None:
    transport = transport_of()
    group = transport.group(range(transport.world_size))
    group.barrier()
    with pytest.raises(RankError, match=r"rank 0 calls all_reduce.*rank 1 calls broadcast|rank 1 calls.*rank 0 calls"):
        if transport.rank:
            group.broadcast(torch.ones(4), 0)
        else:
            group.all_reduce(torch.ones(4))


def differ() -> None:
    """Same bytes, other shape: only the checking mode sees it."""
    transport = transport_of()
    group = transport.group(range(transport.world_size))
    group.all_reduce(torch.ones(3))
    with pytest.raises(RankError, match=r"\(2, 3\).*\(3, 2\)|\(3, 2\).*\(2, 3\)"):
        group.all_reduce(torch.ones(2 + transport.rank, 3 - transport.rank))


def moved_on() -> None:
    """An asynchronous sum carries what its ranks had in common when it began, not what they have when it's compared."""
    group, kept = transport_of().group((0, 1)), fingerprints.of()
    for name in ("a count", "the decay"):
        kept.put(name, 0)
    group.barrier()
    kept.put("the decay", current().index)
    first = group.begin_all_reduce(torch.ones(3))
    kept.put("a count", current().index)
    with pytest.raises(RankError, match=r"differ in the decay: [01] on rank [01] and [01] on rank"):
        group.begin_all_reduce(torch.ones(3))  # which says so, too, if the first was compared by now
        first.wait()
    print("named")


def alone() -> None:
    transport = transport_of()
    if transport.rank == 0:
        with pytest.raises(DeadlineError, match=r"waited 0.5 s for rank 1 in barrier"):
            transport.group((0, 1)).barrier()
        transport.put("late", b"")
    else:
        transport.get("late")


def gone() -> None:
    """Rank 1's files are closed, and the kernel hasn't reported its end yet, when rank 0 opens memory of it."""
    transport = transport_of()
    transport.group((0, 1)).barrier()
    if transport.rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    roll: Any = transport._meeting.roll  # type: ignore[attr-defined]
    dead, asked = roll.peers.dead, []
    while not dead():
        time.sleep(0.001)
    roll.peers.dead = lambda: asked.append(1) or (dead() if len(asked) > 3 else set())
    with pytest.raises(PeerFailed, match="rank 1"):
        transport._segment(roll.here[1].page.encode(), (1,))  # type: ignore[attr-defined]
    print("named")


def test_the_owner_of_memory_that_is_gone_is_named(world: Any) -> None:
    assert "named" in world("gone", 2, "shm").said(0)


def test_what_a_sum_began_with_is_named(world: Any) -> None:
    assert "named" in world("moved_on", 2, "c10d").said(0)


@pytest.mark.parametrize("transport", ["shm", "c10d"])
def test_a_killed_rank_is_noticed_and_named(world: Any, transport: str) -> None:
    done = world("killed", 3, transport)
    assert done.ended[1][1] == -signal.SIGKILL
    for rank in (0, 2):
        name, seconds, said = done.said(rank).split(" ", 2)
        assert name == "PeerFailed" and float(seconds) < NOTICED
        assert "rank 1" in said and "died" in said and "op matmul, step 3" in said


@pytest.mark.parametrize("transport", ["shm", "c10d"])
def test_a_rank_that_raises_ends_the_others_and_is_blamed(world: Any, transport: str) -> None:
    done = world("raised", 2, transport)
    assert [code for _, code in done.ended.values()] == [1, 1]
    assert abs(done.ended[0][0] - done.ended[1][0]) < NOTICED
    why = "rank 1 raised ValueError: these shapes don't fit, at op gelu, step 0"
    assert f"PeerFailed: {why}" in done.said(0)
    for rank in (0, 1):  # a launcher may see either end first
        assert blamed(done.run, rank, 1) == (1, why)


def test_what_a_rank_raises_is_raised_where_it_was_spawned() -> None:
    with pytest.raises(RankError, match="rank 1 raised ValueError: these shapes don't fit, at op gelu, step 0"):
        spawn(2, f"{__file__}:raised", transport="shm")


def test_threads() -> None:
    start = time.monotonic()
    with pytest.raises(ValueError, match="don't fit") as caught:
        spawn_threads(3, raised)
    assert "rank 1" in caught.value.__notes__[0]
    assert time.monotonic() - start < NOTICED


def test_what_the_others_of_a_failed_thread_get() -> None:
    got: dict[int, BaseException] = {}

    def body() -> None:
        try:
            raised()
        except RankError as error:
            got[current().index] = error
            raise

    with pytest.raises(ValueError):
        spawn_threads(3, body)
    assert sorted(got) == [0, 2]
    for error in got.values():
        assert isinstance(error, PeerFailed)
        assert "rank 1 raised ValueError: these shapes don't fit, at op gelu, step 0" in str(error)


def checks() -> None:
    """What needs processes, in one start."""
    transport_of().deadline = 30
    diverged()


def test_divergence_between_threads() -> None:
    spawn_threads(2, diverged_locally)


def diverged_locally() -> None:
    group = transport_of().group((0, 1))
    with pytest.raises(RankError, match="diverged at call 1"):
        if current().index:
            group.broadcast(torch.ones(4), 0)
        else:
            group.all_reduce(torch.ones(4))


def test_divergence_between_processes(world: Any) -> None:
    world("checks", 2, "shm").well()


@pytest.mark.parametrize("transport", ["shm", "c10d"])
def test_checking_mode_compares_shapes(world: Any, transport: str) -> None:
    world("differ", 2, transport, env={"WEFT_CHECK": "1"}).well()


def test_deadlines() -> None:
    def body() -> None:
        if current().index == 0:
            transport_of().deadline = 0.5
        alone()

    spawn_threads(2, body)


def test_a_stranger_listens_where_the_ranks_meet(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as stranger:
        stranger.bind(("127.0.0.1", 0))
        stranger.listen()
        monkeypatch.setenv("MASTER_ADDR", "127.0.0.1")
        monkeypatch.setenv("MASTER_PORT", str(stranger.getsockname()[1]))
        with pytest.raises(RankError, match=r"rank 1 can't reach the store at 127.0.0.1:\d+: there came no answer"):
            Meeting(Rank(1, 2), 0.2)
    monkeypatch.setenv("MASTER_PORT", "99999")
    with pytest.raises(RankError, match="MASTER_PORT is '99999'"):
        Meeting(Rank(1, 2), 0.2)


@pytest.mark.parametrize("given", ["soon", "0", "-1", "nan", "inf", "1e300"])
def test_a_deadline_that_is_none(given: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEFT_DEADLINE", given)
    for make in (default_deadline, lambda: VirtualMachine(Rank())):
        with pytest.raises(RankError, match=f"WEFT_DEADLINE is how many seconds.*{given}"):
            make()


class Unsayable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (ValueError("no such file\nor folder"), "raised ValueError: no such file"),
        (ValueError("\ud800"), "raised ValueError: ?"),
        (KeyboardInterrupt(), "raised KeyboardInterrupt"),
        (Unsayable(), "raised Unsayable"),
    ],
)
def test_what_is_told_of_an_error(error: BaseException, told: str) -> None:
    assert told_of(error) == told


def gloos_patience() -> None:
    transport = transport_of()
    transport.group((0, 1)).barrier()
    print(transport.processes((0, 1), "cpu").options._timeout.total_seconds() - transport.deadline)


def test_our_deadline_comes_before_gloos(world: Any) -> None:
    """Gloo's own end of a wait says of nobody that he is late, and breaks its connections."""
    assert [float(said) > 5 for said in world("gloos_patience", 2, "c10d").well()] == [True, True]


def absent() -> None:
    transport_of().group((0, 1)).barrier()


def test_an_interface_that_is_none(world: Any) -> None:
    done = world("absent", 2, "c10d", env={"GLOO_SOCKET_IFNAME": "nowhere0"})
    assert "GLOO_SOCKET_IFNAME=nowhere0 names no interface of this host; it has ['lo'" in done.said(0) + done.said(1)


def dies_connecting() -> None:
    """Rank 1 is killed when both have come to connect, as rank 0 begins to."""
    transport = transport_of()
    if transport.rank == 1:
        transport._gloo = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
    transport.group((0, 1)).barrier()


def test_a_rank_dies_while_c10d_connects(world: Any) -> None:
    done = world("dies_connecting", 2, "c10d", env={"WEFT_DEADLINE": "60"})
    assert f"PeerFailed: rank 1 (process {done.pids[1]}) died without a word" in done.said(0)
    assert done.ended[0][0] - done.ended[1][0] < NOTICED


def late() -> None:
    """Rank 2 dies while rank 0 waits for rank 1, which lives but makes no further call."""
    transport = transport_of()
    transport.group((0, 1, 2)).barrier()
    if transport.rank == 0:
        transport.group((0, 1)).barrier()
        transport.group((0, 1)).all_reduce(torch.ones(10_000))
    if transport.rank == 1:
        transport.group((0, 1)).barrier()
        time.sleep(100)
    time.sleep(0.5)  # until rank 0 waits
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_rank_ends_though_another_has_not_come_to_a_call_that_was_given_up(world: Any) -> None:
    seconds = []

    def first_end(found: World) -> None:
        found.wait_for(0, "PeerFailed: rank 2 ")
        start = time.monotonic()
        while Path(f"/proc/{found.pids[0]}").exists() and time.monotonic() < start + NOTICED:
            time.sleep(0.01)
        seconds.append(time.monotonic() - start)
        with contextlib.suppress(ProcessLookupError):  # it has noticed, too
            found.signal(1, signal.SIGKILL)

    world("late", 3, "c10d", env={"WEFT_DEADLINE": "60"}, during=first_end)
    assert seconds[0] < NOTICED
