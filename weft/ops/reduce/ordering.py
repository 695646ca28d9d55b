"""Sorting along a dimension, and elements by their order: sort, argsort, topk, kthvalue, mode."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from weft.ops.declaration import op
from weft.ops.index.indexing import scatter_add_zeros
from weft.ops.neural.softmax import along
from weft.ops.reduce.counting import scatter_back, without
from weft.ops.reduce.products import _two
from weft.ops.shape.views import dim_of


@op(returns="values indices*")
def sort(x: Tensor, dim: int = -1, descending: bool = False, stable: bool = False) -> Any:
    """The elements sorted along a dimension, and their indices.

    >>> flow.sort(flow.tensor([3., 1., 2.]))[1].tolist()
    [1, 2, 0]
    """
    return tuple(torch.sort(x, dim=dim, descending=descending, stable=stable))


sort.layout(lambda x, dim, descending, stable: _two(x, dim))


@sort.grad
def _(dvalues, indices, x_shape, dim):
    return scatter_add_zeros(dvalues, dim_of(dim, len(x_shape)), indices, tuple(x_shape))


sort.samples(lambda rand: [rand(4, 6), (rand(4, 6), 0, True)])


@op(returns="indices*")
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

    >>> flow.topk(flow.tensor([3., 1., 2.]), 2)[0].tolist()
    [3.0, 2.0]
    """
    return tuple(torch.topk(x, k, dim, largest, sorted))


topk.layout(lambda x, k, dim, largest, sorted: _two(x, dim, True))


@topk.grad
def _(dvalues, indices, x_shape, dim):
    return scatter_add_zeros(dvalues, dim_of(dim, len(x_shape)), indices, tuple(x_shape))


topk.samples(lambda rand: [(rand(4, 6), 2), (rand(4, 6), 3, 0, False)])


@op(returns="values indices*")
def kthvalue(x: Tensor, k: int, dim: int = -1, keepdim: bool = False) -> Any:
    """The k-th smallest element along a dimension, and its index.

    >>> flow.kthvalue(flow.tensor([3., 1., 2.]), 2)[0].item()
    2.0
    """
    return tuple(torch.kthvalue(x, k, dim, keepdim))


kthvalue.layout(lambda x, k, dim, keepdim: without(x, dim, keepdim))
kthvalue.grad(lambda dvalues, indices, x_shape, dim, keepdim: scatter_back(dvalues, indices, x_shape, dim, keepdim))
kthvalue.samples(lambda rand: [(rand(4, 6), 2), (rand(4, 5), 3, 0, True)])


@op(returns="values indices*")
def mode(x: Tensor, dim: int = -1, keepdim: bool = False) -> Any:
    """The most frequent element along a dimension, and its index.

    >>> flow.mode(flow.tensor([3, 1, 3]))[0].item()
    3
    """
    return tuple(torch.mode(x, dim, keepdim))


mode.layout(lambda x, dim, keepdim: without(x, dim, keepdim))
mode.grad(lambda dvalues, indices, x_shape, dim, keepdim: scatter_back(dvalues, indices, x_shape, dim, keepdim))
mode.samples(lambda rand: [(rand(4, 6), 1), (torch.tensor([[1, 2, 2], [3, 3, 1]]), 1, True)])
