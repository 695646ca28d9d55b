"""What a wait says that nobody ends: where the other rank is, and at which line of its program."""

from __future__ import annotations

import os
import re
import signal
import threading
from typing import Any

import pytest

import weft as flow
from tests.worlds import World
from weft import nn
from weft.core.errors import DeadlineError
from weft.launch import spawn_threads

S, B = flow.sbp.split, flow.sbp.broadcast
DEADLINE = 1.3
LONGER = 6.0  # a rank says for what it waits after a second, and beside other work later


class Gathered(nn.Graph):
    def build(self, x: flow.Tensor) -> flow.Tensor:
        return x.to_global(sbp=B) * 2


class Two(nn.Graph):
    """Two stages."""

    def build(self, x: flow.Tensor) -> flow.Tensor:
        return (x * 2).to_global(placement=flow.placement("cpu", ranks=[1]), sbp=B) + 1


def busy(graph: bool, there: threading.Event, over: threading.Event) -> None:
    x = flow.ones(4, 2, placement=flow.placement("cpu", ranks=[0, 1]), sbp=S(0))
    gathered = Gathered()
    gathered(x).numpy()
    if flow.env.get_rank() == 1:
        there.set()
        over.wait(20)
        return
    there.wait(20)
    try:
        gathered(x).numpy() if graph else x.to_global(sbp=B)
    finally:
        over.set()


@pytest.mark.parametrize("graph", [False, True])
def test_a_rank_that_is_elsewhere_is_told_with_its_line(graph: bool) -> None:
    with pytest.raises(DeadlineError, match=r"rank 1 is at .*test_hangs.py:\d+, in busy: over.wait\(20\)") as found:
        spawn_threads(2, busy, graph, threading.Event(), threading.Event(), deadline=DEADLINE)
    if graph:
        assert any(
            re.match(r"in box.all_gather of Gathered_\d+.input.0, of .*test_hangs.py:\d+$", n)
            for n in found.value.__notes__
        )


def apart() -> None:
    x = flow.ones(4, 2, placement=flow.placement("cpu", ranks=[0]), sbp=B)
    graph = Two()
    graph(x).to_local().sum().item()
    if flow.env.get_rank() == 1:
        graph(x).to_local().sum().item()
    else:
        flow.comm.barrier()


def test_a_launch_that_the_other_rank_does_not_make() -> None:
    """Either rank may be the first to give up, and names both."""
    with pytest.raises(DeadlineError) as found:
        spawn_threads(2, apart, deadline=LONGER)
    output = "\n".join([str(found.value), *found.value.__notes__])
    assert "launch 2 of" in output
    assert "in apart: graph(x).to_local().sum().item()" in output or "in barrier" in output
    assert "there waits for rank" in output


def waits_for_one_that_is_stopped() -> None:
    x = flow.ones(4, 2, placement=flow.placement("cpu", ranks=[0, 1]), sbp=S(0))
    gathered = Gathered()
    gathered(x).numpy()
    if flow.env.get_rank() == 1:
        print("there", flush=True)
        signal.pause()
    while not os.path.exists(os.environ["STOPPED"]):
        pass
    try:
        gathered(x).numpy()
    except DeadlineError as error:
        print(error, *error.__notes__, flush=True)


@pytest.mark.parametrize("transport", ["shm", "c10d"])
def test_a_rank_that_a_signal_stopped_is_told(world: Any, transport: str, tmp_path: Any) -> None:
    def during(found: World) -> None:
        found.wait_for(1, "there")
        os.kill(found.pids[1], signal.SIGSTOP)
        (tmp_path / "stopped").touch()
        found.wait_for(0, "Gathered_0.input.0")
        os.kill(found.pids[1], signal.SIGKILL)

    env = {"STOPPED": str(tmp_path / "stopped"), "WEFT_DEADLINE": "2"}
    said = world("waits_for_one_that_is_stopped", 2, transport, env=env, during=during).said(0)
    assert re.search(r"rank 1 is at .* \(process \d+\), stopped by a signal: SIGCONT continues it", said), said
    assert re.search(r"in box.all_gather of Gathered_0.input.0|is acting: box.all_gather of Gathered_0.input.0", said)
