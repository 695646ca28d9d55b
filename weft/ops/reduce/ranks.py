"""kthvalue and mode along a dimension."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from weft.ops.declaration import op
from weft.ops.reduce.counting import scatter_back, without


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
