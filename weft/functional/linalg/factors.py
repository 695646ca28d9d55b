"""LU factors, eigenvalues, low-rank decompositions, and what is solved with them; tensor equations."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from weft.api.signature import door
from weft.api.table import public
from weft.core.dispatch import in_own_dtypes
from weft.core.errors import ArgumentError, ShapeError
from weft.functional.create import creation
from weft.functional.create.likeness import device_of
from weft.functional.linalg import decompositions, solving
from weft.functional.linalg.decompositions import Eigen
from weft.functional.shape.views import movedim
from weft.ops import ops
from weft.ops.linalg.factors import with_ones

eigvals = ops.eigvals


class Triangles(NamedTuple):
    """The result of `lu`: x = P @ L @ U."""

    P: Any
    L: Any
    U: Any


class Packed(NamedTuple):
    """The result of `lu_factor`."""

    LU: Any
    pivots: Any


def eig(x: Any) -> Eigen:
    """The complex eigenvalues of square matrices, and their eigenvectors as columns.

    >>> flow.linalg.eig(flow.tensor([[0., 1.], [-1., 0.]])).eigenvalues.tolist()
    [1j, -1j]
    """
    return Eigen(*ops.eig(x))


def check_pivot(pivot: bool) -> None:
    if not pivot:
        raise ArgumentError("pivoting is always used; leave pivot=False out")


def lu_factor(A: Any, *, pivot: bool = True) -> Packed:
    """The LU factors of matrices in one matrix, L without its unit diagonal; and the pivots.

    >>> flow.linalg.lu_factor(flow.tensor([[0., 2.], [4., 0.]])).LU.tolist()
    [[4.0, 0.0], [0.0, 2.0]]
    """
    check_pivot(pivot)
    return Packed(*ops.lu_factor(A))


def lu(A: Any, *, pivot: bool = True) -> Triangles:
    """The LU decomposition: a permutation, a unit lower triangular and an upper triangular matrix.

    >>> [part.tolist() for part in flow.linalg.lu(flow.tensor([[0., 2.], [4., 0.]]))]
    [[[0.0, 1.0], [1.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]], [[4.0, 0.0], [0.0, 2.0]]]
    """
    check_pivot(pivot)
    return lu_unpack(*ops.lu_factor_ex(A)[:2])  # also for singular matrices


@public("flow")
def lu_unpack(LU_data: Any, LU_pivots: Any, unpack_data: bool = True, unpack_pivots: bool = True) -> Triangles:
    """P, L and U from `lu_factor`'s result; empty if not unpacked."""
    n, m = tuple(LU_data.shape)[-2:]
    nothing = decompositions.nothing(LU_data)
    order = ops.permutation_of(LU_pivots, n, LU_data.dtype) if unpack_pivots else nothing
    if not unpack_data:
        return Triangles(order, nothing, nothing)
    least = min(n, m)
    lower = with_ones(ops.tril(ops.narrow(LU_data, -1, 0, least), -1))
    return Triangles(order, lower, ops.triu(ops.narrow(LU_data, -2, 0, least), 0))


@in_own_dtypes
def lu_solve(LU: Any, pivots: Any, B: Any, *, left: bool = True, adjoint: bool = False) -> Any:
    """The x of A @ x = B, from `lu_factor`'s result.

    >>> A = flow.tensor([[0., 2.], [4., 0.]])
    >>> flow.linalg.lu_solve(*flow.linalg.lu_factor(A), flow.tensor([[2.], [4.]])).tolist()
    [[1.0], [1.0]]
    """
    if not left:
        return lu_solve(LU, pivots, B.mT, adjoint=not adjoint).mT if not LU.dtype.is_complex else _complex_right()
    order, lower, upper = lu_unpack(LU, pivots)
    if adjoint:
        y = ops.solve_triangle(upper.mH, B, False)
        return ops.matmul(order, ops.solve_triangle(lower.mH, y, True, True))
    y = ops.solve_triangle(lower, ops.matmul(order.mT, B), False, True)
    return ops.solve_triangle(upper, y, True)


def _complex_right() -> Any:
    raise ArgumentError("lu_solve(): left=False of complex matrices has no counterpart here; transpose the equation")


@public("flow tensor", "lu_solve")
def _lu_solve(b: Any, LU_data: Any, LU_pivots: Any) -> Any:
    """The x of A @ x = b, from `lu_factor`'s result."""
    return lu_solve(LU_data, LU_pivots, b)


@public("flow tensor")
def cholesky_inverse(L: Any, upper: bool = False) -> Any:
    """The inverse of A, where L is A's Cholesky factor.

    >>> flow.cholesky_inverse(flow.tensor([[2.0, 0.0], [0.0, 1.0]])).tolist()
    [[0.25, 0.0], [0.0, 1.0]]
    """
    return solving.cholesky_solve(creation.eye(L.shape[-1], dtype=L.dtype, **device_of(L)), L, upper)


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


@public("flow")
def svd_lowrank(A: Any, q: int = 6, niter: int = 2, M: Any = None) -> tuple[Any, Any, Any]:
    """The first q singular vectors and values of A, or of A - M: exact, so `niter` has no effect.

    >>> flow.svd_lowrank(flow.tensor([[2.0, 0.0], [0.0, 1.0]]), q=1)[1].tolist()
    [2.0]
    """
    u, s, vh = decompositions.svd(A if M is None else A - M, False)
    q = min(q, s.shape[-1])
    return ops.narrow(u, -1, 0, q), ops.narrow(s, -1, 0, q), ops.narrow(vh, -2, 0, q).mH


@public("flow")
def pca_lowrank(A: Any, q: int | None = None, center: bool = True, niter: int = 2) -> tuple[Any, Any, Any]:
    """The first q principal components of A's rows: u, s and v."""
    least = min(tuple(A.shape)[-2:])
    return svd_lowrank(A - ops.mean(A, -2, True) if center else A, min(6, least) if q is None else q, niter)


__all__ = [  # the names in `flow.linalg`
    "eig", "eigvals", "lu", "lu_factor", "lu_solve", "tensorinv", "tensorsolve",
]  # fmt: skip

globals().update({name: door(globals()[name]) for name in __all__})
