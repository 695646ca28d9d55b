"""Launches that are ahead: of another rank's, or of the thread that submits them."""

from __future__ import annotations

import time

import pytest

import weft as flow
from weft import nn
from weft.core.rank import current
from weft.launch import spawn_threads
from weft.runtime.executor import Executor, Ticket
from weft.transport import transport_of

P0, P1, B = flow.placement("cpu", [0]), flow.placement("cpu", [1]), flow.sbp.broadcast


class Two(nn.Graph):
    """Rank 1 has no input of its own."""

    def __init__(self, weight: nn.Linear) -> None:
        super().__init__()
        self.weight = weight

    def build(self, x: flow.Tensor) -> flow.Tensor:
        return self.weight((x + 1).to_global(placement=P1, sbp=B))


def test_what_arrives_early_waits_for_the_launch() -> None:
    def run() -> None:
        weight = nn.Linear(2, 2, bias=False).to_global(placement=P1, sbp=B)
        nn.init.ones_(weight.weight)
        graph, x = Two(weight), flow.ones(1, 2, placement=P0, sbp=B)
        if current().index == 0:
            graph(x), graph(x)
            graph.running.executor.wait(2)  # this rank has done its part of both
            transport_of().put("both", b"sent")
            graph(x)
        else:
            assert graph(x).to_local().tolist() == [[4.0, 4.0]]
            transport_of().get("both", 20)
            assert "1 of 1 launches have finished" in graph.report()  # it does all that there is to do
            assert graph.running.executor.error is None
            with flow.no_grad():
                weight.weight.to_local().fill_(2.0)  # before the second launch, as this rank's program says
            for _ in range(2):
                assert graph(x).to_local().tolist() == [[8.0, 8.0]]
        graph.close()

    spawn_threads(2, run, deadline=60)


class Twice(nn.Graph):
    def build(self, x: flow.Tensor) -> flow.Tensor:
        return x * 2


def test_a_launch_may_end_before_the_thread_that_submits_it_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    launch = Executor.launch

    def held_up(self: Executor, n: int = 1) -> Ticket:
        ticket, end = launch(self, n), time.monotonic() + 20
        while not ticket.done and time.monotonic() < end:  # the background thread runs it
            time.sleep(0.001)
        return ticket

    monkeypatch.setattr(Executor, "launch", held_up)
    monkeypatch.setenv("WEFT_DEADLINE", "5")

    def run() -> list[list[float]]:
        graph = Twice()
        return [graph(flow.full((2,), float(i))).tolist() for i in range(3)]

    assert spawn_threads(2, run) == [[[0, 0], [2, 2], [4, 4]]] * 2
