"""Scaled dot-product attention."""

from __future__ import annotations

import math
from typing import Any

from weft.api.table import public
from weft.core.dtype import bool_
from weft.core.errors import ShapeError
from weft.functional.shape.broadcasting import broadcast_shapes
from weft.functional.shape.repeating import repeat_interleave
from weft.ops import ops
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
    if not dropout_p and not query.ndim == key.ndim == value.ndim == 4 and min(query.ndim, key.ndim, value.ndim) > 1:
        return _as_images(query, key, value, attn_mask, is_causal, scale)
    if not dropout_p:
        try:
            return ops.scaled_dot_product_attention(query, key, value, attn_mask, is_causal, scale)
        except ShapeError:
            if len({tuple(x.shape)[:-2] for x in (query, key, value)}) == 1:
                raise
            return _as_images(query, key, value, attn_mask, is_causal, scale)  # several query heads per key head
    by = query.shape[-1] ** -0.5 if scale is None else scale
    scores = ops.matmul(ops.mul(query, by), ops.transpose(key, -2, -1))
    if is_causal:
        scores = ops.hide_future(scores)
    if attn_mask is not None and attn_mask.dtype is bool_:
        scores = ops.masked_fill(scores, ops.logical_not(attn_mask), -math.inf)
    elif attn_mask is not None:
        scores = ops.add(scores, attn_mask)
    return ops.matmul(ops.dropout(ops.softmax(scores, -1), dropout_p, True), value)


def _as_images(q: Tensor, k: Tensor, v: Tensor, mask: Any, is_causal: bool, scale: float | None) -> Tensor:
    """Attention with any leading dimensions, by the kernel for (batch, heads)."""
    lead = tuple(broadcast_shapes(*(tuple(t.shape)[:-2] for t in (q, k, v))))
    count = math.prod(lead)
    q, k, v = (ops.reshape(ops.expand(t, (*lead, *t.shape[-2:])), (count, 1, *t.shape[-2:])) for t in (q, k, v))
    if mask is not None and mask.ndim > 2:
        mask = ops.reshape(ops.expand(mask, (*lead, *mask.shape[-2:])), (count, 1, *mask.shape[-2:]))
    y = ops.scaled_dot_product_attention(q, k, v, mask, is_causal, scale)
    return ops.reshape(y, (*lead, *y.shape[-2:]))
