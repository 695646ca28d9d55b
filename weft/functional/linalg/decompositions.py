"""`flow.linalg`: decompositions, inverses, determinants."""

from __future__ import annotations

from typing import NamedTuple

from weft.api.signature import door
from weft.api.table import public
from weft.core.dispatch import in_own_dtypes
from weft.core.errors import ArgumentError, ShapeError
from weft.functional.shape.broadcasting import broadcast_shapes
from weft.ops import ops
from weft.ops.shape.views import dim_of
from weft.tensor.tensor import Tensor

matmul, inv, det = ops.matmul, ops.inv, ops.det

Dims = int | tuple[int, ...] | list[int] | None


@door
@public("flow", "linalg_cross")
def cross(x: Tensor, other: Tensor, *, dim: int = -1) -> Tensor:
    """The cross product of vectors of three elements along a dimension.

    >>> flow.linalg.cross(flow.tensor([1., 0., 0.]), flow.tensor([0., 1., 0.])).tolist()
    [0.0, 0.0, 1.0]
    """
    if x.ndim != other.ndim:
        raise ShapeError(
            f"linalg.cross: inputs must have the same number of dimensions; got {list(x.shape)} and {list(other.shape)}"
        )
    dim = dim_of(dim, x.ndim)
    if not x.shape[dim] == other.shape[dim] == 3:
        raise ShapeError(
            f"linalg.cross: inputs dimension {dim} must have length 3. Got {x.shape[dim]} and {other.shape[dim]}"
        )
    shape = tuple(broadcast_shapes(tuple(x.shape), tuple(other.shape)))
    return ops.cross(ops.expand(x, shape), ops.expand(other, shape), dim)


@public("flow tensor", "cross")
def _first_cross(x: Tensor, other: Tensor, dim: int | None = None) -> Tensor:
    """The cross product along a dimension, by default the first of size three."""
    shape = tuple(broadcast_shapes(tuple(x.shape), tuple(other.shape)))
    if dim is None:
        if 3 not in shape:
            raise ShapeError(f"cross(): shape {list(shape)} has no dimension of size 3")
        dim = shape.index(3)
    return cross(x, other, dim=dim)


class SignAndSize(NamedTuple):
    """A determinant: its sign, and the logarithm of its absolute value."""

    sign: Tensor
    logabsdet: Tensor


class Eigen(NamedTuple):
    """Eigenvalues, of symmetric matrices ascending, and their eigenvectors as columns."""

    eigenvalues: Tensor
    eigenvectors: Tensor


class QR(NamedTuple):
    """Orthogonal columns, and an upper triangular matrix."""

    Q: Tensor
    R: Tensor


class SVD(NamedTuple):
    """Left singular vectors as columns, singular values, descending, and right singular vectors as rows."""

    U: Tensor
    S: Tensor
    Vh: Tensor


class SVDWithV(NamedTuple):
    """Likewise, with right singular vectors as columns."""

    U: Tensor
    S: Tensor
    V: Tensor


@door
@public("flow tensor")
def slogdet(x: Tensor) -> SignAndSize:
    """The sign of the determinant of matrices, and the logarithm of its absolute value.

    >>> flow.linalg.slogdet(flow.eye(2)).logabsdet.item()
    0.0
    """
    return SignAndSize(*ops.slogdet(x))


@door
def eigh(x: Tensor, UPLO: str = "L") -> Eigen:
    """The eigenvalues of symmetric matrices, ascending, and their eigenvectors as columns. Only the lower triangle is
    read, or with UPLO="U" the upper.
    """
    return Eigen(*ops.eigh(lower_of(x, UPLO)))


def lower_of(x: Tensor, UPLO: str) -> Tensor:
    """A matrix whose lower triangle represents the symmetric matrix."""
    if UPLO not in ("L", "U"):
        raise ArgumentError(f'eigh(): UPLO must be "L" or "U", the triangle to read; got {UPLO!r}')
    return x if UPLO == "L" else x.mH  # type: ignore[attr-defined]


@door
@public("flow tensor")
def cholesky(x: Tensor, upper: bool = False) -> Tensor:
    """The lower triangular l of x = l @ l.T, for symmetric positive definite x; or its transpose, `upper`.

    >>> flow.linalg.cholesky(flow.tensor([[4., 0.], [0., 9.]])).tolist()
    [[2.0, 0.0], [0.0, 3.0]]
    """
    lower = ops.cholesky(x)
    return lower.mH if upper else lower  # type: ignore[attr-defined]


@door
@public("flow tensor")
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
        return QR(nothing(x) if mode == "r" else q, r)
    q, r = ops.qr(ops.narrow(x, -1, 0, n))  # signs follow the first columns
    return QR(nothing(x) if mode == "r" else q, ops.cat([r, matmul(q.mH, ops.narrow(x, -1, n, m - n))], -1))


def nothing(x: Tensor) -> Tensor:
    """An empty tensor of x's dtype."""
    return ops.narrow(ops.reshape(x.detach(), (-1,)), 0, 0, 0)


@public("flow tensor", "svd")
def _svd_with_v(x: Tensor, some: bool = True, compute_uv: bool = True) -> SVDWithV:
    """The singular value decomposition, x = u @ diag(s) @ v.T, reduced with `some`. Returns u, s and v."""
    if not compute_uv:
        raise ArgumentError("svd(): u and v are always computed; leave compute_uv=False out, or use linalg.svdvals()")
    u, s, vh = svd(x, not some)
    return SVDWithV(u, s, vh.mH)  # type: ignore[attr-defined]


@door
def svd(x: Tensor, full_matrices: bool = True, *, driver: str | None = None) -> SVD:
    """The singular value decomposition, x = u @ diag(s) @ vh, with square u and vh, or reduced. The columns that
    complete them have no gradient. `driver` selects an algorithm on CUDA; it is ignored.
    """
    u, s, vh = ops.svd(x)
    if full_matrices and u.shape[-2] > u.shape[-1]:
        u = ops.cat([u, ops.completion(u)], -1)
    if full_matrices and vh.shape[-1] > vh.shape[-2]:
        vh = ops.cat([vh, ops.completion(vh.mH).mH], -2)  # type: ignore[attr-defined]
    return SVD(u, s, vh)


@door
def svdvals(x: Tensor, *, driver: str | None = None) -> Tensor:
    """The singular values of matrices, descending."""
    return ops.svd(x)[1]


@door
def solve(a: Tensor, b: Tensor, *, left: bool = True) -> Tensor:
    """The x of a @ x = b, or of x @ a = b.

    >>> flow.linalg.solve(flow.tensor([[2., 0.], [0., 4.]]), flow.tensor([2., 4.])).tolist()
    [1.0, 1.0]
    """
    if not left:
        return ops.solve(a.mT, b.mT).mT  # type: ignore[attr-defined]
    if b.ndim == a.ndim - 1 and tuple(b.shape) == tuple(a.shape)[:-1]:
        return ops.solve(a, ops.unsqueeze(b, -1)).squeeze(-1)  # type: ignore[attr-defined]
    return ops.solve(a, b)


@door
def diagonal(x: Tensor, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """A diagonal of two dimensions, by default the last ones, as a new last dimension."""
    return ops.diagonal(x, offset, dim_of(dim1, x.ndim), dim_of(dim2, x.ndim))


__all__ = [
    "cholesky", "cross", "det", "diagonal", "eigh", "inv", "matmul", "qr", "slogdet", "solve", "svd", "svdvals",
]  # fmt: skip
