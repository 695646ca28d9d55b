"""What `nn.functional` offers: the same table as everything else, and its own forms where they differ from the ops'."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

from weft.autograd.inplace import in_place
from weft.core.dtype import bool_, int64
from weft.core.errors import ArgumentError, OptionError, ShapeError
from weft.core.idle import idle
from weft.functional import table
from weft.functional.conversion import cast
from weft.functional.creation import drawing
from weft.functional.older import embedding_renorm_
from weft.functional.places import repeat_interleave
from weft.functional.shaping import broadcast_shapes
from weft.functional.table import calling, public
from weft.ops import OPS
from weft.tensor.tensor import Tensor

_softmax, _log_softmax, _dropout, _embedding = map(calling, ("softmax", "log_softmax", "dropout", "embedding"))
_attention, _leaky_relu = map(calling, ("scaled_dot_product_attention", "leaky_relu"))
_matmul, _mul, _transpose = map(calling, ("matmul", "mul", "transpose"))
_cross_entropy, _add = map(calling, ("cross_entropy", "add"))


@public("neural flow tensor")
def softmax(x: Tensor, dim: int | None = None, dtype: Any = None) -> Tensor:
    """exp(x), scaled to sum to one along a dimension.

    >>> flow.softmax(flow.zeros(2), 0).tolist()
    [0.5, 0.5]
    """
    return _softmax(x if dtype is None else cast(x, dtype), _given("softmax", dim))


@public("neural flow tensor")
def log_softmax(x: Tensor, dim: int | None = None, dtype: Any = None) -> Tensor:
    """The logarithm of softmax, computed in one."""
    return _log_softmax(x if dtype is None else cast(x, dtype), _given("log_softmax", dim))


def _given(name: str, dim: int | None) -> int:
    if dim is None:
        raise ArgumentError(f"{name}(): name the dimension that sums to one, such as dim=-1")
    return dim


@public("neural")
def cross_entropy(
    input: Tensor, target: Tensor, weight: Tensor | None = None, ignore_index: int = -100, reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:  # fmt: skip
    """How far scores are from labels, or from probabilities of all classes. Dimension 1 holds the classes.

    >>> round(flow.nn.functional.cross_entropy(flow.zeros(1, 2), flow.tensor([[0.5, 0.5]])).item(), 4)
    0.6931
    """
    if not (isinstance(target, Tensor) and target.dtype.is_floating_point):
        return _cross_entropy(
            input, _labels(input, target, ignore_index), weight, ignore_index, reduction, label_smoothing
        )
    if tuple(target.shape) != tuple(input.shape):
        raise ShapeError(
            f"scores of shape {list(input.shape)} take probabilities of the same shape, or labels as integers; got "
            f"{target.dtype.name}{list(target.shape)}"
        )
    if reduction not in ("none", "mean", "sum"):
        raise OptionError(f"{reduction} is not a valid value for reduction; it is 'mean', 'sum' or 'none'")
    d = min(1, input.ndim - 1)
    count = input.shape[d]
    if label_smoothing:
        target = _add(_mul(target, 1 - label_smoothing), label_smoothing / count)
    terms = _mul(_log_softmax(input, d), target)
    if weight is not None:
        terms = _mul(terms, calling("reshape")(weight, (-1, *(1,) * (input.ndim - 1 - d))))
    losses = calling("neg")(calling("sum")(terms, d))
    if reduction == "none":
        return losses
    total = calling("sum")(losses)
    return total if reduction == "sum" else _mul(total, count / max(input.numel(), 1))


def _labels(input: Any, target: Any, ignore_index: Any) -> Any:
    """Labels as the kernels take them, of whatever kind of integer; a column of them, too, as in OneFlow."""
    if ignore_index is None or ignore_index is True or ignore_index is False:
        raise OptionError(
            f"ignore_index is a class's number; got {ignore_index}. What stood there in older programs, size_average, "
            'is said by reduction="mean" or "sum"'
        )
    if not isinstance(target, Tensor) or target.dtype.differentiable:
        return target
    if target.ndim == 2 and target.shape[1] == 1 and isinstance(input, Tensor) and input.ndim == 2:
        target = calling("squeeze")(target, 1)
    return target if target.dtype is int64 else cast(target, int64)


@public("neural")
def nll_loss(
    input: Tensor, target: Tensor, weight: Tensor | None = None, ignore_index: int = -100, reduction: str = "mean"
) -> Tensor:
    """-input at the label, the input being logarithms of probabilities. Dimension 1 holds the classes.

    >>> flow.nn.functional.nll_loss(flow.tensor([[-1., -2.]]), flow.tensor([1])).item()
    2.0
    """
    return OPS["nll_loss"](input, _labels(input, target, ignore_index), weight, ignore_index, reduction)


@public("neural")
def dropout(
    x: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False, *, generator: Any = None,
    addend: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """x with each element dropped with probability p and the others scaled by 1 / (1 - p), while training.

    OneFlow's: draws from a generator, and something to add to what is left.
    """
    if not training:
        return x if addend is None else _add(x, addend)
    if generator is None:
        y = _dropout(x, p, True)
    else:
        with drawing(generator):
            y = _dropout(x, p, True)
    if inplace:
        y = in_place(OPS["copy"], (x, y))
    return y if addend is None else _add(y, addend)


@public("neural")
def embedding(
    input: Tensor, weight: Tensor, padding_idx: int | None = None, max_norm: float | None = None,
    norm_type: float = 2.0, scale_grad_by_freq: bool = False, sparse: bool = False,
) -> Tensor:  # fmt: skip
    """The rows of the weight that the input names. `scale_grad_by_freq`: each row's gradient is the mean of those of
    its places, not their sum.

    >>> flow.nn.functional.embedding(flow.tensor([1]), flow.tensor([[1., 2.], [3., 4.]])).tolist()
    [[3.0, 4.0]]
    """
    idle("embedding(sparse)", sparse)
    if max_norm is not None:
        embedding_renorm_(weight, input, max_norm, norm_type)
    return _embedding(weight, input, padding_idx, scale_grad_by_freq)


@public("neural")
def scaled_dot_product_attention(
    query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None, dropout_p: float = 0.0,
    is_causal: bool = False, scale: float | None = None, enable_gqa: bool = False,
) -> Tensor:  # fmt: skip
    """softmax(query @ key.T * scale + mask) @ value, in one kernel; step by step where weights are dropped.

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
            return _attention(query, key, value, attn_mask, is_causal, scale)
        except ShapeError:
            if len({tuple(x.shape)[:-2] for x in (query, key, value)}) == 1:
                raise
            return _as_images(query, key, value, attn_mask, is_causal, scale)  # one head of keys for several of queries
    by = query.shape[-1] ** -0.5 if scale is None else scale
    scores = _matmul(_mul(query, by), _transpose(key, -2, -1))
    if is_causal:
        scores = OPS["hide_future"](scores)
    if attn_mask is not None and attn_mask.dtype is bool_:
        scores = OPS["masked_fill"](scores, OPS["logical_not"](attn_mask), -math.inf)
    elif attn_mask is not None:
        scores = OPS["add"](scores, attn_mask)
    return _matmul(_dropout(_softmax(scores, -1), dropout_p, True), value)


def _as_images(q: Tensor, k: Tensor, v: Tensor, mask: Any, is_causal: bool, scale: float | None) -> Tensor:
    """Attention over any leading dimensions, as over (batch, heads), which the kernel knows."""
    lead = tuple(broadcast_shapes(*(tuple(t.shape)[:-2] for t in (q, k, v))))
    count = math.prod(lead)
    q, k, v = (
        calling("reshape")(calling("expand")(t, (*lead, *t.shape[-2:])), (count, 1, *t.shape[-2:])) for t in (q, k, v)
    )
    if mask is not None and mask.ndim > 2:
        mask = calling("reshape")(calling("expand")(mask, (*lead, *mask.shape[-2:])), (count, 1, *mask.shape[-2:]))
    y = _attention(q, k, v, mask, is_causal, scale)
    return calling("reshape")(y, (*lead, *y.shape[-2:]))


@public("neural")
def leaky_relu(x: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """x where it is above zero, negative_slope * x below."""
    return in_place(OPS["leaky_relu"], (x, negative_slope)) if inplace else _leaky_relu(x, negative_slope)


@functools.cache
def functions() -> dict[str, Callable[..., Any]]:
    """nn.functional's names that there are ops or adapters for."""
    return dict(table.listed("neural"))


def __getattr__(name: str) -> Callable[..., Any]:
    found = functions().get(name)
    if found is None:
        raise AttributeError(f"nn.functional has no {name!r}")
    return globals().setdefault(name, found)
