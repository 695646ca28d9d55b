"""`flow.linalg`: norms, composed of ops, so that they have gradients and layouts."""

from __future__ import annotations

import math
from typing import Any

from weft.core.errors import ArgumentError
from weft.functional.conversion import cast
from weft.functional.table import calling, public
from weft.tensor.tensor import Tensor

Dims = int | tuple[int, ...] | list[int] | None
_abs, _sum, _pow, _sqrt, _mul, _amax, _amin, _ne = map(
    calling, ("abs", "sum", "pow", "sqrt", "mul", "amax", "amin", "ne")
)


def vector_norm(x: Tensor, ord: float = 2, dim: Dims = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """The norm of x's elements as one vector, over some dimensions or all.

    >>> flow.linalg.vector_norm(flow.tensor([3., 4.])).item()
    5.0
    """
    x = x if dtype is None else cast(x, dtype)
    if ord == 2:
        return _sqrt(_sum(_mul(x, x), dim, keepdim))
    size = _abs(x)
    if ord == math.inf:
        return _amax(size, dim, keepdim)
    if ord == -math.inf:
        return _amin(size, dim, keepdim)
    if ord == 0:
        return _sum(cast(_ne(x, 0), x.dtype), dim, keepdim)
    if ord == 1:
        return _sum(size, dim, keepdim)
    return _pow(_sum(_pow(size, float(ord)), dim, keepdim), 1.0 / ord)


def matrix_norm(
    x: Tensor,
    ord: Any = "fro",
    dim: tuple[int, ...] | list[int] = (-2, -1),
    keepdim: bool = False,
    *,
    dtype: Any = None,
) -> Tensor:
    """The norm of matrices: "fro", 1, -1, inf or -inf."""
    x = x if dtype is None else cast(x, dtype)
    if ord == "fro":
        return vector_norm(x, 2, dim, keepdim)
    if ord not in (1, -1, math.inf, -math.inf):
        raise ArgumentError(f'matrix_norm(): ord is "fro", 1, -1, inf or -inf; got {ord!r}')
    rows, columns = (d % x.ndim for d in dim)
    first, second = (rows, columns) if abs(ord) == 1 else (columns, rows)
    extreme = _amax if ord > 0 else _amin
    y = extreme(_sum(_abs(x), first, True), second, True)
    return y if keepdim else y.squeeze(tuple(dim))  # type: ignore[attr-defined]


@public("flow tensor")
def norm(
    x: Tensor, ord: Any = None, dim: Dims = None, keepdim: bool = False, dtype: Any = None, *, p: Any = None
) -> Tensor:
    """The norm of vectors, or with "fro" of matrices.

    >>> flow.norm(flow.tensor([3., 4.])).item()
    5.0
    """
    ord = p if p is not None else ord
    if isinstance(ord, str):
        return vector_norm(x, 2, dim, keepdim, dtype=dtype) if dim is None else matrix_norm(x, ord, dim, keepdim)  # type: ignore
    return vector_norm(x, 2 if ord is None else ord, dim, keepdim, dtype=dtype)


__all__ = ["matrix_norm", "norm", "vector_norm"]
