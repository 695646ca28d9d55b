"""Where a chain's values lie: random programs of kernels that choose it themselves, of views, joins and new orders."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

import weft as flow
from tests.graphs import Trains
from weft import nn
from weft.core.errors import CompileError
from weft.ops import OPS
from weft.plan import parse
from weft.plan.calls import Step, verify

F = nn.functional
Program = tuple[int, int, int, int]  # what, of which values, a choice


def _norm(x: Any) -> Any:
    return F.layer_norm(x, x.shape[-1:])


def _joined(x: Any, y: Any, dim: int) -> Any:
    fits = all(i == dim or m == n for i, (m, n) in enumerate(zip(x.shape, y.shape, strict=True)))
    return flow.cat([x, y], dim) if fits else x + 1


def _attention(x: Any) -> Any:
    q = x.unsqueeze(1)
    y = F.scaled_dot_product_attention(q, q, q, is_causal=True)
    return y.transpose(1, 2).reshape(x.shape)


STEPS: list[Callable[[Any, Any, int], Any]] = [
    lambda x, y, k: _norm(x),
    lambda x, y, k: F.softmax(x, -1),
    lambda x, y, k: _joined(x, y, k % 3),
    lambda x, y, k: x.transpose(1, 2),
    lambda x, y, k: x.transpose(0, 1).reshape(x.shape[1], -1, x.shape[2]),
    lambda x, y, k: x.chunk(2, -1)[k % 2] if x.shape[-1] % 2 == 0 else x * 2,
    lambda x, y, k: x.tanh(),
    lambda x, y, k: _norm(x).permute(1, 0, 2).contiguous().view(x.shape[1], -1, x.shape[2]),
    lambda x, y, k: flow.cumsum(x, -1),
    lambda x, y, k: _attention(x),
    lambda x, y, k: _norm(x)[:, k % x.shape[1] :],
    lambda x, y, k: F.rms_norm(x, x.shape[-1:]).unsqueeze(0).expand(2, -1, -1, -1).mean(0),
]
PROGRAM = st.lists(st.tuples(st.sampled_from(range(len(STEPS))), *[st.integers(0, 20)] * 3), min_size=3, max_size=9)


def run(steps: list[Program], x: Any, w: Any) -> list[Any]:
    values = [x, x * w]
    for what, i, j, choice in steps:
        values.append(STEPS[what](values[i % len(values)], values[j % len(values)], choice))
    return values[1:]


class Trained(nn.Graph):
    def __init__(self, steps: list[Program], w: np.ndarray) -> None:
        super().__init__()
        self.holder = nn.ParameterList([nn.Parameter(flow.tensor(w))])
        self.steps = steps
        self.add_optimizer(flow.optim.SGD(list(self.holder.parameters()), lr=1.0))

    def build(self, x: flow.Tensor) -> Any:
        values = run(self.steps, x, self.holder[0])
        sum(((v * v).mean() for v in values), flow.zeros(())).backward()
        return values


@settings(max_examples=60)
@given(PROGRAM)
def test_values_and_gradients_are_those_of_eager(steps: list[Program]) -> None:
    rng = np.random.default_rng(len(steps))
    x, w = (rng.normal(size=shape).astype(np.float32) for shape in ((2, 3, 4), (4,)))
    graph = Trained(steps, w)
    weight = nn.Parameter(flow.tensor(w))
    for _ in range(2):  # a second time, over what the first left behind
        found = graph(flow.tensor(x))
        wanted = run(steps, flow.tensor(x), weight)
        for a, b in zip(found, wanted, strict=True):
            np.testing.assert_allclose(a.numpy(), b.detach().numpy(), rtol=1e-4, atol=1e-5)
        sum(((v * v).mean() for v in wanted), flow.zeros(())).backward()
        assert weight.grad is not None
        with flow.no_grad():
            weight.sub_(weight.grad)
        weight.grad = None
        np.testing.assert_allclose(graph.holder[0].detach().numpy(), weight.detach().numpy(), rtol=1e-3, atol=1e-4)
    graph.close()


def test_what_is_large_and_made_anew_is_let_go_when_it_was_read() -> None:
    class NormedFourTimes(nn.Graph):
        def build(self, x: flow.Tensor) -> flow.Tensor:
            for _ in range(4):
                x = F.layer_norm(x, (256,)).tanh()
            return x

    graph = NormedFourTimes()
    graph(flow.randn(256, 256)).numpy()
    lines = graph.source().splitlines()
    made = {name for line in lines if "= layer_norm(" in line for name in re.findall(r"\w+", line.split(" =")[0])}
    gone = {name for line in lines if line.strip().startswith("del ") for name in re.findall(r"\w+", line)[1:]}
    assert len(made) == 12 and made - gone == {"layer_norm_3_0"}  # which goes when the function returns
    graph.close()


def damage(step: Step) -> str:
    """Plays a step on a heap whose bytes know which value they hold: the first value that a call would find damaged, in
    the bytes that it reads of it, be it by a view."""
    heaps: dict[tuple[str, int], dict[int, str]] = {}
    results = {r.name: r for call in step.calls for r in call.results}
    root: dict[str, str] = {}
    at: dict[str, torch.Tensor] = {}  # where the elements of each value and view begin

    def places(name: str) -> tuple[dict[int, str], list[int]]:
        r = results[root[name]]
        heap = heaps.setdefault((r.place.kind, r.place.register), {})
        return heap, [start + i for start in at[name].flatten().tolist() for i in range(np.dtype(r.dtype).itemsize)]

    def whole(name: str) -> bool:
        if results[root[name]].place.kind not in ("arena", "register"):
            return True
        heap, found = places(name)
        return all(heap.get(i) == root[name] for i in found)

    for call in step.calls:
        looks = any(r.place.kind == "view" for r in call.results)
        for name in () if looks else call.operands():
            if not whole(name):
                return f"{call.name} reads {name}"
        made = OPS[call.op].kernel(at[call.args[0].name], *call.args[1:]) if looks else ()
        for r, seen in zip(call.results, made if isinstance(made, (tuple, list)) else [made], strict=False):
            root[r.name], at[r.name] = root[r.place.of], seen
        for r in () if looks else call.results:
            size = np.dtype(r.dtype).itemsize
            strides = r.strides or tuple(math.prod(r.shape[d + 1 :]) for d in range(len(r.shape)))
            starts = [r.place.offset + size * sum(map(operator.mul, i, strides)) for i in np.ndindex(*r.shape)]
            root[r.name], at[r.name] = r.name, torch.tensor(starts).view(r.shape)
            if r.place.kind in ("arena", "register"):
                heap, found = places(r.name)
                heap.update(dict.fromkeys(found, r.name))
    left = [r.name for call in step.calls for r in call.results if r.place.kind == "register" and call.op != "read"]
    return next((f"at the end {name}" for name in left if not whole(name)), "")


@settings(max_examples=25)
@given(PROGRAM, st.data())
def test_a_heap_that_knows_its_values_finds_each_whole_or_the_plan_is_refused(steps: list[Program], data: Any) -> None:
    rng = np.random.default_rng(len(steps))
    x, w = (rng.normal(size=shape).astype(np.float32) for shape in ((2, 3, 4), (4,)))
    graph = Trained(steps, w)
    graph.compile(flow.tensor(x))
    (task,) = (t for t in graph.plan.tasks if t.kind == "compute")
    size = {r.id: r.bytes for r in graph.plan.registers}
    reads, writes = ({p.register: size[p.register] for p in ports} for ports in (task.consumes, task.produces))
    verify(task.step, reads, writes)
    assert not damage(task.step)
    placed = [i for i, call in enumerate(task.step.calls) for r in call.results if r.place.kind == "arena"]
    if not placed:
        return
    for _ in range(10):  # elsewhere, it is in somebody's way, or in nobody's
        i = data.draw(st.sampled_from(placed))
        call = task.step.calls[i]
        moved = [
            replace(r, place=replace(r.place, offset=data.draw(st.integers(0, task.step.arena // 64)) * 64))
            for r in call.results
        ]
        calls = (*task.step.calls[:i], replace(call, results=tuple(moved)), *task.step.calls[i + 1 :])
        changed = replace(task.step, calls=calls, arena=2 * task.step.arena)
        if damage(changed):
            with pytest.raises(CompileError):
                verify(changed, reads, writes)
    graph.close()


class Image(nn.Module):
    """Kernels that keep channels innermost, and some that don't."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.each = nn.Conv2d(4, 16, 3, padding=1), nn.Conv2d(16, 16, 3, padding=1, groups=16)
        self.one, self.last = nn.Conv2d(16, 16, 1), nn.Conv2d(32, 8, 3)
        self.norm, self.rows = nn.GroupNorm(2, 16), nn.LayerNorm(16)

    def forward(self, x: Any) -> Any:
        x = F.max_pool2d(F.relu(self.first(x)), 2)
        y = F.gelu(self.rows(self.each(x).permute(0, 2, 3, 1)).permute(0, 3, 1, 2))
        y = x + self.norm(self.one(y)) * flow.sigmoid(y.mean((2, 3), True))
        y = F.silu(self.last(flow.cat([x.tanh(), F.avg_pool2d(y, 3, 1, 1) * 2], 1)))
        return y.mean((2, 3))


@pytest.mark.parametrize("lying", ["weights", "batch", "nothing"])
@pytest.mark.parametrize("size, budget", [(16, 0), (64, 0), (64, 1_900_000)])
def test_channels_lie_innermost_in_a_chain_as_in_the_eager_program(lying: str, size: int, budget: int) -> None:
    flow.manual_seed(0)
    models = Image(), Image()
    models[1].load_state_dict(models[0].state_dict())
    x = flow.randn(2, 4, size, size)
    if lying == "weights":
        models = tuple(m.to(memory_format=flow.channels_last) for m in models)
    elif lying == "batch":
        x = x.contiguous(memory_format=flow.channels_last)
    optimizers = [flow.optim.SGD(m.parameters(), lr=0.1) for m in models]
    graph, optimizer = Trains(models[0], optimizers[0]), optimizers[1]
    if budget:
        graph.config.set_memory_budget(budget)
    for _ in range(2):
        loss = models[1](x).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        assert math.isclose(graph(x).item(), loss.item(), rel_tol=1e-5)
    for p, q in zip(*(m.parameters() for m in models), strict=True):
        np.testing.assert_allclose(p.detach().numpy(), q.detach().numpy(), rtol=1e-4, atol=1e-6)
    calls = {c.op: c.results[0] for c in graph.plan.tasks[1].step.calls if c.results}
    if lying == "weights":
        assert all(calls[op].strides is not None for op in ("relu", "gelu", "gelu_grad", "silu_grad"))
    if size == 64:
        assert parse(str(graph.plan)) == graph.plan
