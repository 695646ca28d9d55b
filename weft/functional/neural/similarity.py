"""Distances and similarities of rows; normalization."""

from __future__ import annotations

from typing import Any

import torch

from weft.api.fast_path import in_one
from weft.api.table import public
from weft.core import dtype as dtypes
from weft.core.errors import DtypeError
from weft.functional.create import creation
from weft.functional.create.likeness import device_of
from weft.functional.linalg.norms import vector_norm
from weft.functional.shape.broadcasting import broadcast_shapes
from weft.functional.tensor.conversion import in_float32
from weft.functional.tensor.dtypes import promote_types
from weft.ops import ops
from weft.tensor.tensor import Tensor


@public("neural flow")
@in_one(torch.pdist, derived=True)
@in_float32
def pdist(input: Any, p: float = 2.0) -> Any:
    """The distances between all pairs of rows."""
    n = input.shape[0]
    pairs = [(i, j) for i in range(n) for j in range(i + 1, n)]
    first, second = (creation.tensor([q[k] for q in pairs], dtype=dtypes.int64, **device_of(input)) for k in (0, 1))
    return vector_norm(ops.index_select(input, 0, first) - ops.index_select(input, 0, second), p, -1)


@public("neural flow")
@in_one(torch.pairwise_distance)
@in_float32
def pairwise_distance(x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> Tensor:
    """The p-norm of the difference, along the last dimension."""
    return vector_norm(ops.add(ops.sub(x1, x2), eps), p, -1, keepdim)


@public("neural")
@in_float32
def normalize(input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12) -> Tensor:
    """x over its p-norm along `dim`.

    >>> flow.nn.functional.normalize(flow.tensor([[3.0, 4.0]])).tolist()
    [[0.6..., 0.8...]]
    """
    return ops.div(input, ops.clamp(vector_norm(input, p, dim, True), eps))


@public("neural flow")
@in_one(torch.cosine_similarity, derived=True)
@in_float32
def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """The cosine of the angle between two tensors, along `dim`."""
    common = promote_types(x1.dtype, x2.dtype)
    if not common.is_floating_point:
        raise DtypeError(
            f"cosine_similarity(): expected common dtype to be floating point, yet common dtype is {common}: x.float()"
        )
    if x1.shape != x2.shape:
        shape = tuple(broadcast_shapes(tuple(x1.shape), tuple(x2.shape)))
        x1, x2 = ops.expand(x1, shape), ops.expand(x2, shape)
    dot = ops.sum(ops.mul(x1, x2), dim)
    return ops.div(dot, ops.mul(*(ops.clamp(vector_norm(x, 2.0, dim), eps) for x in (x1, x2))))
