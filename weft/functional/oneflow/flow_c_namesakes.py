"""Functions of `flow._C` whose OneFlow signatures differ from PyTorch's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft.api.signature import overloaded
from weft.api.table import public
from weft.core.errors import OptionError
from weft.functional.index import gather_nd, scattering
from weft.functional.neural import channels, cross_entropy, ctc, dropouts, embeddings, similarity
from weft.ops import ops
from weft.ops.shape.views import dim_of
from weft.tensor.tensor import Tensor


def _take(x: Tensor, indices: Tensor, axis: int = 0) -> Tensor:
    """The slices along an axis at indices of any shape; with PyTorch's arguments, PyTorch's gather.

    >>> flow._C.gather(flow.tensor([[1, 2], [3, 4]]), flow.tensor([[1], [0]]), axis=0).tolist()
    [[[3, 4]], [[1, 2]]]
    """
    d = dim_of(axis, x.ndim)
    if x.ndim == 2 and d == 0:  # a table of rows, which may be split over ranks
        return ops.embedding(x, indices, None)
    taken = ops.index_select(x, d, ops.reshape(indices, (-1,)))
    return ops.reshape(taken, (*x.shape[:d], *indices.shape, *x.shape[d + 1 :]))


def _norm_from(x: Tensor, begin_norm_axis: int, begin_params_axis: int = -1, epsilon: float = 1e-5) -> Tensor:
    """layer_norm over the dimensions from `begin_norm_axis` on, without weights; or PyTorch's layer_norm."""
    return ops.layer_norm(x, tuple(x.shape)[dim_of(begin_norm_axis, x.ndim) :], None, None, epsilon)


def _norm_over(
    input: Tensor, normalized_shape: Any, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> Tensor:
    return ops.layer_norm(input, normalized_shape, weight, bias, eps)


def _rms_weighed(x: Tensor, weight: Tensor | None, normalized_shape: Sequence[int], epsilon: float = 1e-6) -> Tensor:
    """rms_norm with the weight before the shape; or PyTorch's order."""
    return ops.rms_norm(x, normalized_shape, weight, epsilon)


def _rms_over(
    input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None = None, eps: float = 1e-6
) -> Tensor:
    return ops.rms_norm(input, normalized_shape, weight, eps)


public("bound")(embeddings.one_hot)
public("bound", "rms_norm")(overloaded("rms_norm", _rms_over, _rms_weighed))
public("bound", "gather")(overloaded("gather", _take, scattering.gather))
public("bound", "layer_norm")(overloaded("layer_norm", _norm_from, _norm_over))
public("bound")(cross_entropy.cross_entropy)
public("bound")(cross_entropy.nll_loss)


def _ctc_padded(
    log_probs: Tensor, targets: Tensor, input_lengths: Any, target_lengths: Any, max_target_length: int,
    blank: int = 0, zero_infinity: bool = False, reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """ctc_loss with the width of the targets, which is known; or PyTorch's order."""
    return ctc.ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, reduction, zero_infinity)


public("bound", "ctc_loss")(overloaded("ctc_loss", _ctc_padded, ctc.ctc_loss))


@public("bound")
def normalize(
    input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12, use_l2_norm_kernel: bool = False
) -> Tensor:
    """x over its p-norm along `dim`; there is one kernel."""
    return similarity.normalize(input, p, dim, eps)


@public("bound")
def sparse_softmax_cross_entropy(logits: Tensor, label: Tensor) -> Tensor:
    """The cross entropy of each row with its label; nn.functional's takes the labels first."""
    return cross_entropy.sparse_softmax_cross_entropy(label, logits)


def _update_places(
    ref: Tensor, value: Tensor, start: Sequence[int], stop: Sequence[int], step: Sequence[int],
    enable_view_slice: bool = False,
) -> Tensor:  # fmt: skip
    """`slice_update` with lists of starts, stops and steps."""
    return gather_nd.slice_update(ref, value, list(zip(start, stop, step, strict=True)))


def _slice_places(x: Tensor, start: Sequence[int], stop: Sequence[int], step: Sequence[int]) -> Tensor:
    """`slice` with lists of starts, stops and steps."""
    return gather_nd.slice(x, list(zip(start, stop, step, strict=True)))


public("bound", "slice_update")(overloaded("slice_update", gather_nd.slice_update, _update_places))
public("bound", "slice")(overloaded("slice", gather_nd.slice, _slice_places))


@public("bound")
def arg_sort(input: Tensor, direction: str) -> Tensor:
    """The indices that sort the last dimension, "ASCENDING" or "DESCENDING"."""
    if direction not in ("ASCENDING", "DESCENDING"):
        raise OptionError(f'arg_sort(): direction is "ASCENDING" or "DESCENDING"; got {direction!r}')
    return ops.argsort(input, -1, direction == "DESCENDING")


@public("bound")
def dim_gather(input: Tensor, dim: int, index: Tensor, sparse_grad: bool = False) -> Tensor:
    """PyTorch's gather."""
    return scattering.gather(input, dim, index, sparse_grad=sparse_grad)


@public("bound")
def pixel_shuffle(input: Tensor, h_upscale_factor: int, w_upscale_factor: int | None = None) -> Tensor:
    """Rearranges channels to pixels, by a factor for each side."""
    return channels.pixel_shuffle(input, (h_upscale_factor, w_upscale_factor or h_upscale_factor))


@public("bound")
def fused_scale_tril_softmax_mask_scale(
    a: Tensor, p: float = 0.5, *, diagonal: int, tril_scale_value: float, tril_fill_value: float = 0.0,
    generator: Any = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """dropout(softmax(a * tril_scale_value, with the fill value above a diagonal)), and the softmax."""
    below = ops.tril(ops.ones_like(a.detach()), diagonal)
    scores = ops.where(ops.ne(below, 0), ops.mul(a, tril_scale_value), tril_fill_value)
    y = ops.softmax(scores, -1)
    return (dropouts.dropout(y, p, generator=generator) if p else y), y
