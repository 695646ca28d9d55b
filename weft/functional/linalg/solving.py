"""Solvers, least squares, inverses."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

from weft.api.fast_path import in_one
from weft.api.signature import door
from weft.api.table import public
from weft.core import dtype as dtypes
from weft.core.dispatch import in_own_dtypes
from weft.core.errors import OptionError, ShapeError
from weft.functional.create import creation
from weft.functional.create.likeness import device_of
from weft.functional.linalg.decompositions import lu_unpack, svd, svdvals
from weft.functional.linalg.properties import matrix_rank, tolerance
from weft.functional.results import SolvedTriangle, result
from weft.functional.shape.views import movedim
from weft.ops import ops
from weft.tensor.tensor import Tensor


def solve(a: Tensor, b: Tensor, *, left: bool = True) -> Tensor:
    """The x of a @ x = b, or of x @ a = b.

    >>> flow.linalg.solve(flow.tensor([[2., 0.], [0., 4.]]), flow.tensor([2., 4.])).tolist()
    [1.0, 1.0]
    """
    if not left:
        return ops.solve(a.mT, b.mT).mT
    if is_vector(a, b):
        return ops.solve(a, ops.unsqueeze(b, -1)).squeeze(-1)
    return ops.solve(a, b)


def is_vector(a: Any, b: Any) -> bool:
    """Whether the b of a @ x = b is one vector, or one for each matrix."""
    return b.ndim == 1 or (b.ndim == a.ndim - 1 and tuple(b.shape) == tuple(a.shape)[:-1])


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
def triangular_solve(
    x: Any, A: Any, upper: bool = True, transpose: bool = False, unitriangular: bool = False
) -> SolvedTriangle:
    """The y of A @ y = x for triangular A, and A; torch's older name of `linalg.solve_triangular`."""
    a = A.mT if transpose else A
    return result("triangular_solve", ops.solve_triangle(a, x, upper != transpose, unitriangular), ops.clone(A))


@in_own_dtypes
def lu_solve(LU: Any, pivots: Any, B: Any, *, left: bool = True, adjoint: bool = False) -> Any:
    """The x of A @ x = B, from `lu_factor`'s result.

    >>> A = flow.tensor([[0., 2.], [4., 0.]])
    >>> flow.linalg.lu_solve(*flow.linalg.lu_factor(A), flow.tensor([[2.], [4.]])).tolist()
    [[1.0], [1.0]]
    """
    if not left:
        return lu_solve(LU, pivots, B.mH, adjoint=not adjoint).mH
    order, lower, upper = lu_unpack(LU, pivots)
    if adjoint:
        y = ops.solve_triangle(upper.mH, B, False)
        return ops.matmul(order, ops.solve_triangle(lower.mH, y, True, True))
    y = ops.solve_triangle(lower, ops.matmul(order.mT, B), False, True)
    return ops.solve_triangle(upper, y, True)


@public("flow tensor", "lu_solve")
def _lu_solve(b: Any, LU_data: Any, LU_pivots: Any) -> Any:
    """The x of A @ x = b, from `lu_factor`'s result."""
    return lu_solve(LU_data, LU_pivots, b)


@in_own_dtypes
def lstsq(A: Any, B: Any, rcond: Any = None, *, driver: Any = None) -> Any:
    """The least-squares solution of A @ x = B. Returns (x, the squared residuals, rank, singular values); residuals are
    empty if A isn't tall, or lacks full rank. There is one algorithm; `driver` says what of this is returned, as LAPACK
    has it: "gelsy" (the default) ranks, "gels" residuals, "gelsd" and "gelss" all. The rest is empty.
    """
    driver = "gelsy" if driver is None else driver
    if driver not in ("gels", "gelsy", "gelsd", "gelss"):
        raise OptionError(f"lstsq(): parameter `driver` should be one of (gels, gelsy, gelsd, gelss); got {driver!r}")
    vector = B.ndim == A.ndim - 1
    b = ops.unsqueeze(B, -1) if vector else B
    x, (rows, columns), ranked = ops.matmul(pinv(A, rtol=rcond), b), tuple(A.shape)[-2:], driver != "gels"
    none = creation.zeros(0, dtype=A.dtype.to_real(), **device_of(A))
    rank = matrix_rank(A, rtol=rcond) if ranked else ops.cast(none, dtypes.int64)
    told = rows > columns and driver != "gelsy" and bool((rank == columns).all())
    left = ops.sum((ops.matmul(A, x) - b).abs().square(), -2) if told else none
    values = svdvals(A).detach() if driver in ("gelsd", "gelss") else none
    return result("linalg_lstsq", ops.squeeze(x, -1) if vector else x, left, rank, values)


@in_own_dtypes
def pinv(x: Any, rcond: Any = None, hermitian: bool = False, *, atol: Any = None, rtol: Any = None) -> Any:
    """The pseudo-inverse of matrices; singular values below the tolerance count as zero. `rcond` is rtol.

    >>> flow.linalg.pinv(flow.tensor([[2.0, 0.0], [0.0, 0.0]])).tolist()
    [[0.5, 0.0], [0.0, 0.0]]
    """
    rtol = rcond if rtol is None else rtol
    if not isinstance(atol, Tensor) and not isinstance(rtol, Tensor):
        return ops.pinv(x, atol, rtol, hermitian)
    if 0 in x.shape[-2:]:
        return ops.pinv(x, None, None, hermitian)
    u, s, vh = svd(x, False)
    kept = ops.gt(s, tolerance(x, s, atol, rtol))
    inverse = ops.where(kept, 1.0 / ops.where(kept, s, 1.0), 0.0)
    return ops.matmul(vh.mH * ops.unsqueeze(inverse, -2), u.mH)


@public("flow tensor")
def pinverse(x: Any, rcond: float = 1e-15) -> Any:
    """`linalg.pinv` with singular values below `rcond` times the largest taken as zero."""
    return pinv(x, rcond)


@public("flow tensor")
@in_one(torch.cholesky_inverse, derived=True)
def cholesky_inverse(L: Any, upper: bool = False) -> Any:
    """The inverse of A, where L is A's Cholesky factor.

    >>> flow.cholesky_inverse(flow.tensor([[2.0, 0.0], [1.0, 1.0]])).tolist()
    [[0.5, -0.5], [-0.5, 1.0]]
    """
    unit = creation.eye(L.shape[-1], dtype=L.dtype, **device_of(L))
    found = "cholesky_inverse: the inversion could not be completed because the input matrix is singular"
    L = ops.require(L, ops.logical_or(ops.ne(L, 0), ops.eq(ops.expand(unit, tuple(L.shape)), 0)), found)
    return cholesky_solve(unit, L, upper)


def tensorinv(A: Any, ind: int = 2) -> Any:
    """The inverse of a tensor as a linear map to its first `ind` dimensions from the others.

    >>> flow.linalg.tensorinv(flow.eye(4).reshape(4, 2, 2), 1).shape
    torch.Size([2, 2, 4])
    """
    shape = tuple(A.shape)
    n = math.prod(shape[:ind])
    if not 1 <= ind <= A.ndim or n != math.prod(shape[ind:]):
        raise ShapeError(f"tensorinv(): the first {ind} sizes of {list(shape)} and the others must have one product")
    return ops.reshape(ops.inv(ops.reshape(A, (n, n))), shape[ind:] + shape[:ind])


def tensorsolve(A: Any, B: Any, dims: Sequence[int] | None = None) -> Any:
    """The x whose products with A, summed over all of x's dimensions, are B. `dims` of A are moved to its end first.

    >>> flow.linalg.tensorsolve(flow.eye(4).reshape(2, 2, 4), flow.ones(2, 2)).tolist()
    [1.0, 1.0, 1.0, 1.0]
    """
    A = A if dims is None else movedim(A, tuple(dims), tuple(range(A.ndim - len(dims), A.ndim)))
    of_x = tuple(A.shape)[B.ndim :]
    n = math.prod(of_x)
    if n != B.numel():
        raise ShapeError(f"tensorsolve(): {B.numel()} equations for {n} numbers of shape {list(of_x)}")
    return ops.reshape(ops.solve(ops.reshape(A, (n, n)), ops.reshape(B, (n, 1))), of_x)


__all__ = ["lstsq", "lu_solve", "pinv", "solve", "solve_triangular", "tensorinv", "tensorsolve"]

globals().update({name: door(globals()[name]) for name in __all__})
inv = ops.inv
__all__ += ["inv"]
