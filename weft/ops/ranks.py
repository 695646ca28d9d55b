"""Elements by their rank along a dimension: running extremes, the k-th, the most frequent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from weft.ops.counting import back_to_places, without
from weft.ops.declaration import Op, op
from weft.ops.indexing import scatter_add_zeros
from weft.ops.shape import dim_of
from weft.ops.softmax import along


def _running(name: str, kernel: Callable[..., Any], which: str, shows: str) -> Op:
    def body(x: Tensor, dim: int) -> Any:
        return tuple(kernel(x, dim))

    body.__name__ = name
    body.__doc__ = (
        f"The {which} of each element and all before it along a dimension, and where it stands.\n\n"
        f">>> flow.{name}(flow.tensor([2., 3., 1.]), 0)[0].tolist()\n{shows}"
    )
    declared = op(returns="values indices*")(body)
    declared.layout(lambda x, dim: f"{along(x, dim)}, {along(x, dim).partition('-> ')[2]}")

    @declared.grad
    def _(dvalues, indices, x_shape, dim):
        return scatter_add_zeros(dvalues, dim_of(dim, len(x_shape)), indices, tuple(x_shape))

    declared.samples(lambda rand: [(rand(4, 6), 1), (rand(2, 4, 6), -2)])
    return declared


cummax = _running("cummax", torch.cummax, "largest", "[2.0, 3.0, 3.0]")
cummin = _running("cummin", torch.cummin, "smallest", "[2.0, 2.0, 1.0]")


@op(returns="values indices*")
def kthvalue(x: Tensor, k: int, dim: int = -1, keepdim: bool = False) -> Any:
    """The k-th smallest element along a dimension, and where it stands.

    >>> flow.kthvalue(flow.tensor([3., 1., 2.]), 2)[0].item()
    2.0
    """
    return tuple(torch.kthvalue(x, k, dim, keepdim))


kthvalue.layout(lambda x, k, dim, keepdim: without(x, dim, keepdim))
kthvalue.grad(lambda dvalues, indices, x_shape, dim, keepdim: back_to_places(dvalues, indices, x_shape, dim, keepdim))
kthvalue.samples(lambda rand: [(rand(4, 6), 2), (rand(4, 5), 3, 0, True)])


@op(returns="values indices*")
def mode(x: Tensor, dim: int = -1, keepdim: bool = False) -> Any:
    """The most frequent element along a dimension, and where it stands.

    >>> flow.mode(flow.tensor([3, 1, 3]))[0].item()
    3
    """
    return tuple(torch.mode(x, dim, keepdim))


mode.layout(lambda x, dim, keepdim: without(x, dim, keepdim))
mode.grad(lambda dvalues, indices, x_shape, dim, keepdim: back_to_places(dvalues, indices, x_shape, dim, keepdim))
mode.samples(lambda rand: [(rand(4, 6), 1), (torch.tensor([[1, 2, 2], [3, 3, 1]]), 1, True)])
