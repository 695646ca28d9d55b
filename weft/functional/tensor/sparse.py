"""What a sparse gradient holds. Torch's names of it and of its parts."""

from __future__ import annotations

from typing import Any

import torch

from weft.api.table import public
from weft.core.errors import ArgumentError
from weft.ops import ops
from weft.tensor.data import local_data
from weft.tensor.sparse import layout_of
from weft.tensor.tensor import Tensor, of_torch


@public("tensor")
def to_dense(x: Tensor) -> Tensor:
    """x itself, unless it is sparse."""
    return x if layout_of(x) is torch.strided else ops.to_dense(x)


@public("tensor")
def coalesce(x: Tensor) -> Tensor:
    """The same, each index once and in order."""
    return of_torch(_sparse(x, "coalesce").coalesce())


@public("tensor")
def is_coalesced(x: Tensor) -> bool:
    return _sparse(x, "is_coalesced").is_coalesced()


@public("tensor")
def indices(x: Tensor) -> Tensor:
    """The indices of a coalesced sparse tensor, a row for each of its sparse dimensions."""
    return of_torch(_sparse(x, "indices").indices())


@public("tensor")
def values(x: Tensor) -> Tensor:
    """The numbers of a coalesced sparse tensor."""
    return of_torch(_sparse(x, "values").values())


@public("tensor")
def _indices(x: Tensor) -> Tensor:
    """The indices as they are."""
    return of_torch(_sparse(x, "_indices")._indices())


@public("tensor")
def _values(x: Tensor) -> Tensor:
    """The numbers as they are."""
    return of_torch(_sparse(x, "_values")._values())


@public("tensor")
def _nnz(x: Tensor) -> int:
    return _sparse(x, "_nnz")._nnz()


@public("tensor")
def sparse_dim(x: Tensor) -> int:
    return _sparse(x, "sparse_dim").sparse_dim()


@public("tensor")
def dense_dim(x: Tensor) -> int:
    return _sparse(x, "dense_dim").dense_dim()


def _sparse(x: Tensor, name: str) -> Any:
    data = local_data(x, f"{name}()")
    if data.layout is not torch.sparse_coo:
        raise ArgumentError(f"{name}() expected a sparse tensor, and this one is dense")
    return data
