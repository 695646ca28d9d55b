"""Losses beyond the daily ones, composed of ops: margins, counts, widths; and labels read off scores over time."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from weft.core import dtype as dtypes
from weft.core.errors import OptionError, ShapeError
from weft.core.idle import idle
from weft.functional import creation
from weft.functional.einstein import einsum
from weft.functional.likeness import beside
from weft.functional.older import embedding_renorm_
from weft.nn.losses import cosine_similarity, pairwise_distance, reduced, triplet
from weft.ops import OPS
from weft.tensor.tensor import Tensor

__all__ = [
    "bilinear", "channel_shuffle", "combined_margin_loss", "cosine_embedding_loss", "ctc_greedy_decoder",
    "embedding_bag", "gaussian_nll_loss", "hinge_embedding_loss", "local_response_norm", "lp_pool1d", "lp_pool2d",
    "lp_pool3d", "multi_margin_loss", "multilabel_margin_loss", "multilabel_soft_margin_loss", "pdist",
    "poisson_nll_loss", "rrelu", "triplet_margin_with_distance_loss",
]  # fmt: skip

relu, cast, where, total, mean = (OPS[n] for n in ("relu", "cast", "where", "sum", "mean"))


def cosine_embedding_loss(
    input1: Any, input2: Any, target: Any, margin: float = 0.0, reduction: str = "mean"
) -> Tensor:
    """How far pairs are from pointing the same way, where the target is 1; or apart by the margin, where it is -1."""
    cosine: Any = cosine_similarity(input1, input2, dim=-1)
    apart = where(target == -1, relu(cosine - margin), 0.0)  # of another target nothing is asked
    return reduced(where(target == 1, 1 - cosine, apart), reduction)


def hinge_embedding_loss(input: Any, target: Any, margin: float = 1.0, reduction: str = "mean") -> Tensor:
    """A distance, where the target is 1; how much it lacks to the margin, where it is -1."""
    loss = where(target == -1, 0.0, input) + where(target == 1, 0.0, relu(margin - input))
    return reduced(loss, reduction)


def poisson_nll_loss(
    input: Any, target: Any, log_input: bool = True, full: bool = False, eps: float = 1e-8, reduction: str = "mean"
) -> Tensor:
    """Minus the log-probability of counts, of which `input` is the mean, or its logarithm."""
    loss = OPS["exp"](input) - target * input if log_input else input - target * OPS["log"](input + eps)
    if full:
        many = where(target > 1, target, 2.0)
        stirling = many * OPS["log"](many) - many + 0.5 * OPS["log"](2 * math.pi * many)
        loss = loss + where(target > 1, stirling, 0.0)
    return reduced(loss, reduction)


def gaussian_nll_loss(
    input: Any, target: Any, var: Any, full: bool = False, eps: float = 1e-6, reduction: str = "mean"
) -> Tensor:
    """Minus the log-probability of targets that are normal around `input` with these variances."""
    if isinstance(var, Tensor):
        width: Any = var
        if width.ndim == input.ndim - 1:
            width = OPS["unsqueeze"](width, -1)
    else:
        width = OPS["full_like"](input.detach(), float(var))
    # no gradient says that a variance below eps should rise
    width = width + (OPS["clamp"](width, eps) - width).detach()
    away = input - target
    loss = 0.5 * (OPS["log"](width) + away * away / width)
    return reduced(loss + 0.5 * math.log(2 * math.pi) if full else loss, reduction)


def multi_margin_loss(
    input: Any, target: Any, p: int = 1, margin: float = 1.0, weight: Any = None, reduction: str = "mean"
) -> Any:
    """How far the target class is from scoring above every other by the margin."""
    alone = input.ndim == 1
    x, labels = (OPS["unsqueeze"](input, 0), OPS["reshape"](target, (1,))) if alone else (input, target)
    index = OPS["unsqueeze"](labels, 1)
    right = OPS["gather"](x, 1, index)
    lacks = relu(margin - right + x)
    lacks = lacks if p == 1 else OPS["pow"](lacks, float(p))
    if weight is not None:
        lacks = lacks * OPS["unsqueeze"](OPS["index_select"](weight, 0, labels), 1)
    others = OPS["scatter"](OPS["ones_like"](x.detach()), 1, index, 0.0)
    loss = mean(lacks * others, 1)
    return reduced(OPS["squeeze"](loss, 0) if alone else loss, reduction)


def multilabel_margin_loss(input: Any, target: Any, reduction: str = "mean") -> Any:
    """How far every target class is from scoring above every other by 1; a row's targets end with -1."""
    alone = input.ndim == 1
    x, labels = (OPS["unsqueeze"](input, 0), OPS["unsqueeze"](target, 0)) if alone else (input, target)
    given = OPS["cumsum"](cast(labels < 0, dtypes.int64), 1) == 0
    index = cast(where(given, labels, 0), dtypes.int64)
    counts = cast(given, x.dtype)
    hits = OPS["scatter_add"](OPS["zeros_like"](x.detach()), 1, index, counts)
    is_target = cast(hits > 0, x.dtype)
    scores = OPS["gather"](x, 1, index)
    lacks = relu(1 - (OPS["unsqueeze"](scores, 2) - OPS["unsqueeze"](x, 1)))
    lacks = lacks * OPS["unsqueeze"](counts, 2) * OPS["unsqueeze"](1 - is_target, 1)
    loss = total(lacks, (1, 2)) / x.shape[1]
    return reduced(OPS["squeeze"](loss, 0) if alone else loss, reduction)


def multilabel_soft_margin_loss(input: Any, target: Any, weight: Any = None, reduction: str = "mean") -> Any:
    """Each class for itself: minus the log of the probability that its target, 0 or 1, gets; the mean over classes."""
    loss = -(target * OPS["logsigmoid"](input) + (1 - target) * OPS["logsigmoid"](-input))
    loss = loss if weight is None else loss * weight
    return reduced(mean(loss, -1), reduction)


def triplet_margin_with_distance_loss(
    anchor: Any, positive: Any, negative: Any, *, distance_function: Callable[[Any, Any], Any] | None = None,
    margin: float = 1.0, swap: bool = False, reduction: str = "mean",
) -> Any:  # fmt: skip
    """How far the positive is from being nearer to the anchor than the negative, by any distance and a margin."""
    distance = distance_function or pairwise_distance
    name = "triplet_margin_with_distance_loss"
    return triplet(name, anchor, positive, negative, distance, margin, swap, reduction)


def combined_margin_loss(x: Any, label: Any, m1: float = 1.0, m2: float = 0.0, m3: float = 0.0) -> Any:
    """Cosines with the target class's made harder: cos(m1 * angle + m2) - m3 in its place. For faces, before softmax.

    >>> flow._C.combined_margin_loss(flow.tensor([[1.0, 0.5]]), flow.tensor([0]), 1.0, 0.0, 0.25).tolist()
    [[0.75, 0.5]]
    """
    index = OPS["unsqueeze"](label, 1)
    cosine = OPS["gather"](x, 1, index)
    if (m1, m2) == (1.0, 0.0):
        harder = cosine - m3
    else:
        harder = OPS["cos"](OPS["acos"](cosine) * m1 + m2) - m3
    return OPS["scatter"](x, 1, index, harder)


def ctc_greedy_decoder(log_probs: Any, input_lengths: Any, merge_repeated: bool = True) -> tuple[Tensor, Tensor]:
    """The most likely class at each time, repetitions taken as one, without blanks (the last class): labels of each
    sequence, filled up with zeros; and minus the logarithm of the path's probability.

    >>> scores = flow.tensor([[[0.0, 2.0, 1.0]], [[0.0, 2.0, 1.0]], [[0.0, 1.0, 2.0]], [[0.0, 2.0, 1.0]]])
    >>> flow.nn.functional.ctc_greedy_decoder(scores, flow.tensor([4]))[0].tolist()
    [[1, 1, 0, 0]]
    """
    if log_probs.ndim != 3:
        raise ShapeError(f"ctc_greedy_decoder: log_probs are (time, batch, classes); got {list(log_probs.shape)}")
    steps, batch, classes = log_probs.shape
    best, choice = OPS["max"](log_probs, 2)
    lengths = (
        input_lengths if isinstance(input_lengths, Tensor) else creation.tensor(input_lengths, **beside(log_probs))
    )
    goes_on = OPS["unsqueeze"](creation.arange(steps, **beside(log_probs)), 1) < lengths
    kept = goes_on * (choice != classes - 1)
    if merge_repeated and steps > 1:
        again = OPS["narrow"](choice, 0, 1, steps - 1) == OPS["narrow"](choice, 0, 0, steps - 1)
        first = creation.zeros((1, batch), dtype=dtypes.bool_, **beside(log_probs))
        kept = kept * OPS["logical_not"](OPS["cat"]([first, again], 0))
    at = where(kept, OPS["cumsum"](cast(kept, dtypes.int64), 0) - 1, steps)  # what isn't kept goes behind the end
    blank = creation.zeros((steps + 1, batch), dtype=choice.dtype, **beside(log_probs))
    decoded = OPS["narrow"](OPS["scatter"](blank, 0, at, choice), 0, 0, steps)
    path = -total(best * cast(goes_on, best.dtype), 0)
    return OPS["transpose"](decoded, 0, 1), OPS["unsqueeze"](path, 1)


# ---- layers' functions -----------------------------------------------------------------------------------


def bilinear(input1: Any, input2: Any, weight: Any, bias: Any = None) -> Any:
    """input1 @ weight[k] @ input2 for every k, and the bias."""
    half = einsum("...i,kij->...kj", input1, weight)
    y = total(half * OPS["unsqueeze"](input2, -2), -1)
    return y if bias is None else y + bias


def channel_shuffle(input: Any, groups: int) -> Any:
    """Channels dealt out anew: the first of each group, then the second of each, and so on."""
    n, channels, *rest = input.shape
    if channels % groups:
        raise ShapeError(f"channel_shuffle: {channels} channels don't divide into {groups} groups")
    parted = OPS["reshape"](input, (n, groups, channels // groups, *rest))
    return OPS["reshape"](OPS["transpose"](parted, 1, 2), tuple(input.shape))


def local_response_norm(input: Any, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Any:
    """x over a power of the mean square of the channels around."""
    squares = OPS["unsqueeze"](OPS["reshape"](input * input, (*input.shape[:2], -1)), 1)
    padded = OPS["pad_with"](squares, (0, 0, size // 2, (size - 1) // 2), 0.0)
    around = OPS["avg_pool2d"](padded, (size, 1), (1, 1))
    around = OPS["reshape"](around, tuple(input.shape))
    return input / OPS["pow"](around * alpha + k, beta)


def _lp_pool(dims: int, input: Any, norm_type: float, kernel_size: Any, stride: Any, ceil_mode: bool) -> Any:
    size = kernel_size if isinstance(kernel_size, Sequence) else (kernel_size,) * dims
    step = size if stride is None else stride if isinstance(stride, Sequence) else (stride,) * dims
    powers = OPS["pow"](input, float(norm_type))
    pooled = OPS[f"avg_pool{dims}d"](powers, tuple(size), tuple(step), (0,) * dims, ceil_mode)
    whole = OPS["sign"](pooled) * relu(OPS["abs"](pooled)) * math.prod(size)
    return OPS["pow"](whole, 1.0 / norm_type)


def lp_pool1d(input: Any, norm_type: float, kernel_size: int, stride: Any = None, ceil_mode: bool = False) -> Any:
    """The p-norm of every window."""
    return _lp_pool(1, input, norm_type, kernel_size, stride, ceil_mode)


def lp_pool2d(input: Any, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> Any:
    """The p-norm of every window."""
    return _lp_pool(2, input, norm_type, kernel_size, stride, ceil_mode)


def lp_pool3d(input: Any, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> Any:
    """The p-norm of every window."""
    return _lp_pool(3, input, norm_type, kernel_size, stride, ceil_mode)


def pdist(input: Any, p: float = 2.0) -> Any:
    """The distances between all pairs of rows."""
    n = input.shape[0]
    pairs = [(i, j) for i in range(n) for j in range(i + 1, n)]
    first, second = (creation.tensor([q[k] for q in pairs], dtype=dtypes.int64, **beside(input)) for k in (0, 1))
    apart = OPS["index_select"](input, 0, first) - OPS["index_select"](input, 0, second)
    if p == math.inf:
        return OPS["amax"](OPS["abs"](apart), -1)
    if p == 0:
        return total(cast(OPS["ne"](apart, 0.0), input.dtype), -1)
    return OPS["pow"](total(OPS["pow"](OPS["abs"](apart), float(p)), -1), 1.0 / p)


def rrelu(
    input: Any, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False, inplace: bool = False
) -> Any:
    """x, or below zero x times a slope that is drawn from [lower, upper] while training, else their mean."""
    x = input.clone() if inplace else input  # what backward reads is not what is overwritten
    if training:
        y = OPS["bent"](x, OPS["rrelu_slope"](x.detach(), float(lower), float(upper)))
    else:
        y = OPS["leaky_relu"](x, (lower + upper) / 2)
    return input.copy_(y) if inplace else y


def embedding_bag(
    input: Any, weight: Any, offsets: Any = None, max_norm: Any = None, norm_type: float = 2.0,
    scale_grad_by_freq: bool = False, mode: str = "mean", sparse: bool = False, per_sample_weights: Any = None,
    include_last_offset: bool = False, padding_idx: int | None = None,
) -> Any:  # fmt: skip
    """The sums, means or largest elements of bags of rows; bags are rows of the input, or begin at the offsets.

    >>> rows = flow.tensor([[1.0], [2.0], [4.0]])
    >>> flow.nn.functional.embedding_bag(flow.tensor([0, 1, 2]), rows, flow.tensor([0, 2]), mode="sum").tolist()
    [[3.0], [4.0]]
    """
    if mode not in ("sum", "mean", "max") or (per_sample_weights is not None and mode != "sum"):
        raise OptionError(f'embedding_bag: mode is "sum", "mean" or "max", with weights "sum"; got {mode!r}')
    if scale_grad_by_freq and mode == "max":
        raise OptionError('embedding_bag: there is no scale_grad_by_freq of mode "max"')
    idle("embedding_bag(sparse)", sparse)
    if max_norm is not None:
        embedding_renorm_(weight, input, max_norm, norm_type)
    flat = OPS["reshape"](input, (-1,))
    if padding_idx is not None and padding_idx < 0:
        padding_idx += weight.shape[0]
    if offsets is None:
        bags, each = input.shape
        owner = creation.arange(bags * each, **beside(weight)) // each
    else:
        starts = offsets if not include_last_offset else OPS["narrow"](offsets, 0, 0, offsets.shape[0] - 1)
        bags = starts.shape[0]
        places = creation.arange(flat.shape[0], **beside(weight))
        owner = OPS["searchsorted"](starts, places, True) - 1
    rows = OPS["embedding"](weight, flat, padding_idx, scale_grad_by_freq)
    counted = OPS["ones_like"](OPS["narrow"](rows.detach(), 1, 0, 1))
    if padding_idx is not None:
        counted = counted * cast(OPS["unsqueeze"](flat != padding_idx, 1), rows.dtype)
    rows = rows * counted
    if per_sample_weights is not None:
        rows = rows * OPS["reshape"](per_sample_weights, (-1, 1))
    if mode == "max":
        low = creation.full((bags, weight.shape[1]), -math.inf, dtype=weight.dtype, **beside(weight))
        hidden = where(counted > 0, rows, -math.inf)
        index = OPS["expand"](OPS["unsqueeze"](owner, 1), tuple(rows.shape))
        found = OPS["scatter_reduced"](low, 0, index, hidden, "amax", True)
        return where(found == -math.inf, 0.0, found)
    summed = OPS["index_put_zeros"](rows, [owner], (bags, weight.shape[1]))
    if mode == "sum":
        return summed
    return summed / OPS["clamp"](OPS["index_put_zeros"](counted, [owner], (bags, 1)), 1.0)
