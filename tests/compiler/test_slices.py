"""Nodes computed in slices: the same training, for any model, in less memory."""

from __future__ import annotations

import copy
import gc
import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import weft as flow
from bench.memory import peak
from tests.plan.test_usage import train
from weft import nn
from weft.compiler.options import Options
from weft.compiler.passes import slices
from weft.core.errors import CompileError
from weft.graph import budget
from weft.job.job import Job
from weft.job.text import parse, show
from weft.plan.usage import usage

F = nn.functional


class Perceptron(nn.Module):
    """With a dropout, and a layer that is used twice."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(32), nn.Linear(32, 128), nn.Linear(128, 32)

    def forward(self, x: Any) -> Any:
        for _ in range(2):
            x = x + F.dropout(self.down(F.gelu(self.up(self.norm(x)))), 0.1)
        return x


class Attention(nn.Module):
    """One embedding for what goes in and what comes out."""

    def __init__(self, width: int = 32, heads: int = 4) -> None:
        super().__init__()
        self.heads = heads
        self.token, self.norm = nn.Embedding(64, width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width)

    def forward(self, ids: Any) -> Any:
        x = self.token(ids)
        for _ in range(2):
            b, t, d = x.shape
            q, k, v = self.qkv(self.norm(x)).reshape(b, t, self.heads, 3 * d // self.heads).transpose(1, 2).chunk(3, -1)
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(y.transpose(1, 2).reshape(b, t, d))
        return flow.matmul(x, self.token.weight.t())


class Images(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm = nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8)
        self.second, self.head = nn.Conv2d(8, 8, 3, padding=1), nn.Linear(8, 4)

    def forward(self, x: Any) -> Any:
        return self.head(F.max_pool2d(F.relu(self.second(F.relu(self.norm(self.first(x))))), 2).mean((2, 3)))


class Empty(Perceptron):
    def forward(self, x: Any) -> Any:
        return flow.cat([super().forward(x), flow.relu(x[:0]) * 2])


CASES: dict[str, tuple[Callable[[], nn.Module], Callable[[], Any], int]] = {
    "perceptron": (Perceptron, lambda: flow.randn(512, 32), 1),
    "batches of several dimensions": (Perceptron, lambda: flow.randn(4, 128, 32), 1),
    "micro-batches": (Perceptron, lambda: flow.randn(1024, 32), 2),
    "attention": (Attention, lambda: flow.randint(0, 64, (4, 64)), 1),
    "convolutions": (Images, lambda: flow.randn(8, 3, 16, 16), 1),
    "empty values": (Empty, lambda: flow.randn(512, 32), 1),
    "a batch of prime size": (Perceptron, lambda: flow.randn(509, 32), 1),
}


@pytest.fixture
def as_many_as_help(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the budget, compute in slices all that lowers the peak."""

    def tries(job: Job, options: Options, *_: Any) -> Iterator[Options]:
        yield min(budget._fixed(job, options)[:-1], key=lambda tried: tried.slices_budget)

    monkeypatch.setattr(budget, "_tries", tries)
    monkeypatch.setattr(budget, "_most", lambda lowered: 0)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.usefixtures("as_many_as_help")
def test_they_change_no_value(case: str) -> None:
    make, batch, steps = CASES[case]
    flow.manual_seed(3)
    plain, x = make(), batch()
    twin = copy.deepcopy(plain)
    whole, sliced = (train(m, steps, flow.optim.AdamW) for m in (plain, twin))
    sliced.config.set_memory_budget(1)
    losses = []
    for graph in (whole, sliced):
        flow.manual_seed(5)
        losses.append([graph(x).mean().item() for _ in range(3)])
    assert losses[0] == pytest.approx(losses[1], rel=1e-4)
    for (name, p), (_, q) in zip(plain.state_dict().items(), twin.state_dict().items(), strict=True):
        np.testing.assert_allclose(p.numpy(), q.numpy(), rtol=1e-3, atol=1e-4, err_msg=name)
    assert usage(sliced.plan).total < usage(whole.plan).total
    assert any("slices" in reason for reason in sliced.job.reasons)


@pytest.mark.usefixtures("as_many_as_help")
def test_gradients_of_heads_are_written_in_slices_where_they_are_read() -> None:
    """Neither put together, nor turned round, by copies."""
    graph = train(Attention(), 1, flow.optim.AdamW)
    graph.config.set_memory_budget(1)
    graph(flow.randint(0, 64, (4, 64)))
    assert "%attention_grad:0 = box.joined((%attention_grad:0.0, " in str(graph.plan)
    assert "%cat = box.joined((%attention_grad:0, %attention_grad:1, " in str(graph.plan)
    assert "cat(" not in graph.source() and ".copy_(transpose" not in graph.source()


@pytest.mark.usefixtures("as_many_as_help")
def test_kernels_that_work_in_parts_take_smaller_ones() -> None:
    """Slices don't lower what these allocate."""
    ids, losses, allocated = flow.randint(0, 64, (4, 128)), [], []
    for tight in (False, True):
        flow.manual_seed(3)
        graph = train(Attention(256, 8), 1, flow.optim.SGD)
        if tight:
            graph.config.set_memory_budget(1)
        losses.append([graph(ids).mean().item() for _ in range(2)])
        spared = [n.args[-1] for n in graph.job.nodes if n.op == "attention_grad"]
        assert spared and all(spared) == tight
        allocated.append(usage(graph.plan).allocated)
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)
    assert allocated[1] < 0.6 * allocated[0]


LINEAR = """job a
%x = input() : float32[8,256] cpu:0
%w = variable() : float32[512,256] cpu:0
%u = linear(%x, %w, None) : float32[8,512] cpu:0
%g = gelu(%u, 'none') : float32[8,512] cpu:0
%y = linear_weight_grad(%g, %x) : float32[512,256] cpu:0
%v = matmul(%g, %w) : float32[8,256] cpu:0
out: output(%y)
out-1: output(%v)
"""


def test_a_job() -> None:
    """What is split goes over parts of it; what is a sum is added up."""
    job = parse(LINEAR.replace("[8,", "[4096,"))
    slices.run(job, Options(memory_budget=1, slices_budget=1))
    job.verify()
    ops = [n.op for n in job.nodes]
    count = ops.count("gelu")
    assert count > 1 and ops.count("narrow") >= count
    assert (ops.count("linear_weight_grad"), ops.count("add_linear_weight_grad")) == (1, count - 1)
    assert "slices" in job.reasons[0] and show(parse(show(job))) == show(job)


def test_values_of_several_ranks_are_left_alone() -> None:
    text = LINEAR.replace("cpu:0", "cpu:[0,1] (B)")
    job = parse(text)
    assert not slices.applies(job)
    slices.run(job, Options(memory_budget=1, slices_budget=1))
    assert show(job) == show(parse(text))


def test_the_least_is_less_with_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """And it can be asked for, and is what a launch takes."""
    flow.manual_seed(3)
    model, x = Perceptron(), flow.randn(2048, 32)

    def least() -> int:
        graph = train(model, 1, flow.optim.AdamW)
        graph.config.set_memory_budget(10_000)
        with pytest.raises(CompileError, match="can't be met") as found:
            graph.compile(x)
        return int(re.findall(r"set_memory_budget\((\d+)\)", str(found.value))[0])

    with_them = least()
    monkeypatch.setattr(slices, "applies", lambda job: False)
    assert with_them < 0.8 * least()
    monkeypatch.undo()
    graph = train(model, 1, flow.optim.AdamW)
    graph.config.set_memory_budget(with_them)

    def step() -> None:
        graph.compile(x)
        graph.running.brief = True  # so that it runs on this thread, the one that is watched
        graph(x).numpy()

    gc.collect()
    measured = peak(step, steps=2) - 2 * sum(p.numel() * 4 for p in model.parameters())  # the optimizer's states
    used = usage(graph.plan)
    assert used.total + used.variables <= with_them
    assert measured == pytest.approx(used.total, rel=0.05, abs=20_000), graph.memory()
