"""Values that lie where later ones need them: the same numbers, with fewer copies."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import weft as flow
from tests.graphs import Trains
from weft import nn
from weft.compiler.avoid_copies import arranged
from weft.core.errors import IndexingError

torch = pytest.importorskip("torch")


class Attends(nn.Module):
    """Heads cut from one linear layer, in the two usual ways."""

    def __init__(self, width: int, heads: int, cut: str) -> None:
        super().__init__()
        self.qkv, self.out, self.heads, self.cut = nn.Linear(width, 3 * width), nn.Linear(width, width), heads, cut

    def forward(self, x: Any) -> Any:
        batch, tokens, width = x.shape
        y = self.qkv(x)
        if self.cut == "chunk":
            q, k, v = (p.view(batch, tokens, self.heads, -1).transpose(1, 2) for p in y.chunk(3, -1))
        elif self.cut == "unbind":
            q, k, v = y.view(batch, tokens, 3, self.heads, -1).permute(2, 0, 3, 1, 4).unbind(0)
        else:
            q, k, v = y.view(batch, tokens, self.heads, -1).transpose(1, 2).chunk(3, -1)
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).reshape(batch, tokens, width))


def trains(model: nn.Module) -> Trains:
    return Trains(model, flow.optim.SGD(model.parameters(), lr=0.1))


@pytest.mark.parametrize("cut", ["chunk", "unbind", "heads"])
@pytest.mark.parametrize("batch, tokens, width, heads", [(2, 5, 12, 3), (1, 4, 8, 1), (3, 1, 6, 2)])
def test_attention_trains_as_eagerly(cut: str, batch: int, tokens: int, width: int, heads: int) -> None:
    a, b = Attends(width, heads, cut), Attends(width, heads, cut)
    b.load_state_dict(a.state_dict())
    graph, optimizer = trains(a), flow.optim.SGD(b.parameters(), lr=0.1)
    for seed in range(3):
        x = flow.tensor(np.random.default_rng(seed).normal(size=(batch, tokens, width)).astype(np.float32))
        loss = b(x).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        assert math.isclose(graph(x).item(), loss.item(), rel_tol=1e-5)
    for p, q in zip(a.parameters(), b.parameters(), strict=True):
        np.testing.assert_allclose(p.detach().numpy(), q.detach().numpy(), rtol=1e-4, atol=1e-6)


def test_heads_are_neither_concatenated_nor_turned_round_by_copies() -> None:
    graph = trains(Attends(12, 3, "heads"))
    graph(flow.ones(2, 5, 12)).item()
    source = graph.source()
    assert "cat(" not in source and "= cat(" in str(graph.job)
    assert ".copy_(transpose" not in source and "transpose" in str(graph.job)


def test_a_part_of_several_wholes_lies_in_one_and_is_copied_into_the_others() -> None:
    class Joins(nn.Graph):
        def build(self, x: Any, y: Any) -> Any:
            a, b = (nn.functional.layer_norm(t, (4,)) for t in (x, y))
            return flow.cat([a, b], 0), flow.cat([a, b, a + 1], 1), flow.cat([b, a], 0), flow.cat([a, x], 0)

    rand = np.random.default_rng(0)
    x, y = (flow.tensor(rand.normal(size=(2, 4)).astype(np.float32)) for _ in range(2))
    graph = Joins()
    for got, expected in zip(graph(x, y), graph.build(x, y), strict=True):
        np.testing.assert_allclose(got.numpy(), expected.numpy(), atol=1e-6)


class Widens(nn.Module):
    """Layers that append their channels to what they take: each part is read again by the gradient."""

    def __init__(self, layers: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(4 * n + 4, 4) for n in range(layers))

    def forward(self, x: Any) -> Any:
        x = x * 2
        for layer in self.layers:
            x = flow.cat([x, layer(x.square())], 1)
        return x


def test_parts_of_parts_are_kept_until_their_last_reader() -> None:
    a, b = Widens(3).double(), Widens(3).double()
    b.load_state_dict(a.state_dict())
    graph, optimizer = trains(a), flow.optim.SGD(b.parameters(), lr=0.1)
    x = flow.randn(1, 4, dtype=flow.float64)
    for _ in range(2):
        loss = b(x).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        assert math.isclose(graph(x).item(), loss.item(), rel_tol=1e-9)
    assert "cat(" not in graph.source()


def test_an_order_of_dimensions_in_memory() -> None:
    flat = torch.arange(24)
    y = arranged(lambda shape: flat.view(shape), (2, 3, 4), (1, 2, 0))
    assert y.shape == (2, 3, 4)
    assert y.permute(1, 2, 0).is_contiguous()
    assert arranged(lambda shape: flat.view(shape), (2, 3, 4), None).is_contiguous()


@pytest.mark.parametrize("labels, says", [([0, 7], "7"), ([-3, 1], "-3")])
def test_a_bare_call_that_fails_says_what_the_checked_one_says(labels: list[int], says: str) -> None:
    class Loss(nn.Graph):
        def build(self, x: Any, labels: Any) -> Any:
            return nn.functional.cross_entropy(x, labels)

    x = flow.ones(2, 5)
    with pytest.raises(IndexingError, match=says) as eager:
        nn.functional.cross_entropy(x, flow.tensor(labels))
    with pytest.raises(IndexingError, match=says) as compiled:
        Loss()(x, flow.tensor(labels)).item()
    assert str(compiled.value).split("\n")[0] == str(eager.value).split("\n")[0]
