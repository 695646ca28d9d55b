"""flex_attention of Weft, with torch's dense formula and its tape as the oracle."""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.attention.flex_attention as theirs

import weft as flow
from tests.ranks import on
from weft.core.errors import ArgumentError, WeftError

ours: Any = importlib.import_module("weft.nn.attention.flex_attention")


@pytest.fixture
def dense(monkeypatch: pytest.MonkeyPatch) -> None:
    """Torch's function by its formula, uncompiled, which has gradients and sums on a CPU, too."""
    formula = sys.modules["torch._higher_order_ops.flex_attention"].math_attention
    monkeypatch.setattr(theirs, "flex_attention_hop", formula)
    monkeypatch.setattr(theirs, "_apply_kernel_options", lambda *_: {})
    monkeypatch.setattr(theirs, "_validate_device", lambda *_: None)
    monkeypatch.setattr(theirs, "_FLEX_ATTENTION_DISABLE_COMPILE_DEBUG", True)


def causal(b: Any, h: Any, q: Any, k: Any) -> Any:
    return q >= k


def made(lib: Any, flex: ModuleType, score: str, mask: str, heads: int) -> list[Any]:
    """The output, its statistics, the gradients, and the blocks of the mask."""
    rand = np.random.default_rng(0)

    def leaf(*shape: int) -> Any:
        return lib.tensor(rand.normal(size=shape).astype("float32"), requires_grad=True)

    q, k, v, bias = leaf(2, 4, 32, 8), leaf(2, heads, 32, 8), leaf(2, heads, 32, 6), leaf(4, 63)
    slopes, document, lengths = lib.tensor([0.5, 0.25, 0.125, 0.1]), lib.arange(32) // 10, lib.tensor([20, 32])
    scores: dict[str, Any] = {
        "none": None,
        "alibi": lambda s, b, h, q, k: s + slopes[h] * (k - q),
        "relative": lambda s, b, h, q, k: s + bias[h, q - k + 31],
        "softcap": lambda s, b, h, q, k: 2 * lib.tanh(s / 2),
        "causal": lambda s, b, h, q, k: lib.where(q >= k, s, -float("inf")),
    }
    masks: dict[str, Any] = {
        "causal": causal,
        "window": flex.and_masks(causal, lambda b, h, q, k: q - k <= 7),
        "documents": flex.or_masks(lambda b, h, q, k: document[q] == document[k], lambda b, h, q, k: k == 0),
        "padded": lambda b, h, q, k: k < lengths[b],
        "rows of nothing": lambda b, h, q, k: (q >= k) & (q > 3),
    }
    seen = mask != "none" and flex.create_block_mask(masks[mask], 2, None, 32, 32, device="cpu", BLOCK_SIZE=16)
    y, aux = flex.flex_attention(
        q, k, v, scores[score], seen or None, enable_gqa=heads < 4, return_aux=flex.AuxRequest(True, True)
    )
    (y * y).sum().backward()
    found = [y, aux.lse, aux.max_scores, q.grad, k.grad, v.grad, *([bias.grad] if score == "relative" else [])]
    if seen:
        found += [seen.to_dense(), seen.kv_num_blocks, seen.kv_indices, seen.full_kv_num_blocks, seen.q_indices]
        assert (seen.sparsity(), str(seen)) == BLOCKS.setdefault(mask, (seen.sparsity(), str(seen)))
    return [t.detach().numpy() for t in found]


BLOCKS: dict[str, Any] = {}


@pytest.mark.usefixtures("dense")
@pytest.mark.parametrize("score", ["none", "alibi", "relative", "softcap", "causal"])
@pytest.mark.parametrize("mask", ["none", "causal", "window", "documents", "padded", "rows of nothing"])
def test_values_gradients_and_blocks_are_torchs(score: str, mask: str) -> None:
    heads = 2 if mask == "causal" else 4
    for mine, expected in zip(
        made(flow, ours, score, mask, heads), made(torch, theirs, score, mask, heads), strict=True
    ):
        np.testing.assert_allclose(mine, expected, rtol=1e-4, atol=1e-5)


def attended(q: Any) -> Any:
    seen = ours.create_block_mask(causal, None, None, 8, 8, device="cpu", BLOCK_SIZE=4)
    return ours.flex_attention(q, q, q, lambda s, b, h, i, j: s * 2 + (j - i), seen)


def test_a_graph_gives_what_eager_calls_give() -> None:
    class Graph(flow.nn.Graph):
        def build(self, q: Any) -> Any:
            return attended(q)

    q = flow.randn(2, 2, 8, 4)
    np.testing.assert_allclose(Graph()(q).numpy(), attended(q).numpy(), rtol=1e-5, atol=1e-6)


@on(2)
def test_global_tensors_keep_their_layout() -> None:
    flow.manual_seed(0)
    place, everywhere = flow.placement("cpu", ranks=[0, 1]), flow.sbp.broadcast
    x, bias = flow.randn(2, 4, 8, 4, requires_grad=True), flow.randn(4, requires_grad=True)
    document = flow.arange(8) // 3
    seen = ours.create_block_mask(
        lambda b, h, i, j: (i >= j) & (document[i] == document[j]), None, None, 8, 8, device="cpu", BLOCK_SIZE=4
    )

    def call(x: Any, bias: Any) -> Any:
        return ours.flex_attention(x, x, x, lambda s, b, h, i, j: s + bias[h] * (j - i), seen)

    class Graph(flow.nn.Graph):
        def build(self, x: Any, bias: Any) -> Any:
            return call(x, bias)

    expected = call(x, bias)
    expected.square().sum().backward()
    for sbp in (everywhere, flow.sbp.split(0), flow.sbp.split(1), flow.sbp.split(2)):
        parted = x.detach().to_global(place, everywhere).to_global(place, sbp).requires_grad_()
        slopes = bias.detach().to_global(place, everywhere).requires_grad_()
        got = call(parted, slopes)
        assert got.sbp == (sbp,)
        got.square().sum().backward()
        pairs: Any = (got, expected), (parted.grad, x.grad), (slopes.grad, bias.grad)
        for mine, whole in pairs:
            np.testing.assert_allclose(mine.numpy(), whole.numpy(), rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(Graph()(parted.detach(), slopes.detach()).numpy(), got.numpy(), atol=1e-6)


def test_a_function_that_must_be_called_for_each_score_is_refused() -> None:
    q, vectors, table = flow.randn(2, 8, 8, 4), flow.randn(8, 3), flow.randn(8, 8)
    for score in (lambda s, b, h, i, j: s + (vectors[i] * vectors[j]).sum(), lambda s, b, h, i, j: s + table[h][i]):
        with pytest.raises(ArgumentError, match=r"table\[b, q_idx\] for table\[b\]\[q_idx\]"):
            ours.flex_attention(q, q, q, score)

        class Graph(flow.nn.Graph):
            def build(self, q: Any, score: Any = score) -> Any:
                return ours.flex_attention(q, q, q, score)

        with pytest.raises(WeftError, match=r"table\[b, q_idx\] for table\[b\]\[q_idx\]"):
            Graph()(q).numpy()
    ours.flex_attention(q, q, q, lambda s, b, h, i, j: s + (vectors[i] * vectors[j]).sum(-1) + table[h, i])


def test_a_function_may_write_into_its_scores_and_must_give_a_tensor() -> None:
    q = torch.randn(1, 2, 8, 4)
    mine = ours.flex_attention(flow.tensor(q.numpy()), *[flow.tensor(q.numpy())] * 2, lambda s, *_: s.mul_(2))
    expected = torch.nn.functional.scaled_dot_product_attention(q, q, q, scale=1.0)
    torch.testing.assert_close(mine.to_torch(), expected, rtol=1e-4, atol=1e-5)
    for wrong in (0, None, True):
        with pytest.raises(ArgumentError, match="must only return Tensors"):
            ours.flex_attention(mine, mine, mine, lambda *_, wrong=wrong: wrong)


@pytest.mark.parametrize("shape", [(0, 2, 8, 4), (1, 2, 0, 4)])
def test_nothing_attends_to_nothing(shape: tuple[int, ...]) -> None:
    q, k = torch.randn(shape), torch.randn(shape[0], 2, 8, 4)
    mine = ours.flex_attention(*(flow.tensor(t.numpy()) for t in (q, k, k)), lambda s, *_: s * 2)
    assert tuple(mine.shape) == tuple(theirs.flex_attention(q, k, k, score_mod=lambda s, *_: s * 2).shape) == shape


def test_a_program_of_torchs_names_finds_it() -> None:
    with flow.mock_torch.enable():
        from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    assert flex_attention is ours.flex_attention and create_block_mask is ours.create_block_mask
