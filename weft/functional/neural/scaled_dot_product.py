"""Scaled dot-product attention."""

from __future__ import annotations

import math
from typing import Any

from weft.api.table import public
from weft.core.dtype import DType, bool_, float32
from weft.core.errors import ShapeError
from weft.functional.shape.broadcasting import broadcast_shapes
from weft.functional.shape.repeating import repeat_interleave
from weft.ops import ops
from weft.ops.form import WIDE
from weft.tensor.tensor import Tensor


@public("neural")
def scaled_dot_product_attention(
    query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None, dropout_p: float = 0.0,
    is_causal: bool = False, scale: float | None = None, enable_gqa: bool = False,
) -> Tensor:  # fmt: skip
    """softmax(query @ key.T * scale + mask) @ value, in one kernel, or in steps with dropout.

    `enable_gqa`: several heads of the query share one of the key and the value.
    """
    if enable_gqa:
        heads = [x.shape[-3] for x in (query, key, value)]
        if any(heads[0] % n for n in heads[1:]):
            raise ShapeError(
                f"{heads[0]} heads of the query can't share {heads[1]} of the key, {heads[2]} of the value"
            )
        key, value = (repeat_interleave(x, heads[0] // x.shape[-3], -3) for x in (key, value))
    in_steps = dropout_p or (attn_mask is not None and attn_mask.requires_grad and query.dtype not in WIDE)
    if not in_steps and not query.ndim == key.ndim == value.ndim == 4 and min(query.ndim, key.ndim, value.ndim) > 1:
        return _as_images(query, key, value, attn_mask, is_causal, scale)
    if not in_steps:
        try:
            return ops.scaled_dot_product_attention(query, key, value, attn_mask, is_causal, scale)
        except ShapeError:
            if len({tuple(x.shape)[:-2] for x in (query, key, value)}) == 1:
                raise
            return _as_images(query, key, value, attn_mask, is_causal, scale)  # several query heads per key head
    return _in_steps(query, key, value, attn_mask, dropout_p, is_causal, scale)


def _in_steps(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, dropout_p: float, is_causal: bool, scale: float | None
) -> Tensor:
    """Attention with its probabilities stored. They are computed in float32 at least; the products are too, as in
    torch, on CPUs, which have no units for 16 bits."""
    kind = q.dtype
    wide = kind if kind in WIDE else float32
    if (q.placement if q.is_global else q.device).type == "cpu":
        q, k, v = (_cast(x, wide) for x in (q, k, v))
    by = q.shape[-1] ** -0.5 if scale is None else scale
    half = math.sqrt(abs(by))  # on both sides, as torch rounds it
    scores = ops.matmul(ops.mul(q, math.copysign(half, by)), ops.transpose(ops.mul(k, half), -2, -1))
    scores = _cast(scores, wide)
    if is_causal:
        scores = ops.hide_future(scores)
    if mask is not None and mask.dtype is bool_:
        scores = ops.masked_fill(scores, ops.logical_not(mask), -math.inf)
    elif mask is not None:
        scores = ops.add(scores, mask)
    p = ops.softmax(scores, -1) if mask is None else ops.safe_softmax(scores, -1)
    p = ops.dropout(p, dropout_p, True) if dropout_p else p
    return _cast(ops.matmul(_cast(p, v.dtype), v), kind)


def _cast(x: Tensor, dtype: DType) -> Tensor:
    return x if x.dtype is dtype else ops.cast(x, dtype)


def _as_images(q: Tensor, k: Tensor, v: Tensor, mask: Any, is_causal: bool, scale: float | None) -> Tensor:
    """Attention with any leading dimensions, by the kernel for (batch, heads)."""
    lead = tuple(broadcast_shapes(*(tuple(t.shape)[:-2] for t in (q, k, v))))
    count = math.prod(lead)
    q, k, v = (ops.reshape(ops.expand(t, (*lead, *t.shape[-2:])), (count, 1, *t.shape[-2:])) for t in (q, k, v))
    if mask is not None and mask.ndim > 2:
        mask = ops.reshape(ops.expand(mask, (*lead, *mask.shape[-2:])), (count, 1, *mask.shape[-2:]))
    y = ops.scaled_dot_product_attention(q, k, v, mask, is_causal, scale)
    return ops.reshape(y, (*lead, *y.shape[-2:]))
