"""embedding, embedding_bag and one_hot."""

from __future__ import annotations

import math
from typing import Any

from weft.api.table import public
from weft.autograd import no_grad
from weft.autograd.inplace import assign
from weft.core.errors import DtypeError, IndexingError, OptionError
from weft.core.idle import idle
from weft.functional.create import creation
from weft.functional.create.likeness import device_of
from weft.functional.linalg import norms
from weft.ops import ops
from weft.tensor.tensor import Tensor


@public("neural")
def embedding(
    input: Tensor, weight: Tensor, padding_idx: int | None = None, max_norm: float | None = None,
    norm_type: float = 2.0, scale_grad_by_freq: bool = False, sparse: bool = False,
) -> Tensor:  # fmt: skip
    """The rows of the weight at the input's indices. `scale_grad_by_freq` divides each row's gradient by the count of
    its index.

    >>> flow.nn.functional.embedding(flow.tensor([1]), flow.tensor([[1., 2.], [3., 4.]])).tolist()
    [[3.0, 4.0]]
    """
    idle("embedding(sparse)", sparse)
    if max_norm is not None:
        embedding_renorm_(weight, input, max_norm, norm_type)
    return ops.embedding(weight, input, padding_idx, scale_grad_by_freq)


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
    idle("embedding_bag(sparse)", sparse)
    if max_norm is not None:
        embedding_renorm_(weight, input, max_norm, norm_type)
    flat = ops.reshape(input, (-1,))
    if padding_idx is not None and padding_idx < 0:
        padding_idx += weight.shape[0]
    if offsets is None:
        bags, each = input.shape
        owner = creation.arange(bags * each, **device_of(weight)) // each
    else:
        starts = offsets if not include_last_offset else ops.narrow(offsets, 0, 0, offsets.shape[0] - 1)
        bags = starts.shape[0]
        places = creation.arange(flat.shape[0], **device_of(weight))
        owner = ops.searchsorted(starts, places, True) - 1
    rows = ops.embedding(weight, flat, padding_idx, scale_grad_by_freq)
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
        return ops.where(found == -math.inf, 0.0, found)
    summed = ops.index_put_zeros(rows, [owner], (bags, weight.shape[1]))
    if mode == "sum":
        return summed
    return summed / ops.clamp(ops.index_put_zeros(counted, [owner], (bags, 1)), 1.0)


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


__all__ = ["embedding_bag", "one_hot"]
