"""Profiles of one rank and of several: what is in them, one clock, valid JSON, events that nest."""

from __future__ import annotations

import contextlib
import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
import torch

import weft as flow
from weft import nn
from weft.core.errors import ArgumentError, OptionError
from weft.core.rank import current
from weft.launch import spawn_threads
from weft.profiler.averages import own_times
from weft.vm.trace import Event


class Double(nn.Graph):
    def build(self, x: flow.Tensor) -> flow.Tensor:
        return flow.relu(x) * 2


def profiled(folder: str) -> None:
    """Each rank: eager ops around a barrier, then a graph; written to a file of its own."""
    rank, size = flow.env.get_rank(), flow.env.get_world_size()
    placement = flow.placement.all("cpu")
    x = flow.ones(4, 4, placement=placement, sbp=flow.sbp.split(0))
    before = Double()
    before(x).numpy()
    with flow.profiler.profile() as p:
        if rank == 0:
            with flow.profiler.record_function("first"):
                flow.relu(flow.ones(3))
        flow.comm.barrier()
        with flow.profiler.record_function("second"):
            flow.matmul(x, x).to_global(sbp=flow.sbp.broadcast)
        before(x).numpy()
        Double()(x).numpy()
    p.export_chrome_trace(f"{folder}/{rank}.json")
    flow.comm.barrier()
    if rank == 0:
        flow.profiler.merge([f"{folder}/{r}.json" for r in range(size)], f"{folder}/all.json")
    flow.comm.barrier()


def spans(trace: dict[str, Any]) -> list[dict[str, Any]]:
    return [e for e in trace["traceEvents"] if e["ph"] == "X"]


def check_nesting(trace: dict[str, Any]) -> None:
    """On a row, of two events one ends before the other begins, or it is inside of the other."""
    rows: dict[Any, list[tuple[float, float]]] = defaultdict(list)
    for e in spans(trace):
        rows[e["pid"], e["tid"]].append((e["ts"], e["ts"] + e["dur"]))
    for row in rows.values():
        around: list[float] = []
        for start, end in sorted(row, key=lambda e: (e[0], -e[1])):
            while around and around[-1] <= start + 0.002:
                around.pop()
            assert not around or end <= around[-1] + 0.002  # nanoseconds, in rounded microseconds
            around.append(end)


def check_merged(folder: Path) -> None:
    trace = json.loads((folder / "all.json").read_text())
    check_nesting(trace)
    found = spans(trace)
    assert {e["pid"] for e in found} == {0, 1} and min(e["ts"] for e in found) >= 0
    named = {e["args"]["name"] for e in trace["traceEvents"] if e["name"] == "process_name"}
    assert named == {"rank 0", "rank 1"}
    # The barrier orders them: what rank 0 did before it comes before what rank 1 did after it, on the common clock.
    first = next(e for e in found if e["name"] == "first")
    second = {e["pid"]: e for e in found if e["name"] == "second"}
    assert first["ts"] + first["dur"] <= second[1]["ts"]
    for rank in (0, 1):
        own = [e for e in found if e["pid"] == rank]
        matmul = next(e for e in own if e["name"] == "matmul")
        assert second[rank]["ts"] <= matmul["ts"] and matmul["cat"] == "op"
        assert [e["cat"] for e in own if e["name"] == "step0"] == ["compute"] * 2
    launches = [e for e in trace["traceEvents"] if e["ph"] == "b" and e["cat"] == "launch"]
    assert len(launches) == 4


def test_threads(tmp_path: Path) -> None:
    spawn_threads(2, profiled, str(tmp_path))
    check_merged(tmp_path)


def test_processes(world: Any, tmp_path: Path) -> None:
    world("profiled", 2, "shm", str(tmp_path)).well()
    check_merged(tmp_path)


def test_key_averages() -> None:
    x = flow.ones(3, 3, requires_grad=True)

    @flow.profiler.record_function("forward")
    def forward() -> flow.Tensor:
        return flow.relu(flow.matmul(x, x)).sum()

    with flow.profiler.profile() as p:
        forward().backward()
        forward()
    rows = {r.name: r for r in p.key_averages()}
    assert rows["forward"].kind == "function" and rows["forward"].calls == 2
    assert rows["relu"].calls == 2 and rows["matmul"].calls > 2  # backward's too
    assert rows["forward"].own < rows["forward"].total
    assert rows["relu"].mean == rows["relu"].total / 2
    text = str(p.key_averages())
    assert text.splitlines()[0].split()[:3] == ["name", "kind", "calls"] and "forward" in text
    assert p.key_averages().table("name", 1).splitlines()[1].startswith(min(rows))
    with pytest.raises(OptionError, match="sort by one of total, own"):
        p.key_averages().table("speed")


def test_outside_nothing_is_recorded() -> None:
    with flow.profiler.record_function("unheard"):
        flow.ones(2)
    with flow.profiler.profile() as p:
        pass
    flow.ones(2)
    assert not p.events() and str(p.key_averages()) == "nothing was recorded"
    assert p.chrome_trace()["traceEvents"][0]["args"] == {"name": "rank 0"}


def test_own_time_leaves_out_what_is_inside() -> None:
    def event(name: str, start: int, end: int, policy: str = "inline") -> Event:
        return Event(0, name, "op", "compute", policy, "main", start, start, end, (), (), (), False)

    events = [event("inner", 2, 5), event("outer", 0, 10), event("deep", 3, 4), event("next", 10, 12)]
    assert own_times(events) == [2, 7, 1, 2]
    assert own_times([event("a", 0, 10, "external"), event("b", 5, 20, "external")]) == [10, 15]


def test_mistakes(tmp_path: Path) -> None:
    with flow.profiler.profile() as p:
        with pytest.raises(ArgumentError, match="is being profiled already"):
            flow.profiler.profile().__enter__()
    with pytest.raises(ArgumentError, match="was used already"):
        p.__enter__()
    with pytest.raises(ArgumentError, match="nothing was profiled yet"):
        flow.profiler.profile().chrome_trace()
    with pytest.raises(ArgumentError, match="merge takes a list"):
        flow.profiler.merge("a.json", tmp_path / "b.json")
    other = tmp_path / "other.json"
    other.write_text("[]")
    with pytest.raises(ArgumentError, match="say when their clock began"):
        flow.profiler.merge([other], tmp_path / "b.json")
    other.write_text("?")
    with pytest.raises(ArgumentError, match="is not JSON"):
        flow.profiler.merge([other], tmp_path / "b.json")
    assert not current().resources.get("profile")


def test_stretches_are_pushed_and_popped() -> None:
    with flow.profiler.profile(activities=[flow.profiler.ProfilerActivity.CPU]) as p:
        flow.profiler.range_push("outer")
        flow.profiler.range_push("inner")
        flow.profiler.range_pop()
        flow.profiler.range_pop()
    names = [e.name for e in p.events() if e.kind == "function"]
    assert names == ["inner", "outer"]
    with pytest.raises(flow.errors.ArgumentError, match="no range_push"):
        flow.profiler.range_pop()


@pytest.mark.parametrize(
    "options",
    [
        {"wait": 1, "warmup": 1, "active": 2},
        {"wait": 2, "warmup": 0, "active": 1, "repeat": 2, "skip_first": 3},
        {"wait": 2, "warmup": 1, "active": 3, "repeat": 1, "skip_first": 1, "skip_first_wait": 1},
    ],
)
def test_a_schedule_is_torchs(options: dict[str, int]) -> None:
    ours, theirs = flow.profiler.schedule(**options), torch.profiler.schedule(**options)
    assert [ours(step).name for step in range(20)] == [theirs(step).name for step in range(20)]


def test_the_steps_of_a_schedule_are_recorded_and_handed_over(tmp_path: Path) -> None:
    log: list[list[str]] = []
    write = flow.profiler.tensorboard_trace_handler(tmp_path / "log", "here", use_gzip=True)

    def ready(p: flow.profiler.profile) -> None:
        log.append([e.name for e in p.events()])
        write(p)

    with flow.profiler.profile(
        schedule=flow.profiler.schedule(wait=1, warmup=1, active=2, repeat=2), on_trace_ready=ready, record_shapes=True
    ) as p:
        x = flow.ones(2)
        for i in range(9):
            (flow.exp if i % 2 else flow.sin)(x)
            p.step()
    assert log == [
        ["sin", "ProfilerStep#2", "exp", "ProfilerStep#3"],
        ["sin", "ProfilerStep#6", "exp", "ProfilerStep#7"],
    ]
    files = sorted((tmp_path / "log").glob("here.*.pt.trace.json.gz"))
    assert len(files) == 2 and p.step_num == 9
    merged = flow.profiler.merge(files, tmp_path / "all.json")
    assert {e["name"] for e in spans(merged)} == {*log[0], *log[1]}
    assert not current().resources.get("profile")


def test_without_a_block_and_what_comes_too_early() -> None:
    log: list[int] = []
    p = flow.profiler.profile(on_trace_ready=lambda p: log.append(len(p.events())))
    with pytest.raises(ArgumentError, match="has not begun"):
        p.step()
    p.start()
    flow.exp(flow.ones(2))
    p.step()
    p.stop()
    rows = p.key_averages()
    assert log == [len(p.events())] and [r.count for r in rows if r.key == "exp"] == [1]
    assert all(r.cpu_time_total == r.total and r.self_cpu_time_total == r.own for r in rows)
    assert rows.table(sort_by="self_cpu_time_total", row_limit=-1) == rows.table("own")
    with pytest.raises(ArgumentError, match="stacks"):
        p.key_averages(group_by_stack_n=1)
    with pytest.raises(OptionError, match="at least 1"):
        flow.profiler.schedule(wait=1, warmup=1, active=0)
    assert flow.profiler.ProfilerActivity.CPU in flow.profiler.supported_activities()


def test_calls_on_operands_of_other_shapes_are_counted_apart() -> None:
    with flow.profiler.profile() as p:
        for n in (2, 3, 2):
            _ = flow.ones(n, 4) @ flow.ones(4, 5)
    rows = p.key_averages(group_by_input_shape=True)
    assert {r.input_shapes: r.count for r in rows if r.key == "matmul"} == {
        ("float32[2, 4]", "float32[4, 5]"): 2, ("float32[3, 4]", "float32[4, 5]"): 1,
    }  # fmt: skip
    assert "float32[3, 4], float32[4, 5]" in str(rows) and "operands" not in str(p.key_averages())


class Trained(nn.Graph):
    def __init__(self, placement: flow.placement) -> None:
        super().__init__()
        self.m = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4)).to_global(placement, flow.sbp.broadcast)
        self.add_optimizer(flow.optim.SGD(self.m.parameters(), lr=0.1))

    def build(self, x: flow.Tensor) -> flow.Tensor:
        loss = self.m(x).square().sum()
        loss.backward()
        return loss


def calls_of_a_graph() -> None:
    placement = flow.placement.all("cpu")
    x = flow.ones(4, 8, placement=placement, sbp=flow.sbp.split(0))
    graph = Trained(placement)
    graph(x).numpy()
    with flow.profiler.profile() as p:
        graph(x).numpy()
        with flow.vm.trace() as inner:
            graph(x).numpy()
    check_nesting(p.chrome_trace())
    planned = [c for t in graph.plan.tasks for c in t.step.calls]
    for events, launches in ((p.events(), 2), (inner.events, 1)):
        calls = [e for e in events if e.kind == "call"]
        assert [e.name for e in calls].count("linear") == 2 * launches
        for e in calls:
            assert any(
                (c.op, c.at) == (e.name, e.line) and [r.name for r in c.results] == [w.split()[-1] for w in e.writes]
                for c in planned
            )
        (first, *_) = calls
        assert first.reads[0].startswith("float32[2, 8]") and "test_profiler.py" in first.line
        act = next(e for e in events if e.kind == "compute")
        assert act.start <= first.start <= first.end <= act.end and (act.stream, act.thread) == first[3:6:2]
        sums = [e for e in calls if e.name == "box.all_reduce"]
        assert len(sums) == launches * sum(c.op == "box.all_reduce" for c in planned)
        assert max(e.moved for e in sums) == (16 * 8 + 16 + 4 * 16 + 4) * 4 and all(e.peers == (0, 1) for e in sums)
        assert "among 0, 1" in inner.table()
    before = len(p.events())
    graph(x).numpy()
    assert len(p.events()) == before


def test_the_calls_inside_of_a_graph_are_told_with_forms_lines_and_peers() -> None:
    spawn_threads(2, calls_of_a_graph)


def test_a_call_that_fails_while_it_is_timed_is_named_as_ever() -> None:
    class Looked(nn.Graph):
        def build(self, x: flow.Tensor, i: flow.Tensor) -> flow.Tensor:
            return flow.embedding(flow.relu(x), i)

    graph = Looked()
    x, good, bad = flow.ones(3, 2), flow.tensor([0, 2]), flow.tensor([0, 3])
    graph(x, good).numpy()
    log = []
    for watching in (contextlib.nullcontext(), flow.profiler.profile()):
        graph = Looked()
        graph(x, good).numpy()
        with watching, pytest.raises(Exception) as caught:
            graph(x, bad).numpy()
        log.append((type(caught.value), str(caught.value)))
    assert log[0] == log[1]
