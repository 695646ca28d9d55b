"""Attention that keeps its probabilities for its gradient trains as the eager program does, and only where it may."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import weft as flow
from tests.compiler.test_fusion import Blank
from tests.compiler.test_memory_budget import held
from weft import nn
from weft.compiler import fusion, inductor
from weft.plan import parse

KEEPS = {"causal_attention", "causal_attention_grad"}
LEFT = {"scaled_dot_product_attention", "attention_grad"}
SHAPE = (4, 130, 128)  # two heads of width 64, and three blocks


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Inductor is asked, and nothing is compiled by it."""
    monkeypatch.setattr(inductor, "missing", lambda: "")
    monkeypatch.setattr(fusion, "fused", lambda nodes, *_: list(nodes))


class Attends(nn.Module):
    def __init__(self, how: str = "", split: int | None = None) -> None:
        super().__init__()
        flow.manual_seed(0)
        self.qkv, self.out, self.how, self.split = nn.Linear(128, 384), nn.Linear(128, 128), how, split

    def forward(self, x: Any) -> Any:
        b, t, d = x.shape
        q, k, v = self.qkv(x).reshape(b, t, 2, -1).transpose(1, 2).chunk(3, -1)
        if self.split is not None and x.is_global:
            q, k, v = (p.to_global(sbp=flow.sbp.split(self.split)) for p in (q, k, v))
        mask = flow.zeros(t, t, dtype=x.dtype) if self.how == "mask" else None
        y = nn.functional.scaled_dot_product_attention(q, k, v, mask, is_causal=mask is None)
        return x + self.out(y.transpose(1, 2).reshape(b, t, d))


def step(model: Any, x: Any) -> Any:
    with flow.autocast("cpu", dtype=flow.bfloat16, enabled=model[0].how == "autocast"):
        loss = model(x).float().square().mean()
    if model[0].how != "forward":
        loss.backward()
    return loss


class Train(nn.Graph):
    def __init__(self, model: Any, micro_batches: int = 1) -> None:
        super().__init__()
        self.model = model
        if model[0].how != "forward":
            self.add_optimizer(flow.optim.SGD(model.parameters(), lr=0.1))
        self.config.enable_inductor()
        self.config.set_gradient_accumulation_steps(micro_batches)

    def build(self, x: Any) -> Any:
        return step(self.model, x)


def attention(graph: Any) -> set[str]:
    return {c.op for t in graph.plan.tasks if t.step for c in t.step.calls if "attention" in c.op}


def trains_alike(graph: Any, given: Any, model: Any, x: Any, tolerance: float = 1e-5) -> None:
    optimizer = flow.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        found, expected = graph(given), step(model, x)
        optimizer.step()
        optimizer.zero_grad()
        np.testing.assert_allclose(found.numpy().mean(), expected.numpy(), rtol=tolerance)
    for p, q in zip(graph.model.parameters(), model.parameters(), strict=True):
        np.testing.assert_allclose(p.detach().numpy(), q.detach().numpy(), rtol=tolerance, atol=tolerance)


def models(how: str = "", dtype: Any = flow.float32, split: int | None = None) -> list[Any]:
    return [nn.Sequential(Attends(how, split), Attends(how, split)).to(dtype) for _ in range(2)]


@pytest.mark.parametrize("micro_batches, dtype", [(1, flow.float32), (2, flow.float32), (1, flow.float64)])
def test_it_trains_as_the_eager_program(asked: None, micro_batches: int, dtype: Any) -> None:
    x = flow.randn(*SHAPE, dtype=dtype)
    a, b = models(dtype=dtype)
    graph = Train(a, micro_batches)
    trains_alike(graph, x, b, x)
    assert attention(graph) == KEEPS
    assert parse(str(graph.plan)) == graph.plan


@pytest.mark.parametrize("how", ["mask", "again", "autocast", "forward", "short", "not asked"])
def test_others_are_left(asked: None, how: str) -> None:
    x = flow.randn(2, 64 if how == "short" else 128, 128)
    a, b = models(how)
    graph = Train(a)
    graph.config.enable_inductor(how != "not asked")
    if how == "again":
        graph.model.to(nn.graph.GraphModule).activation_checkpointing = True
    if how == "forward":
        with flow.no_grad():
            np.testing.assert_allclose(graph(x).numpy(), step(b, x).numpy(), rtol=1e-5)
    else:
        trains_alike(graph, x, b, x, 2e-2 if how == "autocast" else 1e-5)
    assert attention(graph) == (LEFT - {"attention_grad"} if how == "forward" else LEFT)


def test_it_gives_way_to_a_budget(asked: None) -> None:
    x = flow.randn(*SHAPE)
    (a, b), (c, _) = models(), models()
    whole, ample = Train(a), Train(c)
    whole.compile(x)
    ample.config.set_memory_budget(held(whole))
    ample.compile(x)
    assert attention(whole) == attention(ample) == KEEPS
    tight = Train(a)
    tight.config.set_memory_budget(held(whole) - 1)
    trains_alike(tight, x, b, x)
    assert attention(tight) == LEFT and not tight.job.reasons  # nothing is computed again


def test_saved_and_loaded(asked: None, tmp_path: Path) -> None:
    x, loaded = flow.randn(*SHAPE), Blank()
    graph = Train(models()[0])
    graph(x)
    flow.save(graph.runtime_state_dict(), tmp_path / "state")
    loaded.load_runtime_state_dict(flow.load(tmp_path / "state"))
    assert attention(loaded) == KEEPS
    assert [loaded(x).item() for _ in range(3)] == [graph(x).item() for _ in range(3)]


def program(split: str) -> None:
    placement = flow.placement("cpu", [0, 1])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(inductor, "missing", lambda: "")
        patch.setattr(fusion, "fused", lambda nodes, *_: list(nodes))
        flow.set_num_threads(1)
        a, b = models(split=int(split))
        flow.manual_seed(1)
        x = flow.randn(*SHAPE)
        graph = Train(a.to_global(placement, flow.sbp.broadcast))
        trains_alike(graph, x.to_global(placement, flow.sbp.broadcast), b, x)
        assert attention(graph) == KEEPS
        kept = [
            r.shape for t in graph.plan.tasks if t.step for c in t.step.calls for r in c.results if "kept" in r.name
        ]
        halves = [n // 2 if int(split) == i else n for i, n in enumerate((4, 2))]
        assert kept == [(*halves, 2 * 2 + 64 * 66 + 64 * 130)] * 2


@pytest.mark.parametrize("split", ["0", "1"])
def test_by_batch_and_by_heads(world: Any, split: str) -> None:
    world("program", 2, "shm", split).well()
