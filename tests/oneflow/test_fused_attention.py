"""OneFlow's fused attention and rotary embeddings in their layouts, against torch's attention and complex numbers."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import torch
import torch.nn.functional as TF

import weft as flow
from tests.functional.test_values import agree, rand
from tests.ranks import on

Q, K, V = rand(2, 5, 3, 8), rand(2, 7, 3, 8), rand(2, 7, 3, 8)  # batch, sequence, heads, width
PACKED = {"HK)": 1, "H2K)": 2, "H3K)": 3}
fused: Any = flow._C.fused_multi_head_attention_inference_v2
rotary: Any = flow._C.fused_apply_rotary_emb


def laid(tensors: list[torch.Tensor], layout: str, which: int) -> torch.Tensor:
    """One of the tensors, or the last few side by side, in a layout."""
    bm, _, hk = layout.partition("(")
    if not hk:
        return tensors[which].permute([("BMHK").index(c) for c in layout]).contiguous()
    n = PACKED[hk]
    x = (tensors[which] if n == 1 else torch.stack(tensors[3 - n :], -2)).flatten(2)
    return (x if bm == "BM" else x.transpose(0, 1)).contiguous()


def attended(q: Any, k: Any, v: Any, mask: Any = None) -> Any:
    return TF.scaled_dot_product_attention(*(t.transpose(1, 2) for t in (q, k, v)), attn_mask=mask).transpose(1, 2)


@pytest.mark.parametrize("query", ["BM(HK)", "MB(HK)", "BHMK", "MBHK"])
@pytest.mark.parametrize("key", ["BM(HK)", "BM(H2K)", "MB(H2K)", "BMHK"])
def test_attention_in_every_layout(query: str, key: str) -> None:
    for value, output in itertools.product(("MB(HK)", "BM(H2K)"), ("BM(HK)", "MB(HK)", "BHMK")):
        for kind, shift in (("none", None), ("causal_from_top_left", 1), ("causal_from_bottom_right", 3)):
            mask = None if shift is None else torch.ones(5, 7, dtype=torch.bool).tril(shift)
            got = fused(
                flow.tensor(laid([Q, K, V], query, 0)), query, 8, key=flow.tensor(laid([Q, K, V], key, 1)),
                key_layout=key, value=flow.tensor(laid([Q, K, V], value, 2)), value_layout=value, output_layout=output,
                attn_mask_type=kind, causal_diagonal_offset=0 if shift is None else 1,
            )  # fmt: skip
            torch.testing.assert_close(got.to_torch(), laid([attended(Q, K, V, mask)], output, 0))


@pytest.mark.parametrize("layout", ["BM(H3K)", "MB(H3K)"])
def test_one_tensor_holds_query_key_and_value(layout: str) -> None:
    def whole(x: Any) -> Any:
        parts = x.unflatten(2, (3, 3, 8)).unbind(3)
        y = attended(*(t if layout[:2] == "BM" else t.transpose(0, 1) for t in parts)).flatten(2)
        return y if layout[:2] == "BM" else y.transpose(0, 1)

    agree(whole, lambda x: fused(x, layout, 8, output_layout=f"{layout[:2]}(HK)"), (rand(2, 5, 72),))


def test_attention_with_a_bias_that_is_padded() -> None:
    def theirs(q: Any, k: Any, v: Any, bias: Any) -> Any:
        return attended(*(t.unflatten(2, (3, 8)) for t in (q, k, v)), bias[..., :7]).flatten(2)

    flat = (Q.flatten(2), K.flatten(2), V.flatten(2))
    old = flow._C.fused_multi_head_attention_inference
    agree(theirs, lambda q, k, v, bias: old(q, k, v, 3, attn_bias=bias), (*flat, rand(3, 1, 8)))
    low = torch.zeros(5, 7).masked_fill(~torch.ones(5, 7, dtype=torch.bool).tril(), -torch.inf)
    x = [flow.tensor(t) for t in flat]
    torch.testing.assert_close(old(*x, 3, True).to_torch(), theirs(*flat, low.double()))
    part = old(x[0], x[1], x[2], 1, False, 8, 16, 8, 16, 8, 16).to_torch()
    torch.testing.assert_close(part, attended(Q[:, :, 1:2], K[:, :, 1:2], V[:, :, 1:2]).flatten(2))


def test_keys_and_values_join_those_of_the_past() -> None:
    for past, new in itertools.product(("MB(HK)", "BHMK"), ("BM(HK)", "BM(H2K)")):
        join: Any = flow._C.fused_attention_concat_past_key_value
        before = {
            "past_key": flow.tensor(laid([Q, Q, Q], past, 1)), "past_value": flow.tensor(laid([Q, Q, Q], past, 2))
        }  # fmt: skip
        given = {
            "key": flow.tensor(laid([K, K, V], new, 1)), "key_layout": new, "key_head_size": 8,
            "value": flow.tensor(laid([K, K, V], new, 2)), "value_layout": new,
        }  # fmt: skip
        keys, values = join(**before, past_key_layout=past, past_value_layout=past, **given)
        torch.testing.assert_close(keys.to_torch(), laid([torch.cat([Q, K], 1)], past, 0))
        torch.testing.assert_close(values.to_torch(), laid([torch.cat([Q, V], 1)], past, 0))
        keys, _ = join(past_key_layout=past, past_value_layout=past, **given)
        torch.testing.assert_close(keys.to_torch(), laid([K], past, 0))


def turned(x: torch.Tensor, positions: torch.Tensor, mode: str) -> torch.Tensor:
    """Pairs of elements as complex numbers, times numbers of their angles; x is BMHK, positions (batch, sequence)."""
    half = x.shape[-1] // 2
    pairs = x.unflatten(-1, (half, 2)) if mode == "interval" else x.unflatten(-1, (2, half)).transpose(-1, -2)
    angle = positions[:, :, None, None] * 1e4 ** -(torch.arange(half, dtype=torch.float64) / half)
    y = torch.view_as_real(torch.view_as_complex(pairs.contiguous()) * torch.polar(torch.ones_like(angle), angle))
    return (y if mode == "interval" else y.transpose(-1, -2)).flatten(-2)


@pytest.mark.parametrize("mode", ["plane", "interval"])
def test_rotary_embeddings(mode: str) -> None:
    here = torch.arange(7).expand(2, 7)
    near = {"atol": 1e-6, "rtol": 1e-6}  # angles are float32, as there
    for layout, which in (("BMHK", 0), ("BHMK", 0), ("MB(HK)", 0), ("BM(H3K)", 1), ("BM(H2K)", 2)):
        x = flow.tensor(laid([V, K, V], layout, which))
        out = "BMHK" if layout == "BM(H3K)" else None
        options: dict[str, Any] = {"k_size": 8, "mode": mode, "tensor_index": which, "output_layout": out or "BMHK"}
        chosen = [V, K, V][which]
        got = rotary(x, x_layout=layout, **options).to_torch()
        torch.testing.assert_close(got, turned(chosen, here, mode), **near)
        some = torch.cat([turned(chosen[..., :4], here, mode), chosen[..., 4:]], -1)
        torch.testing.assert_close(rotary(x, x_layout=layout, rotary_size=4, **options).to_torch(), some, **near)
    at = torch.randint(9, (2, 2, 7))
    both = torch.cat([turned(K[..., 4 * i : 4 * i + 4], at[:, i], mode) for i in (0, 1)], -1)
    got = rotary(flow.tensor(K), x_layout="BMHK", mode=mode, position_ids=flow.tensor(at)).to_torch()
    torch.testing.assert_close(got, both, **near)
    speed = 1e4 ** -(torch.arange(2, dtype=torch.float64) / 2)
    angles = torch.arange(9)[:, None] * (speed.repeat(2) if mode == "plane" else speed.repeat_interleave(2))
    agree(
        lambda x, cos, sin: turned(x, at[:, 0], mode),
        lambda x, cos, sin: rotary(
            x, cos=cos, sin=sin, x_layout="BMHK", mode=mode, position_ids=flow.tensor(at[:, :1])
        ),
        (K[..., :4], angles.cos(), angles.sin()),
    )


@on(2)
def test_heads_may_lie_on_several_ranks() -> None:
    P = flow.placement("cpu", ranks=[0, 1])
    lies = {"query_layout": "BMHK", "key_layout": "BMHK", "value_layout": "BMHK"}
    for dim in (0, 2):
        x = flow.randn(2, 5, 4, 8, placement=P, sbp=flow.sbp.split(dim))
        here = flow.tensor(x.numpy())
        got, wanted = (fused(rotary(t, x_layout="BMHK"), key=t, value=t, causal=True, **lies) for t in (x, here))
        assert got.is_global and abs(got.numpy() - wanted.numpy()).max() < 1e-6


def test_wrong_layouts_are_told() -> None:
    x = flow.ones(2, 5, 24)
    with pytest.raises(flow.errors.OptionError, match="no layout 'BMHK' of 3 dimensions"):
        fused(x, "BMHK")
    with pytest.raises(flow.errors.ShapeError, match="a width of 24 isn't a multiple of 7"):
        fused(x, "BM(HK)", 7)
    with pytest.raises(flow.errors.OptionError, match="attn_mask_type: one of none"):
        fused(x, "BM(H3K)", 8, attn_mask_type="causal")
    with pytest.raises(flow.errors.ArgumentError, match="needs a key and a value"):
        flow._C.fused_attention_concat_past_key_value()
    with pytest.raises(flow.errors.OptionError, match='mode is "plane" or'):
        rotary(x, x_layout="BM(HK)", k_size=8, mode="all")
