"""Elements by their indices: take, of the flattened tensor, and take_along_dim."""

from __future__ import annotations

import torch

from weft.api.fast_path import in_one
from weft.api.table import public
from weft.core.errors import ShapeError
from weft.functional.shape.broadcasting import broadcast_shapes
from weft.ops import ops
from weft.ops.shape.views import dim_of
from weft.tensor.tensor import Tensor


@public("flow tensor")
@in_one(torch.take)
def take(x: Tensor, index: Tensor) -> Tensor:
    """The elements at these indices of the flattened x.

    >>> flow.take(flow.tensor([[1, 2], [3, 4]]), flow.tensor([0, 3])).tolist()
    [1, 4]
    """
    return ops.index(ops.reshape(x, (-1,)), [index])


@public("flow tensor")
def take_along_dim(x: Tensor, indices: Tensor, dim: int | None = None) -> Tensor:
    """The elements of x at these indices along a dimension, the others broadcast; without `dim`, of x flattened."""
    if dim is None:
        return ops.gather(ops.reshape(x, (-1,)), 0, ops.reshape(indices, (-1,)))
    if indices.ndim != x.ndim:
        raise ShapeError(
            "take_along_dim(): input and indices should have the same number of dimensions; got shapes "
            f"{list(x.shape)} and {list(indices.shape)}"
        )
    d = dim_of(dim, x.ndim)
    form, places = list(x.shape), list(indices.shape)
    form[d] = places[d] = 1
    shape = tuple(broadcast_shapes(form, places))
    left, right = ((*shape[:d], t.shape[d], *shape[d + 1 :]) for t in (x, indices))
    indices = ops.where(ops.lt(indices, 0), ops.add(indices, x.shape[d]), indices)  # from the last
    return ops.gather(ops.expand(x, left), d, ops.expand(indices, right))
