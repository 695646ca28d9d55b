"""Products of large matrices by oneDNN: what they compute in given memory, and of which tensors."""

from __future__ import annotations

import functools
import importlib
import math
from typing import Any

import pytest
import torch

import weft as flow
from tests.graphs import Calls, Trains
from weft import nn
from weft.ops.linalg import onednn
from weft.ops.linalg.onednn import requests, takes
from weft.plan import scratch
from weft.plan.plan import parse
from weft.plan.scratch import Watch
from weft.plan.usage import usage

pytestmark = pytest.mark.skipif(not torch.backends.mkldnn.is_available(), reason="torch was built without oneDNN")

matmul = importlib.import_module("weft.ops.linalg.matmul")  # the op is its namesake
M, K, N = 300, 200, 150


def forms(rows: int, columns: int) -> dict[str, torch.Tensor]:
    """Matrices of these sizes: in rows, in columns, and with gaps."""
    return {
        "rows": torch.randn(rows, columns),
        "columns": torch.randn(columns, rows).t(),
        "gaps": torch.randn(rows, columns + 7)[:, 3:-4],
    }


@pytest.mark.parametrize("size", [1 << 16, 1 << 30], ids=["slices", "whole"])
@pytest.mark.parametrize("add", [False, True])
@pytest.mark.parametrize("bias", [None, torch.randn(N)], ids=["", "bias"])
def test_it_multiplies_into_given_memory(
    size: int, add: bool, bias: torch.Tensor | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(onednn, "SLICE", (size, size))
    for a in forms(M, K).values():
        for b in (torch.randn(K, N), torch.randn(N, K).t()):
            for out in (torch.ones(M, N), torch.ones(M, 2 * N)[:, N:]):
                calls = requests(out, a, b, bias, add)
                for function, args, keywords in calls:
                    function(*args, **keywords)
                exact = a.double() @ b.double() + (0 if bias is None else bias) + add
                assert torch.allclose(out.double(), exact, atol=1e-4) and (len(calls) == 1) == (size == 1 << 30)


def test_what_it_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onednn, "LEAST", M * K * N)
    monkeypatch.setattr(onednn, "share", lambda threads: 0.0)
    a, b, bias = torch.randn(M, K), torch.randn(K, N), torch.randn(N)
    for x in forms(M, K).values():
        assert takes(x, b) and takes(x, b, bias) and takes(x, torch.randn(N, K).t())
    assert takes(a.to("meta"), b.to("meta"))
    narrow = torch.randn(64, 4 * M).t(), torch.randn(64, 4 * N)
    assert takes(*narrow) and not onednn.writes(*narrow) and onednn.writes(narrow[0].contiguous(), narrow[1])
    assert onednn.writes(a, b) and onednn.writes(forms(M, K)["columns"], b)
    refused: list[Any] = [
        (a[:-1], b), (a, forms(K, N)["gaps"]), (a.double(), b.double()), (a, b[:-1]), (a, b, bias[None]),
        (a, b, bias.double()), (a[0], b), (a, b.clone().requires_grad_()),
        (torch.randn(8, K * M // 8), torch.randn(K * M // 8, 8 * N)),
    ]  # fmt: skip
    assert not any(takes(*given) for given in refused)
    with torch.backends.mkldnn.flags(enabled=False):
        assert not takes(a, b)
    seen = []
    torch.func.vmap(lambda x: seen.append(takes(x, b)) or x)(torch.randn(2, M, K))
    assert seen == [False]


def test_where_it_takes_somewhat_less_deep_products_are_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onednn, "share", lambda threads: 0.95)
    monkeypatch.setattr(onednn, "MANY", M * K * N)
    a, b = torch.randn(M, K), torch.randn(K, N)
    monkeypatch.setattr(onednn, "DEEP", (K, K // 2))
    deep, flat = (a, b), (torch.randn(M, K // 2), torch.randn(K // 2, 2 * N))
    for amd in (False, True):
        monkeypatch.setattr(onednn, "amd", lambda amd=amd: amd)
        assert takes(*deep) == amd
        assert not takes(*flat) and takes(*flat, roomy=True) == amd
        assert not takes(forms(M, K)["columns"], b, roomy=True) and not takes(a[:-1], b, roomy=True)


def test_it_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = torch.randn(256, 256), torch.randn(256, 256)
    for faster in (0.0, math.inf):
        monkeypatch.setattr(onednn, "FASTER", faster)
        monkeypatch.setattr(onednn, "share", functools.cache(onednn.share.__wrapped__))
        with Watch() as watch:
            assert takes(a, b) == (faster > 0)
        assert not watch.most  # what a program's mode sees is the program's


class Two(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(192, 768), nn.Linear(768, 192, bias=False)

    def forward(self, x: flow.Tensor) -> flow.Tensor:
        return self.down(self.up(x).relu()).pow(2).mean()


@pytest.mark.parametrize("taken", [False, True])
def test_gradients_and_a_graph_are_torchs(taken: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matmul, "AVX512", taken)
    monkeypatch.setattr(onednn, "share", lambda threads: 0.0 if taken else 1.0)
    scratch._measured.cache_clear()
    torch.manual_seed(0)
    theirs = torch.nn.Sequential(torch.nn.Linear(192, 768), torch.nn.ReLU(), torch.nn.Linear(768, 192, bias=False))
    ours, graphed = Two(), Two()
    state = {n: p.detach() for n, p in zip(ours.state_dict(), theirs.parameters(), strict=True)}
    ours.load_state_dict(state)
    graphed.load_state_dict(state)
    x = torch.randn(4, 64, 192)

    graph = Trains(graphed, flow.optim.SGD(graphed.parameters(), lr=10.0), lambda y: y)
    optimizers = torch.optim.SGD(theirs.parameters(), lr=10.0), flow.optim.SGD(ours.parameters(), lr=10.0)
    for _ in range(3):
        losses = theirs(x).pow(2).mean(), ours(flow.from_torch(x))
        for loss, optimizer in zip(losses, optimizers, strict=True):
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
        third = graph(flow.from_torch(x)).item()
        assert losses[0].item() == pytest.approx(losses[1].item(), rel=1e-5) == pytest.approx(third, rel=1e-5)
    for p, q, r in zip(theirs.parameters(), ours.parameters(), graphed.parameters(), strict=True):
        assert torch.allclose(p, q.to_torch(), atol=1e-5) and torch.allclose(p, r.to_torch(), atol=1e-5)
    text = str(graph.memory())
    assert ("linear" in text) == taken, text  # what its slices allocate is in the plan


def test_slices_are_larger_where_speed_counts_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matmul, "AVX512", True)
    monkeypatch.setattr(onednn, "share", lambda threads: 0.0)
    scratch._measured.cache_clear()
    layer, x = nn.Linear(192, 768), flow.randn(256, 192)
    told = []
    for asked, budget in ((False, 0), (True, 0), (True, 1)):
        graph = Calls(layer)
        graph.config.enable_inductor(asked)
        if budget:
            graph.config.set_memory_budget(told[-1].total - budget)
        assert torch.allclose(graph(x).to_torch(), layer(x).detach().to_torch(), atol=1e-5)
        assert parse(str(graph.plan)) == graph.plan and (", roomy" in str(graph.plan)) == (asked and not budget)
        told.append(usage(graph.plan))
    part, whole, limited = (u.allocated for u in told)
    assert whole >= 256 * 768 * 4 > max(part, limited)
