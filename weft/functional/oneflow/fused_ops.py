"""OneFlow's fused ops of `flow._C`, composed of plain ops; in a graph, chains fuse them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft.api.table import public
from weft.core import dtype as dtypes
from weft.core.errors import OptionError, ShapeError
from weft.functional.create import creation
from weft.functional.create.likeness import device_of
from weft.functional.index import indexing
from weft.functional.linalg import norms
from weft.functional.pointwise import arithmetic
from weft.functional.shape import views
from weft.functional.tensor.in_place import into
from weft.ops import OPS, ops
from weft.ops.shape.views import dim_of
from weft.tensor.tensor import Tensor


@public("bound")
def bias_add(x: Tensor, bias: Tensor, axis: int = 1) -> Tensor:
    """x plus a vector along an axis."""
    d = dim_of(axis, x.ndim)
    return ops.add(x, ops.reshape(bias, (-1, *(1,) * (x.ndim - d - 1))))


@public("bound")
def fused_bias_add_gelu(x: Tensor, bias: Tensor, axis: int = 1) -> Tensor:
    """gelu(x + bias)."""
    return ops.gelu(bias_add(x, bias, axis))


@public("bound")
def fused_bias_add_dropout(x: Tensor, bias: Tensor, p: float = 0.5, axis: int = 1, training: bool = True) -> Tensor:
    """dropout(x + bias)."""
    y = bias_add(x, bias, axis)
    return ops.dropout(y, p, True) if training else y


@public("bound")
def fused_bias_add_scale_mask_softmax_dropout(
    x: Tensor, bias: Tensor, mask: Tensor, fill_value: float = 0.0, scale: float = 1.0, p: float = 0.5,
    train: bool = True,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """dropout(softmax((x + bias) * scale, masked where the mask is False)), and the softmax."""
    return fused_scale_mask_softmax_dropout(ops.add(x, bias), mask, fill_value, scale, p, train)


@public("bound")
def fused_scale_mask_softmax(x: Tensor, mask: Tensor, fill_value: float = 0.0, scale: float = 1.0) -> Tensor:
    """softmax(x * scale), with the fill value where the mask is False."""
    return ops.softmax(indexing.where(mask, ops.mul(x, scale), fill_value), -1)


@public("bound")
def fused_scale_mask_softmax_dropout(
    x: Tensor, mask: Tensor, fill_value: float = 0.0, scale: float = 1.0, p: float = 0.5, train: bool = True
) -> tuple[Tensor, Tensor]:
    """dropout(softmax(x * scale, masked where the mask is False)), and the softmax."""
    y = fused_scale_mask_softmax(x, mask, fill_value, scale)
    return (ops.dropout(y, p, True) if train and p else y), y


@public("bound")
def fused_self_attention(hidden_states: Tensor, head_size: int, alpha: float = 1.0) -> tuple[Tensor, Tensor]:
    """alpha * q @ k.T and v, both by sample and head. The hidden states, (sequence, sample, width), hold q, k and v of
    each head, concatenated."""
    length, samples, width = hidden_states.shape
    if head_size < 1 or width % (3 * head_size):
        raise ShapeError(
            f"fused_self_attention(): the width, {width}, is 3 * head_size for each head; got head_size={head_size}"
        )
    heads = ops.reshape(hidden_states, (length, samples, -1, 3 * head_size))
    q, k, v = (views.permute(ops.narrow(heads, 3, i * head_size, head_size), (1, 2, 0, 3)) for i in range(3))
    return ops.mul(ops.matmul(q, ops.transpose(k, 2, 3)), alpha), v


@public("bound")
def fused_dot_feature_interaction(
    features: Sequence[Tensor], output_concat: Tensor | None = None, self_interaction: bool = False,
    output_padding: int = 0, pooling: str = "none",
) -> Tensor:  # fmt: skip
    """The dot products of all pairs of feature vectors, each pair once: those of the second vector, of the third, ...

    Features are (sample, count, width). The products are preceded by `output_concat` and padded with zeros. With
    `pooling="sum"`, the result is the sum of the products alone.
    """
    every = ops.cat(features, 1)
    if pooling == "sum":
        if output_concat is not None or self_interaction or output_padding:
            raise OptionError('fused_dot_feature_interaction(pooling="sum") takes no output_concat and no padding')
        whole = ops.sum(every, 1, False)
        pairs = ops.sub(ops.mul(whole, whole), ops.sum(ops.mul(every, every), 1, False))
        return ops.mul(ops.sum(pairs, -1, True), 0.5)
    if pooling != "none":
        raise OptionError(f'fused_dot_feature_interaction(): pooling must be "none" or "sum"; got {pooling!r}')
    products = ops.matmul(every, ops.transpose(every, 1, 2))
    count = every.shape[1]
    chosen = [i * count + j for i in range(count) for j in range(i + self_interaction)]
    index = creation.tensor(chosen, dtypes.int64, **device_of(every))
    flat = ops.index_select(ops.reshape(products, (-1, count * count)), 1, index)
    parts = [flat] if output_concat is None else [output_concat, flat]
    made = ops.cat(parts, 1) if len(parts) > 1 else flat
    return ops.pad_with(made, (0, output_padding), 0.0) if output_padding else made


@public("bound")
def fused_cross_feature_interaction(
    x: Tensor, weight: Tensor, x0: Tensor, bias: Tensor, interaction_mode: str = "vector"
) -> Tensor:
    """A layer of a cross network: x @ weight.T * x0 + bias + x, with a vector as the weight, or with a "matrix"
    (x @ weight.T + bias) * x0 + x."""
    if interaction_mode not in ("vector", "matrix"):
        raise OptionError(f'interaction_mode is "vector" or "matrix"; got {interaction_mode!r}')
    product = ops.matmul(x, ops.transpose(weight, 0, 1))
    crossed = interaction_mode == "vector"
    y = ops.add(ops.mul(product, x0), bias) if crossed else ops.mul(ops.add(product, bias), x0)
    return ops.add(y, x)


@public("bound")
def fused_scale_tril(x: Tensor, diagonal: int = 0, fill_value: float = 0.0, scale: float = 1.0) -> Tensor:
    """The lower triangle of x * scale, and the fill value above."""
    below = ops.mul(ops.tril(x, diagonal), scale)
    if not fill_value:
        return below
    ones = ops.ones_like(x.detach())
    return ops.add(below, ops.mul(ops.sub(ones, ops.tril(ones, diagonal)), fill_value))


@public("bound")
def fused_matmul_bias(x: Tensor, weight: Tensor, bias: Tensor, _add_to_output: Tensor | None = None) -> Tensor:
    """x @ weight.T + bias."""
    y = ops.linear(x, weight, bias)
    return y if _add_to_output is None else ops.add(y, _add_to_output)


@public("bound")
def fused_mlp(x: Tensor, weights: Sequence[Tensor], biases: Sequence[Tensor], skip_final_activation: bool) -> Tensor:
    """Linear layers with relu between them, and after the last one too unless it is skipped."""
    if len(weights) != len(biases):
        raise ShapeError(f"fused_mlp(): {len(weights)} weights and {len(biases)} biases; they go in pairs")
    if any(tuple(b.shape) != tuple(w.shape[:1]) for w, b in zip(weights, biases, strict=True)):
        shapes = [(list(w.shape), list(b.shape)) for w, b in zip(weights, biases, strict=True)]
        raise ShapeError(f"fused_mlp(): a bias has one element for each row of its weight; got {shapes}")
    return fused_matmul_bias_add_relu_dropout(x, weights, biases, skip_final_activation, [0.0] * len(weights))


@public("bound")
def fused_matmul_bias_add_relu_dropout(
    x: Tensor, weights: Sequence[Tensor], biases: Sequence[Tensor], skip_final_activation: bool,
    dropout_rate_list: Sequence[float],
) -> Tensor:  # fmt: skip
    """Linear layers, each followed by relu and dropout."""
    for i, (weight, bias, p) in enumerate(zip(weights, biases, dropout_rate_list, strict=True)):
        x = ops.linear(x, weight, bias)
        x = x if skip_final_activation and i == len(weights) - 1 else ops.relu(x)
        x = ops.dropout(x, p, True) if p else x
    return x


@public("bound")
def fused_glu(
    x: Tensor, w: Tensor, b: Tensor | None = None, v: Tensor | None = None, c: Tensor | None = None,
    activation: str = "none",
) -> Tensor:  # fmt: skip
    """A gated linear unit: one linear layer's result times the activated other's; with one weight, its halves."""
    if v is None:
        y = ops.linear(x, w, b)
        half = y.shape[-1] // 2
        plain, gate = ops.narrow(y, -1, 0, half), ops.narrow(y, -1, half, half)
    else:
        plain, gate = ops.linear(x, w, b), ops.linear(x, v, c)
    return ops.mul(plain, gate if activation == "none" else OPS[activation](gate))


@public("bound")
def fused_fast_gelu_mul(x: Tensor, multiplier: Tensor) -> Tensor:
    """gelu(x), by the tanh formula, times the multiplier."""
    return ops.mul(ops.gelu(x, "tanh"), multiplier)


@public("bound")
def fast_gelu(x: Tensor) -> Tensor:
    """gelu by the tanh formula."""
    return ops.gelu(x, "tanh")


@public("bound")
def gelu_with_approximate(x: Tensor, approximate: str = "none") -> Tensor:
    """gelu, exact or by the tanh formula."""
    return ops.gelu(x, approximate)


@public("bound")
def fused_weighted_sum(tensors: Sequence[Tensor], weights: Sequence[float], alpha: float = 1.0) -> Tensor:
    """The sum of tensors, each times its weight, all times alpha."""
    total = ops.mul(tensors[0], weights[0] * alpha)
    for x, w in zip(tensors[1:], weights[1:], strict=True):
        total = ops.add(total, ops.mul(x, w * alpha))
    return total


@public("bound")
def rms_layer_norm(x: Tensor, weight: Tensor, eps: float = 1e-6) -> Tensor:
    """x over the root of the mean of its squares along the last dimension, times the weight."""
    return ops.rms_norm(x, tuple(weight.shape), weight, eps)


@public("bound")
def trunc_divide(input: Any, other: Any) -> Tensor:
    """x / other, rounded towards zero."""
    return arithmetic.div(input, other, rounding_mode="trunc")


trunc_divide.overwriting = lambda input, other: into(input, trunc_divide, other)  # type: ignore[attr-defined]


@public("bound")
def reciprocal_no_nan(x: Tensor) -> Tensor:
    """1 / x, and 0 where x is 0."""
    none = ops.eq(x, 0)
    return ops.where(none, 0.0, ops.reciprocal(ops.where(none, 1.0, x)))


@public("bound")
def sqrt_square_sum(x: Tensor) -> Tensor:
    """The root of the sum of squares of all elements."""
    return ops.root(ops.sum(ops.mul(x, x)))


@public("bound")
def reshape_like(x: Tensor, like: Tensor) -> Tensor:
    """x reshaped like another."""
    return ops.reshape(x, tuple(like.shape))


@public("bound")
def reduce_sum_like(x: Tensor, like: Tensor, axis: Sequence[int] = ()) -> Tensor:
    """x summed over dimensions, reshaped like another."""
    return ops.reshape(ops.sum(x, tuple(axis)) if axis else x, tuple(like.shape))


@public("bound")
def grouped_matmul(xs: Sequence[Tensor], weights: Sequence[Tensor]) -> list[Tensor]:
    """x @ weight.T of each pair."""
    return [ops.linear(x, w, None) for x, w in zip(xs, weights, strict=True)]


@public("bound")
def grouped_matmul_bias(xs: Sequence[Tensor], weights: Sequence[Tensor], biases: Sequence[Tensor]) -> list[Tensor]:
    """x @ weight.T + bias of each triple."""
    return [ops.linear(x, w, b) for x, w, b in zip(xs, weights, biases, strict=True)]


@public("bound")
def broadcast_equal(x: Tensor, other: Tensor) -> Tensor:
    """Whether x equals the other, element by element."""
    return ops.eq(x, other)


@public("bound")
def softmax_cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    """The cross entropy of each row with a distribution over the classes."""
    if labels.shape != logits.shape:
        raise ShapeError(
            f"softmax_cross_entropy(): takes a probability for each class of each row, {list(logits.shape)}; got "
            f"{list(labels.shape)}"
        )
    return ops.neg(ops.sum(ops.mul(labels, ops.log_softmax(logits, -1)), -1))


public("bound", "T")(views.transposed)
for _norm in (norms.vector_norm, norms.matrix_norm):
    public("bound")(_norm)
