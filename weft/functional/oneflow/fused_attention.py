"""OneFlow's fused attention of `flow._C`, by names of layouts: B is the batch, M the sequence, H the heads, K a head's
width; `BM(H3K)` holds query, key and value of each head side by side, `BM(H2K)` key and value."""

from __future__ import annotations

from typing import Final

from weft.api.table import public
from weft.core import dtype as dtypes
from weft.core.errors import ArgumentError, OptionError, ShapeError
from weft.functional.create import creation
from weft.functional.create.likeness import device_of
from weft.functional.neural.scaled_dot_product import scaled_dot_product_attention
from weft.functional.shape import views
from weft.ops import ops
from weft.tensor.tensor import Tensor

ORDERS: Final = {"BMHK": (0, 1, 2, 3), "BHMK": (0, 2, 1, 3), "MBHK": (1, 0, 2, 3)}  # each is its own inverse
MERGED: Final = {f"{bm}({hk})": (bm, n) for bm in ("BM", "MB") for n, hk in ((1, "HK"), (2, "H2K"), (3, "H3K"))}


def _apart(x: Tensor, layout: str, which: int, head_size: int | None = None, heads: int | None = None) -> Tensor:
    """The query (0), key (1) or value (2) as BMHK."""
    if layout in ORDERS and x.ndim == 4:
        return views.permute(x, ORDERS[layout])
    if layout not in MERGED or x.ndim != 3:
        raise OptionError(
            f"no layout {layout!r} of {x.ndim} dimensions; there are {', '.join(ORDERS)} of 4, {', '.join(MERGED)} of "
            "3. Sequences of several lengths, packed one after the other, are padded instead"
        )
    order, n = MERGED[layout]
    unit = n * (heads or head_size or x.shape[2])
    if x.shape[2] % unit:
        raise ShapeError(f"{layout}: a width of {x.shape[2]} isn't a multiple of {unit}")
    heads = heads or x.shape[2] // unit
    parts = ops.reshape(x, (*x.shape[:2], heads, n, -1))
    return views.permute(ops.squeeze(ops.narrow(parts, 3, max(which + n - 3, 0), 1), 3), ORDERS[order + "HK"])


def _together(x: Tensor, layout: str) -> Tensor:
    """A BMHK tensor in a layout."""
    x = views.permute(x, ORDERS[layout if layout in ORDERS else layout[:2] + "HK"])
    return x if layout in ORDERS else ops.reshape(x, (*x.shape[:2], -1))


@public("bound")
def fused_multi_head_attention_inference_v2(
    query: Tensor, query_layout: str = "BM(HK)", query_head_size: int | None = None, *,
    key: Tensor | None = None, key_layout: str | None = None, value: Tensor | None = None,
    value_layout: str | None = None, attn_bias: Tensor | None = None, output_layout: str = "BM(HK)",
    scale: float | None = None, causal: bool | None = None, attn_mask_type: str | None = None,
    causal_diagonal_offset: int = 0,
) -> Tensor:  # fmt: skip
    """softmax(query @ key.T * scale + bias) @ value, each in the layout that is named. Without a key or a value these
    lie beside the query.

    `attn_mask_type` is "none", "causal_from_top_left", which is `causal`, or "causal_from_bottom_right".
    """
    kinds = ("none", "causal_from_top_left", "causal_from_bottom_right")
    kind = attn_mask_type or kinds[bool(causal)]
    if kind not in kinds or (attn_mask_type and causal is not None):
        raise OptionError(f"attn_mask_type: one of {', '.join(kinds)}, without causal; got {attn_mask_type}, {causal}")
    q = _apart(query, query_layout, 0, query_head_size)
    heads = q.shape[2]
    key, key_layout = (query, query_layout) if key is None else (key, key_layout or query_layout)
    value, value_layout = (key, key_layout) if value is None else (value, value_layout or key_layout)
    k, v = _apart(key, key_layout, 1, heads=heads), _apart(value, value_layout, 2, heads=heads)
    length, others = q.shape[1], k.shape[1]
    mask = None if attn_bias is None else ops.narrow(attn_bias, -1, 0, others)  # it may be padded
    offset = causal_diagonal_offset + (others - length if kind == kinds[2] else 0)
    plain = kind != "none" and mask is None and not offset
    if kind != "none" and not plain:
        seen = ops.tril(creation.ones((length, others), dtype=dtypes.bool_, **device_of(q)), offset)
        mask = seen if mask is None else ops.where(seen, mask, float("-inf"))
    q, k, v = (ops.transpose(t, 1, 2) for t in (q, k, v))
    made = scaled_dot_product_attention(q, k, v, mask, 0.0, plain, scale)
    return _together(ops.transpose(made, 1, 2), output_layout)


@public("bound")
def fused_multi_head_attention_inference(
    query: Tensor, key: Tensor, value: Tensor, num_heads: int, causal: bool = False,
    query_hidden_slice_start: int = 0, query_hidden_slice_end: int = -1, key_hidden_slice_start: int = 0,
    key_hidden_slice_end: int = -1, value_hidden_slice_start: int = 0, value_hidden_slice_end: int = -1,
    attn_bias: Tensor | None = None, causal_diagonal_offset: int = 0,
) -> Tensor:  # fmt: skip
    """Attention of tensors (batch, sequence, heads * head size), or of a slice of each one's last dimension."""

    def part(x: Tensor, start: int, end: int) -> Tensor:
        whole = (start, end) in ((0, -1), (0, x.shape[2]))
        return x if whole else ops.narrow(x, 2, start, (x.shape[2] if end < 0 else end) - start)

    q = part(query, query_hidden_slice_start, query_hidden_slice_end)
    return fused_multi_head_attention_inference_v2(
        q, "BM(HK)", q.shape[2] // num_heads, key=part(key, key_hidden_slice_start, key_hidden_slice_end),
        value=part(value, value_hidden_slice_start, value_hidden_slice_end), attn_bias=attn_bias, causal=causal,
        causal_diagonal_offset=causal_diagonal_offset,
    )  # fmt: skip


@public("bound")
def fused_attention_concat_past_key_value(
    past_key: Tensor | None = None, past_key_layout: str = "BM(HK)", past_value: Tensor | None = None,
    past_value_layout: str = "BM(HK)", key: Tensor | None = None, key_layout: str = "BM(HK)",
    value: Tensor | None = None, value_layout: str = "BM(HK)", key_head_size: int | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """The keys of the past and the new ones along the sequence, and the values, in the layouts of the past."""
    if key is None or value is None:
        raise ArgumentError("fused_attention_concat_past_key_value() needs a key and a value")
    new_key = _apart(key, key_layout, 1, key_head_size)
    new_value = _apart(value, value_layout, 2, heads=new_key.shape[2])

    def grown(past: Tensor | None, layout: str, which: int, new: Tensor) -> Tensor:
        old = [] if past is None else [_apart(past, layout, which, heads=new.shape[2])]
        return _together(ops.cat([*old, new], 1), layout)

    return grown(past_key, past_key_layout, 1, new_key), grown(past_value, past_value_layout, 2, new_value)


@public("bound")
def fused_apply_rotary_emb(
    x: Tensor, *, cos: Tensor | None = None, sin: Tensor | None = None, position_ids: Tensor | None = None,
    x_layout: str = "BHMK", output_layout: str | None = None, mode: str = "plane", tensor_index: int | None = None,
    k_size: int | None = None, base: float = 1e4, rotary_size: int | None = None,
) -> Tensor:  # fmt: skip
    """Turns the first `rotary_size` elements of each head by angles that grow with the position: x * cos + y * sin,
    where y are the other elements of the pairs: of the two halves in mode "plane", neighbours in mode "interval".

    `cos` and `sin` have a row for each position. `position_ids` are (batch, n, sequence): each n-th of the elements
    goes by its own.
    """
    if mode not in ("plane", "interval"):
        raise OptionError(f'fused_apply_rotary_emb(): mode is "plane" or "interval"; got {mode!r}')
    t = _apart(x, x_layout, tensor_index or 0, k_size)
    turned = t.shape[3] if rotary_size is None else rotary_size
    n = 1 if position_ids is None else position_ids.shape[1]
    size, parts = turned // n, []
    where = device_of(t)
    pairs = creation.arange(0, size, 2, dtype=dtypes.float32, **where)
    speeds = ops.pow(float(base), ops.mul(pairs, -1 / size))
    speeds = ops.cat([speeds, speeds]) if mode == "plane" else ops.reshape(ops.stack([speeds, speeds], 1), (size,))
    for i in range(n):
        if position_ids is None:
            at = creation.arange(t.shape[1], **where)
        else:
            at = ops.squeeze(ops.narrow(position_ids, 1, i, 1), 1)
        if cos is not None and sin is not None:
            c, s = ops.embedding(cos, at), ops.embedding(sin, at)
        else:
            angle = ops.mul(ops.unsqueeze(ops.cast(at, dtypes.float32), -1), speeds)
            c, s = ops.cast(ops.cos(angle), t.dtype), ops.cast(ops.sin(angle), t.dtype)
        part = ops.narrow(t, 3, i * size, size)
        shape = (2, size // 2) if mode == "plane" else (size // 2, 2)
        dim = 3 if mode == "plane" else 4
        pair = ops.reshape(part, (*part.shape[:3], *shape))
        first, second = ops.narrow(pair, dim, 0, 1), ops.narrow(pair, dim, 1, 1)
        other = ops.reshape(ops.cat([ops.neg(second), first], dim), part.shape)
        parts.append(ops.add(ops.mul(part, ops.unsqueeze(c, -2)), ops.mul(other, ops.unsqueeze(s, -2))))
    if turned < t.shape[3]:
        parts.append(ops.narrow(t, 3, turned, t.shape[3] - turned))
    return _together(ops.cat(parts, 3), output_layout or x_layout)
