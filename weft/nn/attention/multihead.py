"""Multi-head attention."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

from torch.nn.attention import SDPBackend, sdpa_kernel  # torch's choice of kernels applies here, too

from weft.api.table import public
from weft.core import dtype as dtypes
from weft.core.errors import OptionError, ShapeError
from weft.functional.shape.splitting import chunk
from weft.nn import functional as F
from weft.ops import ops
from weft.tensor.tensor import Tensor

__all__ = ["SDPBackend", "sdpa_kernel"]


def attend(
    layer: Any, query: Tensor, key: Tensor, value: Tensor, key_padding_mask: Tensor | None = None,
    need_weights: bool = True, attn_mask: Tensor | None = None, average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[Tensor, Tensor | None]:  # fmt: skip
    """The output, and the weights if `need_weights`. A boolean mask hides where it is true."""
    batched = query.ndim == 3
    if query.ndim not in (2, 3) or not query.ndim == key.ndim == value.ndim:
        raise ShapeError(
            f"query, key and value are all (length, width) or all have a batch dimension; got {list(query.shape)}, "
            f"{list(key.shape)}, {list(value.shape)}"
        )
    if is_causal and attn_mask is None:
        raise OptionError(
            "is_causal says that attn_mask is the causal one, so give it as well: "
            "attn_mask=nn.Transformer.generate_square_subsequent_mask(length)"
        )
    q, k, v = _projected(layer, query, key, value)
    if not batched:
        q, k, v = (ops.unsqueeze(t, 1) for t in (q, k, v))
        key_padding_mask = None if key_padding_mask is None else ops.unsqueeze(key_padding_mask, 0)
    elif layer.batch_first:
        q, k, v = (ops.transpose(t, 0, 1) for t in (q, k, v))
    y, weights = _attend(layer, q, k, v, _mask(layer, q, k, attn_mask, key_padding_mask), need_weights)
    if not batched:
        y = ops.squeeze(y, 1)
    elif layer.batch_first:
        y = ops.transpose(y, 0, 1)
    if weights is not None:
        weights = ops.mean(weights, 1, False) if average_attn_weights else weights
        weights = weights if batched else ops.squeeze(weights, 0)
    return y, weights


def _projected(layer: Any, query: Tensor, key: Tensor, value: Tensor) -> list[Tensor]:
    """The projected query, key and value, in as few matmuls as the inputs allow."""
    weight, bias = layer.in_proj_weight, layer.in_proj_bias
    if weight is not None and query is key is value:
        return list(chunk(F.linear(query, weight, bias), 3, -1))
    biases = (None,) * 3 if bias is None else chunk(bias, 3, 0)
    if weight is not None:
        weights = chunk(weight, 3, 0)
    else:
        weights = (layer.q_proj_weight, layer.k_proj_weight, layer.v_proj_weight)
    return [F.linear(x, w, b) for x, w, b in zip((query, key, value), weights, biases, strict=True)]


def _mask(layer: Any, q: Tensor, k: Tensor, mask: Tensor | None, padding: Tensor | None) -> Tensor | None:
    """Both masks as one additive mask that broadcasts to (batch, heads, queries, keys)."""
    batch, heads = q.shape[1], layer.num_heads
    if mask is not None:
        wanted = [q.shape[0], k.shape[0]]
        if list(mask.shape) not in (wanted, [batch * heads, *wanted]):
            raise ShapeError(
                f"attn_mask has shape {list(mask.shape)}; it should be {wanted} or {[batch * heads, *wanted]}"
            )
        mask = _added(mask, q)
        mask = mask if mask.ndim == 2 else ops.reshape(mask, (batch, heads, *wanted))
    if padding is not None:
        if list(padding.shape) != [batch, k.shape[0]]:
            raise ShapeError(f"key_padding_mask has shape {list(padding.shape)}; it should be {[batch, k.shape[0]]}")
        hidden = ops.reshape(_added(padding, q), (batch, 1, 1, k.shape[0]))
        mask = hidden if mask is None else ops.add(mask, hidden)
    return mask


def _attend(
    layer: Any, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, need_weights: bool
) -> tuple[Tensor, Tensor | None]:
    length, batch, width = q.shape
    extra = 0
    if layer.bias_k is not None:
        k, v = (ops.cat([t, ops.expand(b, (1, batch, width))], 0) for t, b in ((k, layer.bias_k), (v, layer.bias_v)))
        extra += 1
    if layer.add_zero_attn:
        k, v = (ops.cat([t, ops.zeros_like(ops.narrow(t, 0, 0, 1))], 0) for t in (k, v))
        extra += 1
    if mask is not None and extra:
        mask = ops.pad_with(mask, (0, extra), 0.0)
    q, k, v = (_heads(layer, t) for t in (q, k, v))
    dropped = layer.dropout if layer.training else 0.0
    weights = None
    if need_weights:
        scores = ops.matmul(ops.mul(q, 1 / math.sqrt(layer.head_dim)), ops.transpose(k, -2, -1))
        weights = F.softmax(scores if mask is None else ops.add(scores, mask), -1)
        weights = F.dropout(weights, dropped, True) if dropped else weights
        y = ops.matmul(weights, v)
    else:
        y = F.scaled_dot_product_attention(q, k, v, mask, dropped)
    joined = ops.reshape(ops.permute(y, (2, 0, 1, 3)), (length, batch, width))
    return layer.out_proj(joined), weights


def _heads(layer: Any, t: Tensor) -> Tensor:
    """(length, batch, width) to (batch, heads, length, width of a head)."""
    return ops.permute(ops.reshape(t, (*t.shape[:2], layer.num_heads, layer.head_dim)), (1, 2, 0, 3))


def _added(mask: Tensor, like: Tensor) -> Tensor:
    """A mask in additive form."""
    if mask.dtype.differentiable:
        return mask
    if mask.dtype is not dtypes.bool_:
        raise OptionError(f"a mask must be boolean, true where it hides, or floating and additive; got {mask.dtype}")
    return ops.where(mask, float("-inf"), ops.zeros_like(ops.cast(mask, like.dtype)))


@public("neural")
def multi_head_attention_forward(
    query: Tensor, key: Tensor, value: Tensor, embed_dim_to_check: int, num_heads: int, in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None, bias_k: Tensor | None, bias_v: Tensor | None, add_zero_attn: bool, dropout_p: float,
    out_proj_weight: Tensor, out_proj_bias: Tensor | None, training: bool = True,
    key_padding_mask: Tensor | None = None, need_weights: bool = True, attn_mask: Tensor | None = None,
    use_separate_proj_weight: bool = False, q_proj_weight: Tensor | None = None, k_proj_weight: Tensor | None = None,
    v_proj_weight: Tensor | None = None, static_k: Tensor | None = None, static_v: Tensor | None = None,
    average_attn_weights: bool = True, is_causal: bool = False,
) -> tuple[Tensor, Tensor | None]:  # fmt: skip
    """The computation of `MultiheadAttention` with explicit weights."""
    if query.shape[-1] != embed_dim_to_check:
        raise ShapeError(f"the queries are {query.shape[-1]} wide; embed_dim_to_check says {embed_dim_to_check}")
    if static_k is not None or static_v is not None:
        raise OptionError("static_k and static_v have no counterpart here; give the key and the value")
    layer = SimpleNamespace(
        num_heads=num_heads, head_dim=embed_dim_to_check // num_heads,
        dropout=dropout_p, batch_first=False, add_zero_attn=add_zero_attn, training=training, bias_k=bias_k,
        bias_v=bias_v, in_proj_weight=None if use_separate_proj_weight else in_proj_weight, in_proj_bias=in_proj_bias,
        q_proj_weight=q_proj_weight, k_proj_weight=k_proj_weight, v_proj_weight=v_proj_weight,
        out_proj=lambda y: F.linear(y, out_proj_weight, out_proj_bias),
    )  # fmt: skip
    causal = is_causal and attn_mask is not None
    return attend(layer, query, key, value, key_padding_mask, need_weights, attn_mask, average_attn_weights, causal)
