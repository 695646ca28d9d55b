"""Norms of vectors and matrices; `flow.norm`, whose options aren't those of `linalg.norm`."""

from __future__ import annotations

import builtins
import math
from typing import Any

import torch

from weft.api.fast_path import in_one
from weft.api.signature import door
from weft.api.table import public
from weft.core.errors import ArgumentError, ShapeError
from weft.functional.tensor.conversion import cast, in_float32
from weft.functional.tensor.in_place import with_in_place
from weft.ops import ops
from weft.ops.pointwise.complex_numbers import real
from weft.ops.reduce.sums import Dims, dims_of
from weft.ops.shape.views import dim_of
from weft.tensor.sparse import is_dense, numbers
from weft.tensor.tensor import Tensor, of_torch


@with_in_place
@in_one(torch.renorm, derived=True)
def renorm(x: Any, p: float, dim: int, maxnorm: float) -> Any:
    """x with each slice along a dimension scaled down to a p-norm of at most maxnorm."""
    if x.ndim < 2:
        raise ShapeError(f"renorm: input needs at least 2 dimensions, got {x.ndim} dimensions")
    if not p > 0 or maxnorm < 0:
        raise ShapeError(
            f"renorm: non-positive-norm not supported, nor a maxnorm below zero; got p={p}, maxnorm={maxnorm}"
        )
    others = tuple(d for d in builtins.range(x.ndim) if d != dim_of(dim, x.ndim))
    size: Any = vector_norm(x, float(p), others, True)
    return x * ops.where(size > maxnorm, maxnorm / (size + 1e-7), 1.0)


@public("flow")
def frobenius_norm(x: Tensor, dim: Any = None, keepdim: bool = False) -> Tensor:
    """The root of the sum of squares, over some dimensions or all."""
    return vector_norm(x, 2, None if dim == () else dim, keepdim)


@public("flow")
def nuclear_norm(x: Tensor, dim: Any = (-2, -1), keepdim: bool = False) -> Tensor:
    """The sum of the singular values."""
    return matrix_norm(x, "nuc", dim, keepdim)


@in_one(torch.linalg.vector_norm)
@in_float32
def vector_norm(x: Tensor, ord: float = 2, dim: Dims = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """The norm of x's elements as one vector, over some dimensions or all.

    >>> flow.linalg.vector_norm(flow.tensor([3., 4.])).item()
    5.0
    """
    if not is_dense(x):
        x = ops.to_dense(x) if x.requires_grad or dim is not None or keepdim else of_torch(numbers(x))
    x = x if dtype is None else cast(x, dtype)
    if ord == 2 and x.is_local and x.dtype.is_floating_point:
        return ops.euclidean_norm(x, dims_of(dim, x.ndim), keepdim)
    if ord == 2:
        squares = real(ops.mul(x, ops.conj(x))) if x.dtype.is_complex else ops.mul(x, x)
        return ops.root(ops.sum(squares, dim, keepdim))
    x = ops.abs(x) if x.dtype.is_complex else x
    size = ops.abs(x)
    if ord == math.inf:
        return ops.amax(size, dim, keepdim)
    if ord == -math.inf:
        return ops.amin(size, dim, keepdim)
    if ord == 0:
        return ops.sum(cast(ops.ne(x, 0), x.dtype), dim, keepdim)
    if ord == 1:
        return ops.sum(size, dim, keepdim)
    if ord < 1:  # the derivative at zero is infinite, and taken as zero
        none = ops.eq(x, 0)
        powers = ops.pow(ops.masked_fill(size, none, 1.0), float(ord))
        powers = ops.masked_fill(powers, none, 0.0 if ord > 0 else math.inf)
    else:
        powers = ops.pow(size, float(ord))
    return ops.root(ops.sum(powers, dim, keepdim), float(ord))


@in_one(torch.linalg.matrix_norm)
def matrix_norm(
    x: Tensor, ord: Any = "fro", dim: tuple[int, ...] | list[int] = (-2, -1), keepdim: bool = False, *,
    dtype: Any = None,
) -> Tensor:  # fmt: skip
    """The norm of matrices: "fro", "nuc", 1, -1, 2, -2, inf or -inf.

    >>> flow.linalg.matrix_norm(flow.eye(3), 2).item()
    1.0
    """
    x = x if dtype is None else cast(x, dtype)
    if ord == "fro":
        return vector_norm(x, 2, dim, keepdim)
    if ord not in ("nuc", 1, -1, 2, -2, math.inf, -math.inf):
        raise ArgumentError(f'matrix_norm(): ord must be "fro", "nuc", 1, -1, 2, -2, inf or -inf; got {ord!r}')
    rows, columns = (dim_of(d, x.ndim) for d in dim)
    if ord in ("nuc", 2, -2):  # by singular values: their sum, the largest, the smallest
        rest = tuple(d for d in range(x.ndim) if d not in (rows, columns))
        values = ops.svd(ops.permute(x, (*rest, rows, columns)))[1]
        y = ops.sum(values, -1) if ord == "nuc" else _extreme(values, -1, ord)
        form = tuple(1 if d in (rows, columns) else n for d, n in enumerate(x.shape))
        return ops.reshape(y, form) if keepdim else y
    first, second = (rows, columns) if abs(ord) == 1 else (columns, rows)
    y = _extreme(ops.sum(ops.abs(x), first, True), second, ord, True)
    return y if keepdim else y.squeeze(tuple(dim))


def _extreme(sizes: Any, dim: int, ord: float, keepdim: bool = False) -> Any:
    """The largest size, or with a negative order the smallest; zero where there are none."""
    if ord > 0:
        return (ops.amax if sizes.shape[dim] else ops.sum)(sizes, dim, keepdim)
    return ops.amin(sizes, dim, keepdim)


@in_one(torch.linalg.norm)
def norm(x: Any, ord: Any = None, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """The norm of vectors or matrices: of matrices if `dim` names two dimensions, or x is 2-d and `ord` is given.

    >>> flow.linalg.norm(flow.eye(4)).item(), flow.linalg.norm(flow.eye(4), 2).item()
    (2.0, 1.0)
    """
    pair = tuple(dim) if isinstance(dim, (tuple, list)) and len(dim) == 2 else None
    pair = (-2, -1) if dim is None and x.ndim == 2 else pair
    if ord is not None and pair is not None:
        return matrix_norm(x, ord, pair, keepdim, dtype=dtype)
    return vector_norm(x, 2 if ord is None else ord, dim, keepdim, dtype=dtype)


@public("flow tensor", "norm")
@in_one(torch.linalg.vector_norm, "d_x, (2 if ord is None else ord) if p is None else p, dim, keepdim")
def _flow_norm(
    x: Tensor, ord: Any = None, dim: Dims = None, keepdim: bool = False, dtype: Any = None, *, p: Any = None
) -> Tensor:
    """The norm of vectors, or with "fro" of matrices.

    >>> flow.norm(flow.tensor([3., 4.])).item()
    5.0
    """
    ord = p if p is not None else ord
    if isinstance(ord, str):
        if ord == "fro":  # the vector 2-norm, for any number of dimensions
            return vector_norm(x, 2, dim, keepdim, dtype=dtype)
        return matrix_norm(x, ord, (-2, -1) if dim is None else dim, keepdim, dtype=dtype)  # type: ignore[arg-type]
    return vector_norm(x, 2 if ord is None else ord, dim, keepdim, dtype=dtype)


__all__ = ["matrix_norm", "norm", "vector_norm"]

globals().update({name: door(globals()[name]) for name in __all__})
