"""Sorting along a dimension, and elements by their order: sort, argsort, topk, kthvalue, median, mode, searchsorted."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from weft.ops.declaration import op
from weft.ops.index.indexing import scatter_back
from weft.ops.neural.softmax import along
from weft.ops.reduce.products import _two
from weft.ops.shape.views import axes, axes_at


@op(returns="values indices*")
def median(x: Tensor, dim: int = -1, keepdim: bool = False) -> Any:
    """The median along a dimension (the lower of two middle elements), and its index.

    >>> flow.median(flow.tensor([3., 1., 2.]), 0)[0].item()
    2.0
    """
    return tuple(torch.median(x, dim, keepdim))


def without(x: tuple[int, ...], dim: int, keepdim: bool) -> str:
    """The notation of an op with two results for each slice along a dimension."""
    return axes_at("<!> -> <1>, <1>" if keepdim else "<!> -> <>, <>", len(x), dim)


median.layout(lambda x, dim, keepdim: without(x, dim, keepdim))
median.grad(lambda dvalues, indices, x_shape, dim, keepdim: scatter_back(dvalues, indices, x_shape, dim, keepdim))
median.samples(lambda rand: [(rand(4, 6), 1), (rand(4, 5), 0, True)])


@op("i!, ... -> ...", returns="y*")
def searchsorted(sorted_sequence: Tensor, values: Tensor, right: bool = False) -> Tensor:
    """The indices at which values would be inserted in a sorted sequence: before equal elements, or after with `right`.

    >>> flow.searchsorted(flow.tensor([1., 3., 5.]), flow.tensor([3., 4.])).tolist()
    [1, 2]
    """
    return torch.searchsorted(sorted_sequence, values.contiguous(), right=right)


@searchsorted.layout
def _(sorted_sequence, values, right):
    if len(sorted_sequence) == 1:
        return "i!, ... -> ..."
    lead = " ".join(axes(len(sorted_sequence) - 1))
    return f"{lead} i!, {lead} j -> {lead} j"


searchsorted.samples(lambda rand: [(rand(6).sort()[0], rand(4, 3)), (rand(4, 6).sort()[0], rand(4, 3), True)])


@op(returns="values indices*", memory_order="first")
def sort(x: Tensor, dim: int = -1, descending: bool = False, stable: bool = False) -> Any:
    """The elements sorted along a dimension, and their indices.

    >>> flow.sort(flow.tensor([3., 1., 2.])).indices.tolist()
    [1, 2, 0]
    """
    return tuple(torch.sort(x, dim=dim, descending=descending, stable=stable))


sort.layout(lambda x, dim, descending, stable: _two(x, dim))
sort.grad(lambda dvalues, indices, x_shape, dim: scatter_back(dvalues, indices, x_shape, dim, True))
sort.samples(lambda rand: [rand(4, 6), (rand(4, 6), 0, True)])


@op(returns="indices*", memory_order="first")
def argsort(x: Tensor, dim: int = -1, descending: bool = False, stable: bool = False) -> Tensor:
    """The indices that sort the elements along a dimension.

    >>> flow.argsort(flow.tensor([3., 1., 2.])).tolist()
    [1, 2, 0]
    """
    return torch.argsort(x, dim=dim, descending=descending, stable=stable)


argsort.layout(lambda x, dim, descending, stable: along(x, dim))
argsort.samples(lambda rand: [rand(4, 6), (rand(4, 6), 0, True)])


@op(returns="values indices*")
def topk(x: Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:
    """The k largest (or smallest) elements along a dimension, and their indices.

    >>> flow.topk(flow.tensor([3., 1., 2.]), 2).values.tolist()
    [3.0, 2.0]
    """
    return tuple(torch.topk(x, k, dim, largest, sorted))


topk.layout(lambda x, k, dim, largest, sorted: _two(x, dim, True))
topk.grad(lambda dvalues, indices, x_shape, dim: scatter_back(dvalues, indices, x_shape, dim, True))
topk.samples(lambda rand: [(rand(4, 6), 2), (rand(4, 6), 3, 0, False)])


@op(returns="values indices*")
def kthvalue(x: Tensor, k: int, dim: int = -1, keepdim: bool = False) -> Any:
    """The k-th smallest element along a dimension, and its index.

    >>> flow.kthvalue(flow.tensor([3., 1., 2.]), 2).values.item()
    2.0
    """
    return tuple(torch.kthvalue(x, k, dim, keepdim))


kthvalue.layout(lambda x, k, dim, keepdim: without(x, dim, keepdim))
kthvalue.grad(lambda dvalues, indices, x_shape, dim, keepdim: scatter_back(dvalues, indices, x_shape, dim, keepdim))
kthvalue.samples(lambda rand: [(rand(4, 6), 2), (rand(4, 5), 3, 0, True)])


@op(returns="values indices*")
def mode(x: Tensor, dim: int = -1, keepdim: bool = False) -> Any:
    """The most frequent element along a dimension, and its index.

    >>> flow.mode(flow.tensor([3, 1, 3])).values.item()
    3
    """
    return tuple(torch.mode(x, dim, keepdim))


mode.layout(lambda x, dim, keepdim: without(x, dim, keepdim))
mode.grad(lambda dvalues, indices, x_shape, dim, keepdim: scatter_back(dvalues, indices, x_shape, dim, keepdim))
mode.samples(lambda rand: [(rand(4, 6), 1), (torch.tensor([[1, 2, 2], [3, 3, 1]]), 1, True)])
