"""Solvers, pseudo-inverse, rank and condition number."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from weft.api.signature import door
from weft.api.table import public
from weft.core import dtype as dtypes
from weft.core.dispatch import in_own_dtypes
from weft.functional.create import creation
from weft.functional.create.likeness import device_of
from weft.functional.linalg import decompositions, norms
from weft.ops import ops
from weft.tensor.tensor import Tensor


@in_own_dtypes
def pinv(x: Any, atol: Any = None, rtol: Any = None, hermitian: bool = False) -> Any:
    """The pseudo-inverse of matrices; singular values below the tolerance count as zero.

    >>> flow.linalg.pinv(flow.tensor([[2.0, 0.0], [0.0, 0.0]])).tolist()
    [[0.5, 0.0], [0.0, 0.0]]
    """
    if not isinstance(atol, Tensor) and not isinstance(rtol, Tensor):
        return ops.pinv(x, atol, rtol, hermitian)
    u, s, vh = decompositions.svd(x, False)
    parts: Any = s
    tiny = 2.0**-23 if x.dtype is dtypes.float32 else 2.0**-52
    relative = (max(x.shape[-2:]) * tiny if atol is None else 0.0) if rtol is None else rtol
    limit = ops.amax(s, -1, True).detach() * relative
    limit = limit if atol is None else ops.maximum(limit, ops.zeros_like(limit) + atol)
    kept = parts > limit
    inverse = ops.where(kept, 1.0 / ops.where(kept, parts, 1.0), 0.0)
    return ops.matmul(vh.mH * ops.unsqueeze(inverse, -2), u.mH)  # type: ignore[attr-defined]


@public("flow tensor")
def pinverse(x: Any, rcond: float = 1e-15) -> Any:
    """`linalg.pinv` with singular values below `rcond` times the largest taken as zero."""
    return pinv(x, rtol=rcond)


def eigvalsh(x: Tensor, UPLO: str = "L") -> Tensor:
    """The eigenvalues of symmetric matrices, ascending."""
    return decompositions.eigh(x, UPLO)[0]


def solve_triangular(A: Any, B: Any, *, upper: bool, left: bool = True, unitriangular: bool = False) -> Any:
    """The x of A @ x = B, or of x @ A = B, for triangular A."""
    if left:
        return ops.solve_triangle(A, B, upper, unitriangular)
    return ops.solve_triangle(A.mT, B.mT, not upper, unitriangular).mT


@public("flow tensor")
def cholesky_solve(x: Any, L: Any, upper: bool = False) -> Any:
    """The y of A @ y = x, where L is A's Cholesky factor."""
    lower = L.mH if upper else L
    return ops.solve_triangle(lower.mH, ops.solve_triangle(lower, x), True)


@public("flow tensor")
def logdet(x: Any) -> Any:
    """The logarithm of the determinant."""
    sign, size = ops.slogdet(x)
    return ops.where(ops.gt(sign, 0), size, math.nan)


def matrix_rank(x: Any, tol: Any = None, hermitian: bool = False, *, atol: Any = None, rtol: Any = None) -> Any:
    """The number of singular values above the tolerance."""
    s: Any = decompositions.svdvals(x)
    if 0 in s.shape[-1:]:
        return creation.zeros(tuple(s.shape[:-1]), dtype=dtypes.int64, **device_of(x))
    tiny = 2.0**-23 if x.dtype is dtypes.float32 else 2.0**-52
    given = atol if tol is None else tol
    relative = (max(x.shape[-2:]) * tiny if given is None else 0.0) if rtol is None else rtol
    limit = ops.amax(s, -1, True) * relative
    limit = limit if given is None else ops.maximum(limit, ops.zeros_like(limit) + given)
    return ops.sum(ops.cast(s > limit, dtypes.int64), -1)


def cond(x: Any, p: Any = None) -> Any:
    """The condition number of matrices."""
    if x.ndim > 1 and 0 in x.shape[-2:]:
        return creation.zeros(tuple(x.shape[:-2]), dtype=x.dtype, **device_of(x))
    if p in (None, 2, -2):
        s: Any = decompositions.svdvals(x)
        large, small = ops.amax(s, -1), ops.amin(s, -1)
        return small / large if p == -2 else large / small
    return norms.matrix_norm(x, p) * norms.matrix_norm(ops.inv(x), p)  # type: ignore[operator]


@in_own_dtypes
def lstsq(A: Any, B: Any, rcond: Any = None, *, driver: Any = None) -> Any:
    """The least-squares solution of A @ x = B. Returns (x, the squared residuals, rank, singular values); residuals are
    empty if A isn't tall, or lacks full rank. `driver` selects an algorithm; there is one.
    """
    vector = B.ndim == A.ndim - 1
    b = ops.unsqueeze(B, -1) if vector else B
    x, rank = ops.matmul(pinv(A, rtol=rcond), b), matrix_rank(A)
    rows, columns = tuple(A.shape)[-2:]
    overdetermined = rows > columns and bool((rank == columns).all())
    left = ops.sum((ops.matmul(A, x) - b).square(), -2) if overdetermined else decompositions.nothing(A)
    return Solution(ops.squeeze(x, -1) if vector else x, left, rank, decompositions.svdvals(A))


class Solution(NamedTuple):
    """The result of `lstsq`."""

    solution: Any
    residuals: Any
    rank: Any
    singular_values: Any


__all__ = ["cond", "eigvalsh", "lstsq", "matrix_rank", "pinv", "solve_triangular"]

globals().update({name: door(globals()[name]) for name in __all__})
