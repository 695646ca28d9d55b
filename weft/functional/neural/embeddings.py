"""embedding, embedding_bag and one_hot."""

from __future__ import annotations

import math
from typing import Any

import torch

from weft.api.fast_path import in_one
from weft.api.table import public
from weft.autograd import no_grad
from weft.autograd.overwrite import assign
from weft.core.errors import AssertedError, DtypeError, IndexingError, OptionError, ShapeError
from weft.functional.create import creation
from weft.functional.create.likeness import device_of
from weft.functional.linalg import norms
from weft.ops import ops
from weft.tensor.tensor import Tensor


def _row(padding_idx: int, n: int) -> int:
    if not -n <= padding_idx < n:
        raise AssertedError(
            f"padding_idx must be within the number of embeddings, {-n} through {n - 1}, but got {padding_idx}"
        )
    return padding_idx % n


@public("neural")
def embedding(
    input: Tensor, weight: Tensor, padding_idx: int | None = None, max_norm: float | None = None,
    norm_type: float = 2.0, scale_grad_by_freq: bool = False, sparse: bool = False,
) -> Tensor:  # fmt: skip
    """The rows of the weight at the input's indices. `scale_grad_by_freq` divides each row's gradient by the count of
    its index; a `sparse` gradient holds the rows that were looked up, for the optimizers that update those alone.

    >>> flow.nn.functional.embedding(flow.tensor([1]), flow.tensor([[1., 2.], [3., 4.]])).tolist()
    [[3.0, 4.0]]
    """
    if max_norm is not None:
        embedding_renorm_(weight, input, max_norm, norm_type)
    row = None if padding_idx is None else _row(padding_idx, weight.shape[0])
    return ops.embedding(weight, input, row, scale_grad_by_freq, sparse)


@public("bound")
def embedding_renorm_(weight: Any, indices: Any, max_norm: float, norm_type: float = 2.0) -> Any:
    """Scale the rows at the indices down to a norm of at most `max_norm`, in place."""
    with no_grad():
        rows = weight.detach()
        used = ops.index_put_zeros(
            ops.ones_like(ops.cast(ops.reshape(indices, (-1,)), rows.dtype)),
            [ops.reshape(indices, (-1,))],
            (rows.shape[0],),
        )
        size: Any = norms.vector_norm(rows, norm_type, 1)
        large = ops.logical_and(used > 0, size > max_norm)
        scale = ops.where(large, max_norm / (size + 1e-7), 1.0)
        assign(weight, rows * ops.unsqueeze(scale, 1))
    return weight


def _check_bags(input: Any, weight: Any, offsets: Any, per_sample_weights: Any) -> None:
    if input.ndim not in (1, 2) or weight.ndim != 2:
        raise ShapeError(
            "embedding_bag: input has to be a 1D or 2D Tensor, and weight 2D; got input of shape "
            f"{list(input.shape)} and weight of shape {list(weight.shape)}"
        )
    if (offsets is not None) != (input.ndim == 1):
        raise OptionError(
            "embedding_bag: if input is 2D, then offsets has to be None, as each row is a bag; 1D input needs the "
            f"offsets at which bags start; got input of shape {list(input.shape)}, and offsets {offsets}"
        )
    if offsets is not None and (offsets.ndim != 1 or not offsets.shape[0]):
        raise ShapeError(f"embedding_bag: offsets has to be a 1D Tensor, of one or more; got {list(offsets.shape)}")
    if offsets is not None and offsets.dtype.differentiable:
        raise DtypeError(f"embedding_bag: offsets are integers; got {offsets.dtype}")
    if per_sample_weights is not None and per_sample_weights.shape != input.shape:
        raise ShapeError(
            f"embedding_bag: per_sample_weights of shape {list(per_sample_weights.shape)} must have the same shape as "
            f"the input, {list(input.shape)}"
        )


def _starts(offsets: Any, n: int) -> Any:
    """The offsets, if they start at 0, ascend, and end within n places."""
    before = ops.pad_with(ops.narrow(offsets, 0, 0, offsets.shape[0] - 1), (1, 0), 0)
    first = ops.eq(creation.arange(offsets.shape[0], **device_of(offsets)), 0)
    most = ops.where(first, 0, n)
    valid = ops.logical_and(ops.ge(offsets, before), ops.le(offsets, most))
    return ops.require(offsets, valid, f"embedding_bag: offsets start at 0, ascend, and end at most at {n}")


@public("neural flow")
def embedding_bag(
    input: Any, weight: Any, offsets: Any = None, max_norm: Any = None, norm_type: float = 2.0,
    scale_grad_by_freq: bool = False, mode: str = "mean", sparse: bool = False, per_sample_weights: Any = None,
    include_last_offset: bool = False, padding_idx: int | None = None,
) -> Any:  # fmt: skip
    """The sums, means or maxima of bags of rows; bags are rows of the input, or start at the offsets.

    >>> rows = flow.tensor([[1.0], [2.0], [4.0]])
    >>> flow.nn.functional.embedding_bag(flow.tensor([0, 1, 2]), rows, flow.tensor([0, 2]), mode="sum").tolist()
    [[3.0], [4.0]]
    """
    if mode not in ("sum", "mean", "max") or (per_sample_weights is not None and mode != "sum"):
        raise OptionError(f'embedding_bag: mode is "sum", "mean" or "max", with weights "sum"; got {mode!r}')
    if scale_grad_by_freq and mode == "max":
        raise OptionError('embedding_bag: mode "max" has no scale_grad_by_freq')
    _check_bags(input, weight, offsets, per_sample_weights)
    if max_norm is not None:
        embedding_renorm_(weight, input, max_norm, norm_type)
    sparse = sparse and mode != "max"
    flat = ops.reshape(input, (-1,))
    if padding_idx is not None:
        padding_idx = _row(padding_idx, weight.shape[0])
    trimmed = include_last_offset and offsets is not None
    there = weight.is_local and weight.device.type == "cpu" and weight.shape[0] and flat.shape[0]
    if there and not scale_grad_by_freq:  # by which torch's kernel divides wrongly
        starts = offsets
        if starts is None:
            starts = creation.arange(0, flat.shape[0], input.shape[1], dtype=flat.dtype)
        given = None if per_sample_weights is None else ops.reshape(per_sample_weights, (-1,))
        found = ops.embedding_bags(weight, flat, starts, given, mode, padding_idx, sparse)
        return ops.narrow(found, 0, 0, found.shape[0] - 1) if trimmed else found
    places = creation.arange(flat.shape[0], **device_of(weight))
    if offsets is None:
        bags = input.shape[0]
        owner = places // max(1, input.shape[1])
    else:
        bags = offsets.shape[0]
        owner = ops.searchsorted(_starts(offsets, flat.shape[0]), places, True) - 1
    rows = ops.embedding(weight, flat, padding_idx, scale_grad_by_freq, sparse)
    counted = ops.ones_like(ops.narrow(rows.detach(), 1, 0, 1))
    if padding_idx is not None:
        counted = counted * ops.cast(ops.unsqueeze(flat != padding_idx, 1), rows.dtype)
    rows = rows * counted
    if per_sample_weights is not None:
        rows = rows * ops.reshape(per_sample_weights, (-1, 1))
    if mode == "max":
        low = creation.full((bags, weight.shape[1]), -math.inf, dtype=weight.dtype, **device_of(weight))
        hidden = ops.where(counted > 0, rows, -math.inf)
        index = ops.expand(ops.unsqueeze(owner, 1), tuple(rows.shape))
        found = ops.scatter_reduced(low, 0, index, hidden, "amax", True)
        found = ops.where(found == -math.inf, 0.0, found)
    else:
        found = ops.index_put_zeros(rows, [owner], (bags, weight.shape[1]))
    if mode == "mean":
        found = found / ops.clamp(ops.index_put_zeros(counted, [owner], (bags, 1)), 1.0)
    return ops.narrow(found, 0, 0, bags - 1) if trimmed else found


@public("neural")
@in_one(torch._C._nn.one_hot, "d_input, num_classes")  # type: ignore[attr-defined]
def one_hot(input: Tensor, num_classes: int = -1, on_value: Any = 1, off_value: Any = 0) -> Tensor:
    """`on_value` at the index given by each integer, along a new last dimension.

    >>> flow.nn.functional.one_hot(flow.tensor([0, 2]), 3).tolist()
    [[1, 0, 0], [0, 0, 1]]
    """
    if input.dtype.differentiable:
        raise DtypeError(f"one_hot takes integers; got {input.dtype}")
    n = num_classes
    if n == -1:
        reach = (int(ops.amin(input).item()), int(ops.amax(input).item()))
        if reach[0] < 0:
            raise IndexingError(f"one_hot(): Class values must be non-negative; they lie from {reach[0]} to {reach[1]}")
        n = reach[1] + 1
    hot = ops.one_hot(input, n)
    return hot if (on_value, off_value) == (1, 0) else ops.where(ops.ne(hot, 0), on_value, off_value)
