"""What a trace holds, and what it looks like."""

from __future__ import annotations

import json
import threading
from typing import Any

import torch

import weft as flow
from weft.core.rank import Rank, enter
from weft.launch import spawn_threads
from weft.tensor.blob import Blob
from weft.vm import merge, parse, trace, vm_of, write
from weft.vm.trace import Event, Trace


def traced(rank: Rank) -> tuple[Trace, Blob, Blob]:
    go = threading.Event()
    x, y = Blob(torch.zeros(())), Blob(torch.zeros(()))
    with enter(rank):
        vm = vm_of()
        vm.submit("op", "file", lambda: None, name="before").wait()
        with trace() as t:
            vm.submit("collective", "collective", lambda: go.wait(60), (), [x], name="all_reduce")
            vm.submit("op", "file", lambda: None, [x], [y], name="save")
            vm.submit("op", "file", lambda: None, name="relu")
            launch = vm.submit("launch", "graph", lambda: None, name="step")
            go.set()
            launch.finish()
        vm.submit("op", "file", lambda: None, name="after").wait()
    rank.close()
    return t, x, y


def test_events():
    t, *_ = traced(Rank())
    events = {e.name: e for e in t.events}
    assert sorted(events) == ["all_reduce", "relu", "save", "step"]
    reduce, save = events["all_reduce"], events["save"]
    assert (save.kind, save.stream, save.policy, save.thread) == ("op", "file", "worker", "weft rank 0 file")
    assert save.waited_for == (reduce.serial,) and reduce.waited_for == ()
    assert save.reads == events["all_reduce"].writes == ("float32[]#1",) and save.writes == ("float32[]#2",)
    assert events["relu"].thread == "weft rank 0 file" and events["step"].thread == ""
    assert all(e.queued <= e.start <= e.end and not e.failed for e in t.events)
    assert reduce.end <= save.start


def test_nothing_is_recorded_outside_and_the_fast_path_is_told():
    rank = Rank()
    heard: list[bool] = []
    vm_of(rank).on_tracing_changed.append(heard.append)
    with trace(rank) as outer, trace(rank) as inner:
        assert heard == [True]
        vm_of(rank).submit("op", "file", lambda: None)
    assert heard == [True, False]
    assert len(outer.events) == len(inner.events) == 1
    rank.close()


def test_a_trace_ends_when_its_block_raises():
    rank = Rank()
    try:
        with trace(rank):
            raise ValueError
    except ValueError:
        pass
    assert vm_of(rank).recorders == ()
    rank.close()


SUM = ("float32[2]#7",)


def fixed(rank: int) -> Trace:
    t = 1_700_000_000_000_000_000
    events = [
        Event(1, "all_reduce", "collective", "collective", "worker", "w", t, t + 2000, t + 9000, (), (), SUM, False),
        Event(2, "add", "op", "compute", "inline", "main", t + 500, t + 9500, t + 9900, (1,), SUM, (), True),
        Event(3, "step", "launch", "graph", "external", "", t, t + 1000, t + 5000, (), (), (), False),
    ]
    return Trace(rank, events)


def test_table():
    assert str(fixed(0)).splitlines() == [
        "start us  waited  ran  instruction   kind        stream      thread  after",
        "     1.0     1.0  4.0  step#3        launch      graph",
        "     2.0     2.0  7.0  all_reduce#1  collective  collective  w",
        "     9.5     9.0  0.4  add#2 failed  op          compute     main    all_reduce#1",
    ]
    assert Trace(0).table() == "no instructions"


def test_text_comes_back():
    t = fixed(3)
    again = parse(t.text())
    assert (again.rank, again.events) == (3, t.events)


def test_chrome_and_merge(tmp_path):
    path = tmp_path / "trace.json"
    write(path, [fixed(0), fixed(1)])
    events = json.loads(path.read_text())["traceEvents"]
    assert events == merge([fixed(0), fixed(1)])
    assert {e["pid"] for e in events} == {0, 1}

    mine = [e for e in events if e["pid"] == 1]
    names = {e["tid"]: e["args"]["name"] for e in mine if e["name"] == "thread_name"}
    assert sorted(names.values()) == ["collective (w)", "compute (main)", "graph"]
    (add,) = (e for e in mine if e["name"] == "add")
    assert (add["ph"], add["ts"], add["dur"], names[add["tid"]]) == ("X", 8.5, 0.4, "compute (main)")
    assert add["args"]["waited_for"] == ["all_reduce"] and add["args"]["failed"] and add["args"]["reads"] == [*SUM]
    begin, end = (e for e in mine if e["name"] == "step")
    assert (begin["ph"], begin["ts"], end["ph"], end["ts"]) == ("b", 0.0, "e", 4.0) and begin["id"] == end["id"]
    start, finish = (e for e in mine if e["name"] == "waits for")
    assert (start["ph"], start["ts"], finish["ph"], finish["ts"]) == ("s", 8.0, "f", 8.5)
    assert start["id"] == finish["id"] and names[start["tid"]] == "collective (w)"


def test_merge_of_real_ranks_shares_a_clock():
    first, second = traced(Rank(0, 2))[0], traced(Rank(1, 2))[0]
    ends = max(e.end for e in first.events)
    assert all(e.queued >= ends - 1_000_000 for e in second.events), "rank 1 ran after rank 0, to the clocks' agreement"
    assert min(e["ts"] for e in merge([first, second]) if "ts" in e) == 0


def test_calls_made_inside_are_recorded_where_they_ran():
    x = flow.tensor([-1.0, 2.0], requires_grad=True)
    dy = flow.ones(2)
    with trace() as t:
        flow.relu(x).backward(dy)
    flow.relu(x)
    relu, back = t.events
    assert [e.name for e in t.events] == ["relu", "relu_grad"]
    assert (relu.kind, relu.policy, relu.thread) == ("op", "inline", threading.current_thread().name)
    assert relu.writes[0] in back.reads and relu.end <= back.start and not relu.failed


def collectives() -> tuple[list[Any], list[Any]]:
    P, S, B = flow.placement("cpu", ranks=[0, 1]), flow.sbp.split(0), flow.sbp.broadcast
    x = flow.ones(4, 2, placement=P, sbp=S)
    with flow.vm.trace() as t:
        x.to_global(sbp=B)
        with flow.vm.trace() as inner:
            flow.comm.all_reduce(flow.ones(3))
        x.to_global(sbp=B)
    flow.comm.barrier()
    results = [
        [(e.name, e.kind, e.moved, e.peers, e.line.partition(":")[0]) for e in events if e.peers]
        for events in (t.events, inner.events)
    ]
    return results[0], results[1]


def test_a_trace_has_movements_with_their_bytes_and_ranks_and_lines():
    def seen(name: str, kind: str, size: int) -> tuple[Any, ...]:
        return name, kind, size, (0, 1), "test_trace.py"

    gather = [seen("cpu:[0,1] (S(0)) -> cpu:[0,1] (B)", "boxing", 16)]
    reduce = [seen("all_reduce", "collective", 12)]
    for found, inner in spawn_threads(2, collectives):
        assert found == [*gather, *reduce, *gather]  # also after the trace inside has ended
        assert inner == reduce


class Two(flow.nn.Graph):
    """Two stages."""

    def build(self, x: flow.Tensor) -> flow.Tensor:
        return (x * 2).to_global(placement=flow.placement("cpu", ranks=[1]), sbp=flow.sbp.broadcast) + 1


def stages() -> list[Any]:
    graph = Two()
    x = flow.ones(4, 2, placement=flow.placement("cpu", ranks=[0]), sbp=flow.sbp.broadcast)
    graph.compile(x)
    with flow.vm.trace() as t:
        graph(x).to_local().sum().item()
    flow.comm.barrier()
    return [(e.name, e.moved, e.peers, e.line.partition(":")[0]) for e in t.events if e.peers]


def test_what_a_stage_sends_names_bytes_and_ranks():
    assert spawn_threads(2, stages) == [[("box.copy", 32, (0, 1), "test_trace.py")], []]
