"""Diagonals: diag, diag_embed, diagonal_scatter, block_diag, ..."""

from __future__ import annotations

from typing import Any

import torch

from weft.api.fast_path import in_one
from weft.api.table import public
from weft.core.errors import ShapeError
from weft.functional.create import creation
from weft.functional.create.likeness import device_of
from weft.functional.index.scattering import _same
from weft.functional.shape.joining import atleast_2d
from weft.functional.shape.views import movedim, ravel
from weft.functional.tensor import in_place
from weft.functional.tensor.conversion import cast
from weft.functional.tensor.dtypes import common_type
from weft.functional.tensor.memory_format import contiguous
from weft.ops import ops
from weft.ops.shape.views import dim_of
from weft.tensor.tensor import Tensor


@public("flow tensor")
def diag_embed(x: Tensor, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """Matrices with x's last dimension as their diagonals, zero elsewhere.

    >>> flow.diag_embed(flow.tensor([1, 2])).tolist()
    [[1, 0], [0, 2]]
    """
    n, ndim = x.shape[-1] + abs(offset), x.ndim + 1
    a, b = dim_of(dim1, ndim), dim_of(dim2, ndim)
    made = ops.diagonal_zeros(x, (*x.shape[:-1], n, n), offset, ndim - 2, ndim - 1)
    return contiguous(movedim(made, (ndim - 2, ndim - 1), (a, b)))


@public("flow tensor")
@in_one(torch.diagflat)
def diagflat(x: Tensor, offset: int = 0) -> Tensor:
    """A matrix with x, flattened, as a diagonal."""
    return diag_embed(ravel(x), offset)


@public("tensor")
def fill_diagonal_(x: Tensor, fill_value: Any, wrap: bool = False) -> Tensor:
    """Overwrite the diagonal with one value."""
    n = min(x.shape)
    if x.ndim < 2 or wrap or (x.ndim > 2 and len(set(x.shape)) > 1):
        raise ShapeError(f"fill_diagonal_(): takes a matrix, or equal sizes, and no wrap; got shape {list(x.shape)}")
    at = creation.arange(n, **device_of(x))
    value = in_place.filling(x, fill_value)
    return in_place.copy_(x, ops.index_put(x, [at] * x.ndim, value))


@public("flow tensor")
def diag(x: Tensor, diagonal: int = 0) -> Tensor:
    """A matrix with this diagonal, or the diagonal of a matrix.

    >>> flow.diag(flow.tensor([1, 2])).tolist()
    [[1, 0], [0, 2]]
    """
    if x.ndim == 2:
        return ops.clone(ops.diagonal(x, diagonal, 0, 1))
    if x.ndim != 1:
        raise ShapeError(f"diag(): takes a vector or a matrix; got shape {list(x.shape)}")
    n = x.shape[0] + abs(diagonal)
    return ops.diagonal_zeros(x, (n, n), diagonal, 0, 1)


@public("flow tensor")
def diagonal_scatter(x: Tensor, src: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """x with a diagonal of two dimensions replaced."""
    d1, d2 = dim_of(dim1, x.ndim), dim_of(dim2, x.ndim)
    _same("diagonal_scatter", src, ops.diagonal(x, offset, d1, d2).shape)
    return ops.diagonal_put(x, src, offset, d1, d2)


@public("flow")
def block_diag(*tensors: Any) -> Any:
    """A block-diagonal matrix.

    >>> flow.block_diag(flow.ones(1, 2), flow.ones(1, 1)).tolist()
    [[1.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """
    given: Any = tensors or (creation.empty(1, 0),)
    dtype = common_type(given)
    parts: Any = [cast(atleast_2d(t), dtype) for t in given]
    width, at, rows = sum(p.shape[1] for p in parts), 0, []
    for p in parts:
        rows.append(ops.pad_with(p, (at, width - at - p.shape[1]), 0))
        at += p.shape[1]
    return ops.cat(rows, 0)
