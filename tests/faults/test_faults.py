"""A rank that raises, dies, diverges or is interrupted ends every other within seconds, by an error that names it.

Each kind of failure happens in eager training on global tensors and in a compiled graph, over every transport.
"""

from __future__ import annotations

import os
import re
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

import weft as flow
from bench import victims
from tests.worlds import started, until_noted
from weft import nn
from weft.core.errors import DeadlineError, RankError
from weft.core.rank import current
from weft.launch import spawn_threads
from weft.transport import LocalTransport, transport_of

NOTICED = 30.0  # seconds, where everything else runs at the same time
BAD = 1  # the rank that fails, at this step:
STEP = 3


def trainer(kind: str) -> Callable[[], float]:
    x = victims.batch()
    if kind == "eager":
        step = victims.eager_step()
        return lambda: step(x)
    graph = victims.Train()
    return lambda: graph(x).item()


def failing(kind: str, how: str) -> None:
    """Train; the bad rank fails amid it."""
    step = trainer(kind)
    for n in range(STEP + 3):
        if n == STEP:
            print(f"at step {n}\n", end="", flush=True)
            if current().index == BAD:
                fail(how)
        step()


def fail(how: str) -> None:
    if how == "raises":
        raise ValueError("a mistake in the program")
    if how == "dies":
        until_noted()
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "idles":
        time.sleep(NOTICED * 3)
    if how == "exits":
        raise SystemExit(3)


# What the others say of a rank that was training; the note is the last thing that it did with others.
DOING = {"eager": r"(boxing|to_global) .*", "graph": r"graph Train_0, launch 2"}


@pytest.mark.parametrize(
    ("how", "kind", "transport"),
    [("raises", "eager", "shm"), ("raises", "graph", "c10d"), ("dies", "graph", "shm"), ("dies", "eager", "c10d")],
)
def test_a_rank_fails_amid_training(world: Any, how: str, kind: str, transport: str) -> None:
    done = world("failing", 2, transport, kind, how)
    assert done.ended[BAD][1] == (1 if how == "raises" else -signal.SIGKILL)
    others(done, how, kind)


def others(done: Any, how: str, kind: str) -> None:
    why = {"raises": "raised ValueError: a mistake in the program", "dies": "died without a word"}[how]
    ended = done.ended[BAD][0]
    for rank, (when, code) in done.ended.items():
        if rank != BAD:
            said = done.said(rank)
            assert code == 1, said
            assert re.search(rf"PeerFailed: rank {BAD} .*{why}.*, at {DOING[kind]}", said), said
            assert when - ended < NOTICED


@pytest.mark.parametrize("kind", ["graph"])
def test_a_rank_is_killed_while_the_others_wait_for_it(world: Any, kind: str) -> None:
    def during(running: Any) -> None:
        for rank in range(3):
            running.wait_for(rank, f"at step {STEP}")
        running.signal(BAD, signal.SIGKILL)

    done = world("failing", 3, "shm", kind, "idles", during=during)
    assert done.ended[BAD][1] == -signal.SIGKILL
    others(done, "dies", kind)


@pytest.mark.parametrize("kind", ["eager", "graph"])
def test_threads(kind: str) -> None:
    start = time.monotonic()
    got: dict[int, BaseException] = {}

    def body() -> None:
        try:
            failing(kind, "raises")
        except BaseException as error:
            got[current().index] = error
            raise

    with pytest.raises(ValueError, match="a mistake in the program") as caught:
        spawn_threads(3, body)
    assert f"raised on rank {BAD} of 3" in caught.value.__notes__
    assert sorted(got) == [0, 1, 2] and time.monotonic() - start < NOTICED
    for rank in (0, 2):
        assert re.match(rf"rank {BAD} raised ValueError: a mistake.*, at {DOING[kind]}", str(got[rank]))


# ---- divergence --------------------------------------------------------------------------------------------------


def diverging(what: str) -> None:
    """The ranks run different programs."""
    bad = current().index == BAD
    placement = flow.placement.all("cpu")
    x = flow.ones(4, 4, placement=placement, sbp=flow.sbp.split(0))
    transport_of().deadline = 5.0
    if what == "op":
        flow.relu(x).to_global(sbp=flow.sbp.broadcast) if bad else flow.relu(x).to_global(sbp=flow.sbp.split(1))
    elif what == "shape":
        y = flow.ones(8 if bad else 4, 4, placement=placement, sbp=flow.sbp.split(0))
        y.to_global(sbp=flow.sbp.broadcast)
    elif what in ("steps", "launches"):
        step = trainer("eager" if what == "steps" else "graph")
        for _ in range(2 if bad else 4):
            step()
    elif what == "graph":

        class One(nn.Graph):
            def build(self, x: flow.Tensor) -> flow.Tensor:
                return flow.relu(x) if bad else flow.exp(x)

        One()(x)


DIVERGED = {
    "op": r"diverged.*(all_gather.*all_to_all|all_to_all.*all_gather)",
    "shape": r"diverged.*all_gather",
    "steps": r"rank 1 has ended.*rank 0 was waiting for",
    "launches": r"rank 1 has ended",
    "graph": r"rank 1 traced another One_0 than rank 0.*exp.*relu",
}


def check_diverged(what: str, said: str) -> None:
    assert re.search(DIVERGED[what], said, re.DOTALL), said


@pytest.mark.parametrize("what", DIVERGED)
def test_threads_diverge(what: str) -> None:
    start = time.monotonic()
    with pytest.raises(RankError) as caught:
        spawn_threads(2, diverging, what)
    check_diverged(what, str(caught.value))
    assert not isinstance(caught.value, DeadlineError) and time.monotonic() - start < NOTICED


@pytest.mark.parametrize("what", ["op", "launches", "graph"])  # threads show the others
def test_processes_diverge(world: Any, what: str) -> None:
    done = world("diverging", 2, "shm", what)
    check_diverged(what, done.said(0) + done.said(1))
    assert done.ended[0][1] == 1 and abs(done.ended[0][0] - done.ended[1][0]) < NOTICED
    assert done.ended[1][1] == (0 if what in ("steps", "launches") else 1)


def ending_early(looked: threading.Event) -> list[float] | None:
    """0 sends to 1, and 3 by way of 2. Rank 0 ends long before rank 3 begins; to rank 1, that is no failure."""
    whole, transport, me = flow.sbp.broadcast, transport_of(), current().index
    place = [flow.placement("cpu", [r]) for r in range(4)]
    assert isinstance(transport, LocalTransport)
    look = transport.look_around

    def looking(needed: Sequence[int]) -> None:
        look(needed)
        if me == 1 and 0 in transport.world.ended:
            looked.set()

    transport.look_around = looking  # type: ignore[method-assign]

    class Add(nn.Graph):
        def build(self, x: flow.Tensor, y: flow.Tensor) -> flow.Tensor:
            soon = (x * 2).to_global(placement=place[1], sbp=whole) * 3
            late = (y * 5).to_global(placement=place[2], sbp=whole) * 7
            return soon + late.to_global(placement=place[1], sbp=whole)

    graph = Add()
    given = flow.ones(2, placement=place[0], sbp=whole), flow.ones(2, placement=place[3], sbp=whole)
    graph.compile(*given)
    if me == 3:
        assert looked.wait(60)
    out = graph(*given)
    return out.to_local().tolist() if me == 1 else None


def test_a_rank_that_has_done_its_part_may_end() -> None:
    assert spawn_threads(4, ending_early, threading.Event()) == [None, [41.0, 41.0], None, None]


# ---- Ctrl-C ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["eager"])
def test_one_rank_is_interrupted(world: Any, kind: str) -> None:
    def during(running: Any) -> None:
        running.wait_for(0, f"at step {STEP}")
        running.wait_for(BAD, f"at step {STEP}")
        running.signal(BAD, signal.SIGINT)

    done = world("failing", 2, "shm", kind, "idles", during=during)
    assert done.ended[BAD][1] == 130 and done.ended[0][1] == 1
    assert re.search(rf"PeerFailed: rank {BAD} raised KeyboardInterrupt.*, at {DOING[kind]}", done.said(0))
    assert done.ended[0][0] - done.ended[BAD][0] < NOTICED


@pytest.mark.parametrize("kind", ["graph"])
def test_a_rank_that_waits_is_interrupted(world: Any, kind: str) -> None:
    """The one that waits is deep in a collective, or drives a graph's actors."""

    def during(running: Any) -> None:
        running.wait_for(BAD, f"at step {STEP}")
        running.wait_for(0, f"at step {STEP}")
        running.signal(0, signal.SIGINT)
        running.wait_for(0, "KeyboardInterrupt")
        running.signal(BAD, signal.SIGKILL)  # it sleeps, and would notice only afterwards

    done = world("failing", 2, "shm", kind, "idles", during=during)
    assert done.ended[0][1] == 130 and done.ended[0][0] - done.ended[BAD][0] < NOTICED


PROGRAM = """
import sys
sys.path.insert(0, {folder!r})
from tests.faults import test_faults
test_faults.failing("graph", "idles")
"""


def test_the_launcher_is_interrupted_amid_training(tmp_path: Path) -> None:
    """Every rank ends, the one that waits and the one that sleeps; nothing of them is left."""
    program = tmp_path / "program.py"
    program.write_text(PROGRAM.format(folder=str(Path(__file__).parents[2])))
    words = [sys.executable, "-m", "weft.launch", "--nproc_per_node", "2", str(program)]
    with started(words) as launcher:
        assert launcher.stdout is not None
        said = {launcher.stdout.readline() for _ in range(2)}
        assert said == {f"[rank {i}] at step {STEP}\n" for i in range(2)}
        start = time.monotonic()
        launcher.send_signal(signal.SIGINT)
        said = launcher.stdout.read()  # ends when the last process that can write to it has ended
        assert launcher.wait(NOTICED) == 130 and time.monotonic() - start < NOTICED
    assert said.endswith("weft.launch: interrupted; every rank was ended\n"), said
