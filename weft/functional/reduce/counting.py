"""count_nonzero, unique, unique_consecutive, roc_auc_score."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from weft.api.fast_path import in_one
from weft.api.table import public
from weft.core import dtype as dtypes
from weft.functional.create import creation
from weft.functional.create.likeness import device_of
from weft.functional.reduce.running import diff
from weft.functional.tensor.conversion import cast
from weft.ops import ops
from weft.tensor.tensor import Tensor


@public("flow tensor")
@in_one(torch.count_nonzero)
def count_nonzero(x: Tensor, dim: int | Sequence[int] | None = None) -> Tensor:
    """The number of nonzero elements, over some dimensions or all.

    >>> flow.count_nonzero(flow.tensor([0, 2, 3])).item()
    2
    """
    return ops.sum(cast(ops.ne(x, 0), dtypes.int64), dim)


@public("flow tensor")
def unique_consecutive(
    x: Any, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:
    """The elements with consecutive duplicates removed.

    >>> flow.unique_consecutive(flow.tensor([1, 1, 2, 1])).tolist()
    [1, 2, 1]
    """
    rows = ops.reshape(x, (-1,)) if dim is None else ops.transpose(x, 0, dim)
    n, steps = rows.shape[0], max(rows.shape[0] - 1, 0)
    flat = ops.reshape(rows, (n, rows.numel() // max(n, 1)))
    changes = ops.any(ops.ne(ops.narrow(flat, 0, n - steps, steps), ops.narrow(flat, 0, 0, steps)), 1)
    starts = ops.cat([creation.ones(n - steps, dtype=dtypes.bool_, **device_of(x)), changes], 0)
    at = ops.select(ops.nonzero(starts), 1, 0)
    kept = ops.index_select(rows, 0, at)
    found = [kept if dim is None else ops.transpose(kept, 0, dim)]
    if return_inverse:
        inverse = ops.cumsum(cast(starts, dtypes.int64), 0) - 1
        found.append(ops.reshape(inverse, tuple(x.shape)) if dim is None else inverse)
    if return_counts:
        found.append(diff(ops.cat([at, creation.tensor([n], **device_of(x))], 0)))
    return tuple(found) if len(found) > 1 else found[0]


@public("flow")
def roc_auc_score(label: Tensor, pred: Tensor) -> Tensor:
    """The area under the ROC curve: the probability that a 1 is predicted higher than a 0; ties count half.

    >>> flow.roc_auc_score(flow.tensor([0, 1, 1]), flow.tensor([0.2, 0.1, 0.9])).tolist()
    [0.5]
    """
    return ops.roc_auc(ops.reshape(label, (-1,)), ops.reshape(pred, (-1,)))


@public("flow tensor")
def unique(
    x: Tensor, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None,
    *, dtype: Any = None,
) -> Any:  # fmt: skip
    """The unique elements, sorted; optionally the index of each element in them, and their counts.

    >>> flow.unique(flow.tensor([3, 1, 3])).tolist()
    [1, 3]
    """
    values, inverse, counts = ops.unique_values(x, dim)
    more = [
        t if dtype is None else cast(t, dtype) for t, w in ((inverse, return_inverse), (counts, return_counts)) if w
    ]
    return (values, *more) if more else values
