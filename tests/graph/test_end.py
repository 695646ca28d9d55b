"""A graph that nobody names any more ends, wherever it is found out."""

from __future__ import annotations

import _thread
import gc
import signal
import threading
import time
import weakref
from typing import Any

import pytest

import weft as flow
from weft import nn
from weft.compiler.calls.bind import Binder
from weft.core.errors import GraphError
from weft.core.rank import Rank, current, enter
from weft.vm import vm_of


class Plus(nn.Graph):
    def build(self, x: Any) -> Any:
        return x + 1


def test_collected_amid_its_own_act(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    bind = Binder.bind

    def collecting(self: Binder, *args: Any) -> Any:
        gc.collect()
        return bind(self, *args)

    graph = Plus()
    graph.__dict__["itself"] = graph  # only a collection finds it
    y = graph(flow.ones(3))
    del graph
    monkeypatch.setattr(Binder, "bind", collecting)
    assert y.tolist() == [2.0, 2.0, 2.0]
    assert "Exception" not in capsys.readouterr().err


def test_dropped_between_launches() -> None:
    with enter(Rank(0, 1)) as rank:
        graph = Plus()
        assert graph(flow.ones(3)).tolist() == [2.0, 2.0, 2.0]
        name = f"graph {graph.name}"
        assert name in current().resources
        listening = vm_of().on_tracing_changed
        assert len(listening) == 1
        del graph
        gc.collect()
        assert name not in rank.resources and not listening
        rank.close()


def test_dropped_in_a_launch_it_waits_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """What waits in a collection loses an interrupt: Python only prints it."""
    began, go_on, bind = threading.Event(), threading.Event(), Binder.bind

    def slow(self: Binder, *args: Any) -> Any:
        began.set()
        assert go_on.wait(60)
        return bind(self, *args)

    with enter(Rank(0, 1)) as rank:
        graph, following = Plus(), Plus()
        monkeypatch.setattr(Binder, "bind", slow)
        y = graph(flow.ones(3))
        name = f"graph {graph.name}"
        assert began.wait(60)
        del graph
        gc.collect()  # comes back while the launch is under way
        assert name in rank.resources
        go_on.set()
        assert y.tolist() == [2.0, 2.0, 2.0]
        following.compile(flow.ones(3))
        assert name not in rank.resources
        rank.close()


def test_dropped_where_another_rank_runs() -> None:
    rank = Rank(0, 1)
    with enter(rank):
        graph = Plus()
        y = graph(flow.ones(3))
        name = f"graph {graph.name}"
    with enter(Rank(0, 1)) as other:
        del graph
        gc.collect()
        assert name in rank.resources  # it ends with its rank
        other.close()
    with enter(rank):
        assert y.tolist() == [2.0, 2.0, 2.0]
        rank.close()


class Picks(nn.Graph):
    def build(self, x: Any, i: Any) -> Any:
        return x[i]


def test_whose_launch_failed() -> None:
    """The error, which later launches name, holds the frames of who got it, and these the graph."""

    def fails() -> weakref.ref[Picks]:
        graph = Picks()
        with pytest.raises(IndexError, match="out of"):
            graph(flow.ones(3), flow.tensor([9])).numpy()
        with pytest.raises(GraphError, match=r"was broken off in an earlier launch: .*out of"):
            graph(flow.ones(3), flow.tensor([1])).numpy()
        return weakref.ref(graph)

    with enter(Rank(0, 1)) as rank:
        gone = fails()
        gc.collect()
        assert gone() is None
        rank.close()


def test_ctrl_c_is_heard_in_launches_that_nobody_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is raised where it falls, once; what it broke off is no failure of which the end of the program would tell."""
    monkeypatch.setattr(vm_of(), "max_pending", 4)
    graph, x = Doubled(), flow.ones(256, 256)
    graph(x).numpy()
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    alarm = threading.Timer(0.1, _thread.interrupt_main)
    try:
        alarm.start()
        end = time.monotonic() + 60
        with pytest.raises(KeyboardInterrupt):
            while time.monotonic() < end:
                graph(x)
    finally:
        alarm.cancel()
        signal.signal(signal.SIGINT, before)
    vm_of().sync()


class Doubled(nn.Graph):
    def build(self, x: Any) -> Any:
        for _ in range(20):
            x = flow.matmul(x, x) * 1e-3
        return x
