"""Counting: bincount, unique, ..."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from weft.core import dtype as dtypes
from weft.ops.declaration import op
from weft.ops.form import Form
from weft.ops.pointwise.arithmetic import underived


@op(dynamic=True, returns="y*")
def bincount(x: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
    """How often each number occurs, or the sum of its weights.

    >>> flow.bincount(flow.tensor([1, 1, 3])).tolist()
    [0, 2, 0, 1]
    """
    if x.device.type == "meta":  # the size depends on data
        dtype = torch.int64 if weights is None else weights.dtype if weights.dtype is torch.float32 else torch.float64
        return torch.empty(minlength, dtype=dtype, device="meta")
    return torch.bincount(x, weights, minlength)


@bincount.samples
def _(rand):
    yield (torch.tensor([1, 1, 3]),)
    yield torch.tensor([1, 1, 3]), rand(3), 6
    yield torch.tensor([1, 1, 3]), torch.tensor([2, 3, 4])


@op(dynamic=True, returns="values inverse* counts*")
def unique_values(x: Tensor, dim: int | None = None) -> Any:
    """The unique elements (or slices along a dimension), sorted; the index of each input in them; and their counts.

    >>> [t.tolist() for t in flow._C.unique_values(flow.tensor([3, 1, 3]))]
    [[1, 3], [1, 0, 1], [1, 2]]
    """
    if x.device.type == "meta":
        none = torch.empty(0, dtype=torch.int64, device="meta")
        if dim is None:
            return x.new_empty(0), none.new_empty(x.shape), none
        return x.narrow(dim, 0, 0), none.new_empty(x.shape[dim]), none
    return tuple(torch.unique(x, return_inverse=True, return_counts=True, dim=dim))


unique_values.grad(lambda dvalues: underived("unique"))

unique_values.samples(lambda rand: [(torch.tensor([[3, 1], [3, 2]]),), (torch.tensor([[3, 1], [3, 1], [0, 0]]), 0)])


@op(dynamic=True, returns="places*")
def repeat_places(repeats: Tensor) -> Tensor:
    """0 repeated so many times, then 1, and so on.

    >>> flow._C.repeat_places(flow.tensor([2, 0, 1])).tolist()
    [0, 0, 2]
    """
    if repeats.device.type == "meta":
        return torch.empty(0, dtype=torch.int64, device="meta")
    return torch.repeat_interleave(repeats)


repeat_places.samples(lambda rand: [(torch.tensor([2, 0, 1]),)])


@op(returns="places*")
def repeat_places_in(repeats: Tensor, size: int) -> Tensor:
    """`repeat_places`, whose number is known: a graph may have it.

    >>> flow._C.repeat_places_in(flow.tensor([2, 0, 1]), 3).tolist()
    [0, 0, 2]
    """
    return torch.repeat_interleave(repeats, output_size=size)


@repeat_places_in.form
def _(repeats, size):
    whole = repeats.dtype in (dtypes.int32, dtypes.int64)
    return Form((size,), repeats.dtype) if whole and len(repeats.shape) == 1 and repeats.shape[0] else None


repeat_places_in.samples(lambda rand: [(torch.tensor([2, 0, 1]), 3)])


@op("_, _ -> 1", returns="area*")
def roc_auc(label: Tensor, pred: Tensor) -> Tensor:
    """The area under the ROC curve: the share of (1, 0) pairs in which the 1 is predicted higher; ties count half.

    >>> flow._C.roc_auc(flow.tensor([0, 1]), flow.tensor([0.2, 0.1])).tolist()
    [0.0]
    """
    yes = label != 0
    if label.device.type == "meta":
        return torch.empty(1, dtype=torch.float32, device="meta")
    _, inverse, counts = torch.unique(pred, return_inverse=True, return_counts=True)
    below = counts.cumsum(0) - counts
    rank = (below + (counts + 1) / 2).to(torch.float64)[inverse]  # ties share the mean of their ranks
    ones = yes.sum()
    pairs = ones * (len(label) - ones)
    return ((rank[yes].sum() - ones * (ones + 1) / 2) / pairs).to(torch.float32).reshape(1)


roc_auc.samples(lambda rand: [(torch.tensor([0, 1, 1, 0, 1]), torch.tensor([0.2, 0.3, 0.9, 0.3, 0.1]))])
