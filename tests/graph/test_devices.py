"""Graphs over several devices of a rank: copies between host and device as tasks. `cpu:1` is a device to the compiler,
and the host's memory to torch; on `meta` nothing is computed, and whatever lies on the wrong device fails."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import weft as flow
from weft import nn
from weft.compiler.streams import WAYS
from weft.core.errors import CompileError
from weft.plan import parse, verify
from weft.plan.plan import Plan, Task
from weft.simulator import simulate

F = nn.functional
HERE, THERE = "cpu:0", "cpu:1"


@pytest.fixture
def streams(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setitem(WAYS, ("copy", "cpu"), "stream")
    monkeypatch.setitem(WAYS, ("copy", "meta"), "stream")
    yield


class Train(nn.Graph):
    def __init__(self, device: str, micro: int = 1, width: int = 8) -> None:
        super().__init__()
        flow.manual_seed(0)
        model = nn.Sequential(
            nn.Linear(4, width), nn.Dropout(0.2) if device != "meta" else nn.Tanh(), nn.ReLU(), nn.Linear(width, 2)
        )
        self.model, self.device = model.to("meta") if device == "meta" else model, device
        self.config.set_gradient_accumulation_steps(micro)
        if device != "meta":
            self.add_optimizer(flow.optim.AdamW(self.model.parameters(), lr=0.1))

    def build(self, x: Any, y: Any) -> Any:
        out = self.model(x.to(self.device))
        loss = F.mse_loss(out, y.to(self.device))
        loss.backward()
        if self.device == "meta":
            return [p.grad for p in self.model.parameters()]
        return loss, out.detach().to(HERE)


def batch(step: int) -> list[Any]:
    rng = np.random.default_rng(step)
    return [flow.tensor(rng.normal(size=(8, n)).astype(np.float32)) for n in (4, 2)]


def trained(graph: Train) -> list[np.ndarray]:
    flow.manual_seed(1)
    given = [graph(*batch(step)) for step in range(4)]
    found = [y.detach().numpy() for y in (*(y for ys in given for y in ys), *graph.model.parameters())]
    verify(graph.plan)
    assert parse(str(graph.plan)) == graph.plan
    graph.close()
    return found


def copies(plan: Plan) -> list[Task]:
    return [t for t in plan.tasks if t.kind == "copy"]


@pytest.mark.parametrize("micro", [1, 4])
def test_values_are_those_of_one_device(micro: int, streams: None, monkeypatch: pytest.MonkeyPatch) -> None:
    plain, there = Train(HERE, micro), Train(THERE, micro)
    for a, b in zip(trained(plain), trained(there), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-7)
    assert not copies(plain.plan) and len(copies(there.plan)) == 2  # of the inputs, and of what comes back
    assert "registers on cpu:1" in there.memory()
    for t in copies(there.plan):
        assert t.acts == micro and all(there.plan.register(p.register).copies > 1 for p in t.produces)
    monkeypatch.delitem(WAYS, ("copy", "cpu"))
    inline = Train(THERE, micro)
    for a, b in zip(trained(inline), trained(Train(HERE, micro)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-7)
    assert not copies(inline.plan)


@pytest.mark.parametrize("micro", [1, 4])
def test_all_that_a_call_reads_and_writes_is_on_its_device(micro: int, streams: None) -> None:
    graph = Train("meta", micro)
    for step in range(3):
        graph(*batch(step))
    graph.running.vm.sync()  # raises what failed
    (copy,) = copies(graph.plan)
    assert copy.device == "meta:0"
    at = {r.name: r.device for r in graph.plan.registers if r.dtype}
    assert at["inputs"] == "" and {d for name, d in at.items() if name != "inputs"} == {"meta:0"}
    graph.close()


@pytest.mark.parametrize("micro", [1, 8])
def test_copies_overlap_with_what_is_computed(micro: int, streams: None) -> None:
    graph = Train(THERE, micro)
    graph(*batch(0))[0].numpy()
    sizes = {r.id: r.bytes for r in graph.plan.registers}
    names = {t.name: t for t in graph.plan.tasks}

    def seconds(t: Task, act: int) -> float:
        """Copies take 1 for each byte; a chain on the device takes as long as the copy of what it reads."""
        if t.device == THERE:
            return float(sum(sizes[p.register] for p in (t.produces if t.kind == "copy" else t.consumes)))
        return 0.0

    launches = 8
    timeline = simulate(graph.plan, seconds, launches=launches)
    (there,) = [t.name for t in copies(graph.plan) if t.device == THERE]
    chain = max((t for t in names if names[t].kind == "compute"), key=timeline.busy)
    acts = launches * micro
    one = timeline.busy(there) / acts
    assert timeline.busy(chain) == timeline.busy(there)
    if micro > 1:  # each copy but the first falls together with an act
        assert timeline.span == pytest.approx((acts + 1) * one)
    else:  # two launches at a time have inputs in registers
        assert timeline.span <= 0.8 * 2 * acts * one
    graph.close()


STEPS = [
    lambda a, b: a * b + 1, lambda a, b: a @ b, lambda a, b: flow.tanh(a), lambda a, b: a.t(), lambda a, b: a - b,
    lambda a, b: flow.cat([a[:2], b[2:]]), lambda a, b: a.clone().mul_(b), lambda a, b: F.softmax(a, 1),
    lambda a, b: a[:2].sum() + b,
]  # fmt: skip


class Hops(nn.Graph):
    """A random program whose values go from device to device."""

    def __init__(self, seed: int, devices: list[str], micro: int) -> None:
        super().__init__()
        self.seed, self.devices = seed, devices
        rng = np.random.default_rng(seed)
        self.held = nn.ParameterList([nn.Parameter(flow.tensor(rng.normal(size=(4, 4)).astype(np.float32) * 0.5))])
        self.add_optimizer(flow.optim.SGD(self.held.parameters(), lr=0.1))
        self.config.set_gradient_accumulation_steps(micro)

    def build(self, x: Any) -> Any:
        draw, (w,) = random.Random(self.seed), self.held.parameters()
        values = [x, w]
        for _ in range(8):
            step, a, b = draw.choice(STEPS), draw.choice(values), draw.choice(values)
            device = draw.choice((0, 1, 2))
            values.append(step(a.to(self.devices[device]), b.to(self.devices[device])))
        loss = sum((v.to(HERE).tanh().sum() for v in values[2:]), w.sum())
        loss.backward()
        return loss, values[-1].detach().to(HERE), values[-2].detach().to(self.devices[1])


@pytest.mark.parametrize("seed", range(12))
def test_values_may_go_to_and_fro(seed: int, streams: None) -> None:
    micro = seed % 2 + 1
    found = []
    for devices in ([HERE] * 3, [HERE, THERE, "cpu:2"]):
        graph = Hops(seed, devices, micro)
        outs = [graph(flow.tensor(np.random.default_rng(step).normal(size=(4 * micro, 4)).astype(np.float32)))
                for step in range(3)]  # fmt: skip
        found.append([y.detach().numpy() for y in (*(y for ys in outs for y in ys), *graph.held.parameters())])
        verify(graph.plan)
        assert parse(str(graph.plan)) == graph.plan
        assert bool(copies(graph.plan)) == (devices[1] == THERE)
        graph.close()
    for a, b in zip(*found, strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-6)


class Blank(nn.Graph):
    pass


def test_a_saved_plan_keeps_its_devices(streams: None) -> None:
    graph = Train(THERE)
    flow.manual_seed(1)
    expected = [graph(*batch(step))[0].item() for step in range(2)]
    again = Train(THERE)
    flow.manual_seed(1)
    assert again(*batch(0))[0].item() == expected[0]
    loaded = Blank()
    loaded.load_runtime_state_dict(again.runtime_state_dict())
    assert str(loaded.plan) == str(again.plan)
    assert loaded(*batch(1))[0].item() == expected[1]


def test_registers_that_share_memory_lie_on_one_device() -> None:
    class Twice(nn.Graph):
        def build(self, x: Any) -> Any:
            return x * 2

    graph = Twice()
    graph(flow.ones(4)).numpy()
    text = str(graph.plan)
    name = next(r.name for r in graph.plan.registers if r.dtype and r.name != "inputs")
    line = next(row for row in text.split("\n") if f" {name}: " in row)
    assert "] cuda:0," in str(parse(text.replace(line, line.replace("],", "] cuda:0,"))))
    with pytest.raises(CompileError, match=r"line .*neither a stream"):
        parse(text.replace(line, line.replace("],", "] tpu:0,")))


@pytest.mark.parametrize("micro", [1, 4])
def test_copies_between_devices_are_told(streams: None, micro: int) -> None:
    graph = Train(THERE, micro)
    graph.compile(*batch(0))
    first, copied, *each = graph.explain().splitlines()
    assert first == "      0 B  moved by each rank in a launch, at most"
    assert copied == "    256 B  copied between devices"
    assert [line.partition(",")[0] for line in each] == [
        f"    128 B  %{graph.name}.input.0{'.micro' * (micro > 1)} cpu:0 -> cpu:1: copy",
        f"     64 B  %{graph.name}.input.1{'.micro' * (micro > 1)} cpu:0 -> cpu:1: copy",
        "     64 B  %model.3-linear cpu:1 -> cpu:0: copy",
    ]
