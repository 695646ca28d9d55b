"""Decompositions of matrices: Cholesky, QR, LU, eigenvalues, singular values."""

from __future__ import annotations

import functools
from typing import Any

from weft.api.signature import door
from weft.api.table import public
from weft.core.dispatch import in_own_dtypes
from weft.core.errors import ArgumentError, OptionError
from weft.functional.create import creation
from weft.functional.create.likeness import device_of
from weft.functional.results import QR, SVD, Eigen, Packed, SVDWithV, Triangles, result, returning
from weft.ops import ops
from weft.ops.linalg.decompositions import with_ones
from weft.tensor.tensor import Tensor

eig, eigvals = returning(Eigen, "eig", "linalg_"), ops.eigvals


@public("flow tensor")
def cholesky(x: Tensor, upper: bool = False) -> Tensor:
    """The lower triangular l of x = l @ l.T, for symmetric positive definite x; or its transpose, `upper`.

    >>> flow.linalg.cholesky(flow.tensor([[4., 0.], [0., 9.]])).tolist()
    [[2.0, 0.0], [0.0, 3.0]]
    """
    lower = ops.cholesky(x)
    return lower.mH if upper else lower


@in_own_dtypes
def qr(x: Tensor, mode: str = "reduced") -> QR:
    """The QR decomposition, x = q @ r: "reduced", or "complete" with a square q; with "r", q is empty. The columns that
    complete q have no gradient.

    >>> flow.linalg.qr(flow.eye(2)).R.abs().tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    mode = {True: "reduced", False: "complete"}.get(mode, mode)  # type: ignore[call-overload]  # flow.qr(x, some=True)
    if mode not in ("reduced", "complete", "r"):
        raise ArgumentError(f'qr(): mode must be "reduced", "complete" or "r"; got {mode!r}')
    n, m = tuple(x.shape)[-2:]
    if n >= m:
        q, r = ops.qr(x)
        if mode == "complete" and n > m:
            q = ops.cat([q, ops.completion(q)], -1)
            r = ops.cat([r, ops.zeros_like(ops.narrow(x, -2, 0, n - m).detach())], -2)
        return result("linalg_qr", nothing(x) if mode == "r" else q, r)
    q, r = ops.qr(ops.narrow(x, -1, 0, n))  # signs follow the first columns
    r = ops.cat([r, ops.matmul(q.mH, ops.narrow(x, -1, n, m - n))], -1)
    return result("linalg_qr", nothing(x) if mode == "r" else q, r)


@public("flow tensor", "qr")
@functools.wraps(qr)
def _qr(x: Tensor, mode: str = "reduced") -> QR:
    return result("qr", *qr(x, mode))


def nothing(x: Tensor) -> Tensor:
    """An empty tensor of x's dtype."""
    return creation.zeros(0, dtype=x.dtype, **device_of(x))


def check_pivot(pivot: bool) -> None:
    if not pivot:
        raise ArgumentError("pivoting is always used; leave pivot=False out")


def lu(A: Any, *, pivot: bool = True) -> Triangles:
    """The LU decomposition: a permutation, a unit lower triangular and an upper triangular matrix.

    >>> [part.tolist() for part in flow.linalg.lu(flow.tensor([[0., 2.], [4., 0.]]))]
    [[[0.0, 1.0], [1.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]], [[4.0, 0.0], [0.0, 2.0]]]
    """
    check_pivot(pivot)
    return result("linalg_lu", *lu_unpack(*ops.lu_factor_ex(A)[:2]))  # also for singular matrices


def lu_factor(A: Any, *, pivot: bool = True) -> Packed:
    """The LU factors of matrices in one matrix, L without its unit diagonal; and the pivots.

    >>> flow.linalg.lu_factor(flow.tensor([[0., 2.], [4., 0.]])).LU.tolist()
    [[4.0, 0.0], [0.0, 2.0]]
    """
    check_pivot(pivot)
    return result("linalg_lu_factor", *ops.lu_factor(A))


@public("flow")
def lu_unpack(LU_data: Any, LU_pivots: Any, unpack_data: bool = True, unpack_pivots: bool = True) -> Triangles:
    """P, L and U from `lu_factor`'s result; empty if not unpacked."""
    n, m = tuple(LU_data.shape)[-2:]
    none = nothing(LU_data)
    order = ops.permutation_of(LU_pivots, n, LU_data.dtype) if unpack_pivots else none
    if not unpack_data:
        return result("lu_unpack", order, none, none)
    least = min(n, m)
    lower = with_ones(ops.tril(ops.narrow(LU_data, -1, 0, least), -1))
    return result("lu_unpack", order, lower, ops.triu(ops.narrow(LU_data, -2, 0, least), 0))


def eigh(x: Tensor, UPLO: str = "L") -> Eigen:
    """The eigenvalues of symmetric matrices, ascending, and their eigenvectors as columns. Only the lower triangle is
    read, or with UPLO="U" the upper.
    """
    return result("linalg_eigh", *ops.eigh(lower_of(x, UPLO)))


def lower_of(x: Tensor, UPLO: str) -> Tensor:
    """A matrix whose lower triangle represents the symmetric matrix."""
    if UPLO not in ("L", "U"):
        raise ArgumentError(f'eigh(): UPLO must be "L" or "U", the triangle to read; got {UPLO!r}')
    return x if UPLO == "L" else x.mH


def eigvalsh(x: Tensor, UPLO: str = "L") -> Tensor:
    """The eigenvalues of symmetric matrices, ascending."""
    return eigh(x, UPLO)[0]


def svd(x: Tensor, full_matrices: bool = True, *, driver: str | None = None) -> SVD:
    """The singular value decomposition, x = u @ diag(s) @ vh, with square u and vh, or reduced. The columns that
    complete them have no gradient. `driver` selects an algorithm on CUDA; it is ignored.
    """
    u, s, vh = ops.svd(x)
    if full_matrices and u.shape[-2] > u.shape[-1]:
        u = ops.cat([u, ops.completion(u)], -1)
    if full_matrices and vh.shape[-1] > vh.shape[-2]:
        vh = ops.cat([vh, ops.completion(vh.mH).mH], -2)
    return result("linalg_svd", u, s, vh)


@public("flow tensor", "svd")
def _svd_with_v(x: Tensor, some: bool = True, compute_uv: bool = True) -> SVDWithV:
    """The singular value decomposition, x = u @ diag(s) @ v.T, reduced with `some`. Returns u, s and v."""
    if not compute_uv:
        raise ArgumentError("svd(): u and v are always computed; leave compute_uv=False out, or use linalg.svdvals()")
    u, s, vh = svd(x, not some)
    return result("svd", u, s, vh.mH)


def svdvals(x: Tensor, *, driver: str | None = None) -> Tensor:
    """The singular values of matrices, descending."""
    return ops.svd(x)[1]


@public("flow")
def svd_lowrank(A: Any, q: int | None = 6, niter: int | None = 2, M: Any = None) -> tuple[Any, Any, Any]:
    """About the first q singular vectors and values of A, or of A - M, from q random directions that `niter` steps turn
    towards them: faster than `svd` of a large A.

    >>> flow.svd_lowrank(flow.tensor([[2.0, 0.0], [0.0, 0.0]]), q=1)[1].round(decimals=4).tolist()
    [2.0]
    """
    if M is not None:
        A = A - M
    if A.shape[-2] < A.shape[-1]:
        u, s, v = svd_lowrank(A.mH, q, niter)
        return v, s, u
    basis = qr(A @ A.new_empty((A.shape[-1], 6 if q is None else q)).normal_()).Q
    for _ in range(2 if niter is None else niter):
        basis = qr(A @ qr(A.mH @ basis).Q).Q
    u, s, vh = svd(basis.mH @ A, False)
    return basis @ u, s, vh.mH


@public("flow")
def pca_lowrank(A: Any, q: int | None = None, center: bool = True, niter: int = 2) -> tuple[Any, Any, Any]:
    """About the first q principal components of A's rows, 6 if not given: u, s and v."""
    least = min(tuple(A.shape)[-2:])
    if q is not None and not 0 <= q <= least:
        raise OptionError(f"q(={q}) must be non-negative integer and not greater than min(m, n)={least}")
    if niter < 0:
        raise OptionError(f"niter(={niter}) must be non-negative integer")
    return svd_lowrank(A - ops.mean(A, -2, True) if center else A, min(6, least) if q is None else q, niter)


__all__ = ["cholesky", "eig", "eigh", "eigvals", "eigvalsh", "lu", "lu_factor", "qr", "svd", "svdvals"]

globals().update({name: door(globals()[name]) for name in __all__})
