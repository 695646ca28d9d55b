"""Attention and transformers against torch's: the same weights, masks and inputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import weft as flow
from weft.core.errors import OptionError, ShapeError
from weft.tensor.tensor import Tensor, of_torch

WIDTH, HEADS, BATCH, LENGTH = 8, 2, 3, 5
HIDE_LATER = torch.triu(torch.ones(LENGTH, LENGTH, dtype=torch.bool), 1)
ADDED = torch.linspace(-1, 1, BATCH * HEADS * LENGTH * LENGTH).reshape(BATCH * HEADS, LENGTH, LENGTH)
PADDED = torch.tensor([[False] * LENGTH, [False] * 3 + [True] * 2, [False] * 4 + [True]])

ATTENTIONS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({}, {}),
    ({"bias": False}, {"need_weights": False}),
    ({"batch_first": True}, {"average_attn_weights": False}),
    ({}, {"attn_mask": HIDE_LATER}),
    ({}, {"attn_mask": HIDE_LATER, "need_weights": False}),
    ({}, {"attn_mask": ADDED, "key_padding_mask": PADDED.float()}),
    ({"batch_first": True}, {"key_padding_mask": PADDED, "need_weights": False}),
    ({"kdim": 4, "vdim": 6}, {}),
    ({"add_bias_kv": True, "add_zero_attn": True}, {"attn_mask": HIDE_LATER.float()}),
]


def given(value: Any) -> Any:
    return of_torch(value.clone()) if isinstance(value, torch.Tensor) else value


def agree(ours: flow.nn.Module, theirs: torch.nn.Module, inputs: list[torch.Tensor], options: dict[str, Any]) -> None:
    assert list(ours.state_dict()) == list(theirs.state_dict())
    for p in theirs.parameters():
        p.data.uniform_(-0.5, 0.5)
    ours.load_state_dict({k: of_torch(v.clone()) for k, v in theirs.state_dict().items()})
    x = [t.requires_grad_() for t in inputs]
    y = [of_torch(t.detach().clone()).requires_grad_() for t in inputs]
    expected, got = theirs(*x, **options), ours(*y, **{k: given(v) for k, v in options.items()})
    expected, got = (r if isinstance(r, tuple) else (r,) for r in (expected, got))
    assert [e is None for e in expected] == [g is None for g in got]
    for e, g in zip(expected, got, strict=True):
        if e is not None:
            torch.testing.assert_close(g.detach().to_torch(), e.detach(), rtol=1e-4, atol=1e-5)
    gradient = torch.randn_like(expected[0])
    expected[0].backward(gradient)
    got[0].backward(of_torch(gradient))
    for p, q in [*zip(theirs.parameters(), ours.parameters(), strict=True), *zip(x, y, strict=True)]:
        assert p.grad is not None and q.grad is not None
        torch.testing.assert_close(q.grad.to_torch(), p.grad, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize(("made", "called"), ATTENTIONS)
def test_attention(made: dict[str, Any], called: dict[str, Any]) -> None:
    torch.manual_seed(0)
    widths = WIDTH, made.get("kdim", WIDTH), made.get("vdim", WIDTH)
    lead = (BATCH, LENGTH) if made.get("batch_first") else (LENGTH, BATCH)
    theirs, ours = (m.nn.MultiheadAttention(WIDTH, HEADS, **made) for m in (torch, flow))
    agree(ours, theirs, [torch.randn(*lead, w) for w in widths], called)


def test_attention_to_oneself_and_without_a_batch() -> None:
    theirs, ours = (m.nn.MultiheadAttention(WIDTH, HEADS) for m in (torch, flow))
    agree(ours, theirs, [torch.randn(LENGTH, WIDTH) for _ in range(3)], {"attn_mask": HIDE_LATER})
    x = torch.randn(LENGTH, BATCH, WIDTH)
    expected, got = theirs(x, x, x)[0], ours(y := of_torch(x), y, y)[0]
    torch.testing.assert_close(got.detach().to_torch(), expected.detach(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("options", [
    {}, {"norm_first": True, "activation": "gelu"}, {"batch_first": True, "bias": False},
])  # fmt: skip
@pytest.mark.parametrize("masked", [False, True])
def test_layers(options: dict[str, Any], masked: bool) -> None:
    made = {"dim_feedforward": 16, "dropout": 0.0, **options}
    lead = (BATCH, LENGTH) if options.get("batch_first") else (LENGTH, BATCH)
    x, memory = torch.randn(*lead, WIDTH), torch.randn(*lead, WIDTH)
    for name, inputs, masks in (
        ("TransformerEncoderLayer", [x], {"src_mask": HIDE_LATER, "src_key_padding_mask": PADDED}),
        ("TransformerDecoderLayer", [x.clone(), memory], {"tgt_mask": HIDE_LATER, "memory_key_padding_mask": PADDED}),
    ):
        theirs, ours = (getattr(m.nn, name)(WIDTH, HEADS, **made) for m in (torch, flow))
        agree(ours, theirs, inputs, masks if masked else {})


def test_a_transformer() -> None:
    theirs, ours = (m.nn.Transformer(WIDTH, HEADS, 2, 2, 16, 0.0) for m in (torch, flow))
    mask = torch.nn.Transformer.generate_square_subsequent_mask(4)
    assert flow.nn.Transformer.generate_square_subsequent_mask(4).to_torch().equal(mask)
    agree(ours, theirs, [torch.randn(LENGTH, BATCH, WIDTH), torch.randn(4, BATCH, WIDTH)], {"tgt_mask": mask})


def test_an_encoder_with_dropout_trains() -> None:
    layer = flow.nn.TransformerEncoderLayer(WIDTH, HEADS, 16, 0.5)
    encoder = flow.nn.TransformerEncoder(layer, 2, flow.nn.LayerNorm(WIDTH))
    x = flow.randn(LENGTH, BATCH, WIDTH)
    assert not encoder(x).allclose(encoder(x))
    encoder.eval()
    assert encoder(x).allclose(encoder(x))
    first, second = (encoder.layers[i].linear1.weight for i in (0, 1))
    assert first is not second and first.equal(second), "layers begin as copies of the one given"


def refused(run: Callable[[], Tensor]) -> None:
    with pytest.raises(ShapeError, match=r"attn_mask has shape \[4, 4\]; it should be \[5, 5\]"):
        run()


def test_what_cannot_be_is_said() -> None:
    with pytest.raises(OptionError, match="divisible"):
        flow.nn.MultiheadAttention(8, 3)
    with pytest.raises(OptionError, match="'relu', 'gelu' or a function"):
        flow.nn.TransformerEncoderLayer(8, 2, activation="sine")
    x, attend = flow.ones(LENGTH, BATCH, WIDTH), flow.nn.MultiheadAttention(WIDTH, HEADS)
    refused(lambda: attend(x, x, x, attn_mask=flow.zeros(4, 4)))
    with pytest.raises(OptionError, match="is_causal"):
        attend(x, x, x, is_causal=True)


@pytest.mark.parametrize("apart", [False, True])
def test_attention_of_weights_that_are_given(apart: bool) -> None:
    """As some models call it for a single query over an image."""
    torch.manual_seed(0)
    layer = torch.nn.MultiheadAttention(8, 2, kdim=6 if apart else None, vdim=6 if apart else None, add_bias_kv=True)
    query, key = torch.randn(3, 2, 8), torch.randn(5, 2, 6 if apart else 8)
    mask = torch.zeros(2, 5, dtype=torch.bool)
    mask[0, 3:] = True
    names = ("in_proj_weight", "in_proj_bias", "bias_k", "bias_v", "q_proj_weight", "k_proj_weight", "v_proj_weight")
    found = []
    for m, of in ((flow, flow.tensor), (torch, lambda t: t)):
        given: Any = {n: None if getattr(layer, n) is None else of(getattr(layer, n).detach()) for n in names}
        found += m.nn.functional.multi_head_attention_forward(
            of(query), of(key), of(key), 8, 2, add_zero_attn=True, dropout_p=0.0, key_padding_mask=of(mask),
            out_proj_weight=of(layer.out_proj.weight.detach()), out_proj_bias=of(layer.out_proj.bias.detach()),
            training=False, use_separate_proj_weight=apart, **given,
        )  # fmt: skip
    torch.testing.assert_close(found[0].to_torch(), found[2])
    torch.testing.assert_close(found[1].to_torch(), found[3])


def test_a_hint_at_a_causal_mask_needs_the_mask() -> None:
    x, mask = flow.ones(3, 2, 8), flow.nn.Transformer.generate_square_subsequent_mask(3)
    layer, further = flow.nn.TransformerEncoderLayer(8, 2, 16, 0.0), flow.nn.TransformerDecoderLayer(8, 2, 16, 0.0)
    whole = flow.nn.Transformer(8, 2, 1, 1, 16, 0.0)
    for call in (
        lambda: layer(x, is_causal=True), lambda: flow.nn.TransformerEncoder(layer, 1)(x, is_causal=True),
        lambda: further(x, x, tgt_is_causal=True), lambda: further(x, x, memory_is_causal=True),
        lambda: flow.nn.TransformerDecoder(further, 1)(x, x, tgt_is_causal=True),
        lambda: whole(x, x, src_is_causal=True), lambda: whole(x, x, tgt_is_causal=True),
    ):  # fmt: skip
        with pytest.raises(OptionError, match="attn_mask"):
            call()
    assert layer(x, mask, is_causal=True).equal(layer(x, mask))
    assert whole(x, x, tgt_mask=mask, tgt_is_causal=True).equal(whole(x, x, tgt_mask=mask))
