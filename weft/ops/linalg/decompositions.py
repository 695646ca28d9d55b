"""Decompositions of matrices, on the last two dimensions: Cholesky, QR, LU, eigenvalues, singular values. Matrices
aren't split."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from weft.core.dtype import DType, float64
from weft.ops.create.constructors import ones_like, zeros_like
from weft.ops.declaration import op
from weft.ops.linalg.matmul import adjoint, matmul
from weft.ops.linalg.solving import _regular, inv, solve_triangle
from weft.ops.pointwise.arithmetic import add, conj, div, mul, square, sub
from weft.ops.pointwise.complex_numbers import real
from weft.ops.pointwise.copies import where
from weft.ops.pointwise.logic import eq
from weft.ops.shape.diagonal import diagonal, diagonal_zeros
from weft.ops.shape.joining import cat
from weft.ops.shape.slicing import narrow
from weft.ops.shape.triangle import tril, triu
from weft.ops.shape.views import unsqueeze


def _in_columns(x: Tensor) -> Tensor:
    """Matrices that lie in columns, as kernels for the CPU make them; on meta tensors torch says rows."""
    return x.mT.contiguous().mT if x.device.type == "meta" else x


@op("... i! j! -> ... i! j!", memory_order="meta")
def cholesky(x: Tensor) -> Tensor:
    """The lower triangular l of x = l @ l.T, for symmetric positive definite x.

    >>> flow.linalg.cholesky(flow.tensor([[4., 0.], [0., 9.]])).tolist()
    [[2.0, 0.0], [0.0, 3.0]]
    """
    return torch.linalg.cholesky(x)


@cholesky.grad
def _(dy, y):
    inner = tril(matmul(adjoint(y), dy), 0)
    inner = sub(inner, mul(_diagonal_part(inner), 0.5))
    back = inv(adjoint(y))
    dx = matmul(matmul(back, inner), inv(y))
    return mul(add(dx, adjoint(dx)), 0.5)


def _diagonal_part(x: Any) -> Any:
    return sub(tril(x, 0), tril(x, -1))


@cholesky.samples
def _(rand):
    a = rand(4, 3, 3)
    yield (a @ a.mT + torch.eye(3, dtype=torch.float64),)


@op("... i! j! -> ... k!, ... i! j!", returns="values vectors", memory_order="meta")
def eigh(x: Tensor) -> Any:
    """The eigenvalues of symmetric matrices, ascending, and their eigenvectors as columns.

    >>> flow.linalg.eigh(flow.tensor([[2., 0.], [0., 1.]]))[0].tolist()
    [1.0, 2.0]
    """
    return tuple(torch.linalg.eigh(x))


@eigh.grad
def _(values, vectors, dvalues=None, dvectors=None):
    if dvectors is None:
        return matmul(mul(vectors, unsqueeze(dvalues, -2)), adjoint(vectors))
    inside = _between(matmul(adjoint(vectors), dvectors), values)
    inside = inside if dvalues is None else add(inside, _diag_embed(dvalues))
    dx = matmul(matmul(vectors, inside), adjoint(vectors))
    return mul(add(dx, adjoint(dx)), 0.5)


def _diag_embed(x: Any) -> Any:
    n = x.shape[-1]
    return diagonal_zeros(x, (*tuple(x.shape), n), 0, -2, -1)


def _between(x: Any, values: Any) -> Any:
    """x[i, j] / (v[j] - v[i]) off the diagonal, 0 on it."""
    apart = sub(unsqueeze(values, -2), unsqueeze(values, -1))
    return _over(sub(x, _diagonal_part(x)), add(apart, _diag_embed(ones_like(values))))


def _over(x: Any, by: Any) -> Any:
    """x / by, and 0 where x is: equal or no values matter only to the vectors."""
    return where(eq(x, 0), 0.0, div(x, by))


# the sign of eigenvectors is arbitrary, so the generic test uses the values only
@eigh.samples
def _(rand):
    a = rand(4, 3, 3)
    yield (a + a.mT,)


@op("... i! j! -> ... i! k!, ... k!, ... k! j!", returns="u s vh", memory_order="meta")
def svd(x: Tensor) -> Any:
    """The singular value decomposition of matrices, thin: x = u @ diag(s) @ vh.

    >>> flow.linalg.svd(flow.tensor([[2., 0.], [0., 1.]]), full_matrices=False)[1].tolist()
    [2.0, 1.0]
    """
    u, s, vh = torch.linalg.svd(x, full_matrices=False)
    return u, s, _in_columns(vh)


@svd.grad
def _(x_shape, u, s, vh, du=None, ds=None, dvh=None):
    if du is None and dvh is None:
        return matmul(mul(u, unsqueeze(ds, -2)), vh)
    du, ds, dvh = (zeros_like(y) if d is None else d for d, y in zip((du, ds, dvh), (u, s, vh), strict=True))
    v, dv = adjoint(vh), adjoint(dvh)
    m, n = tuple(x_shape)[-2:]
    squares = square(s)
    across, along_s = unsqueeze(s, -2), unsqueeze(s, -1)
    inside_u, inside_v = matmul(adjoint(u), du), matmul(vh, dv)
    mid = mul(_between(sub(inside_u, adjoint(inside_u)), squares), across)
    mid = add(mid, mul(along_s, _between(sub(inside_v, adjoint(inside_v)), squares)))
    if inside_u.dtype.is_complex:  # the phase of u's columns is arbitrary, together with v's
        turn = diagonal(sub(inside_u, adjoint(inside_u)), 0, -2, -1)
        mid = add(mid, _diag_embed(_over(turn, mul(s, 2.0))))
    dx = matmul(matmul(u, add(mid, _diag_embed(ds))), vh)
    if m > n:  # the component of du outside of u's columns
        beyond = sub(du, matmul(u, inside_u))
        dx = add(dx, matmul(_over(beyond, across), vh))
    if n > m:
        beyond = sub(dv, matmul(v, inside_v))
        dx = add(dx, matmul(u, adjoint(_over(beyond, across))))
    return dx


svd.samples(lambda rand: [(rand(3, 3),), (rand(4, 2),), (rand(2, 2, 4),)])


@op("... i! j! -> ... i! k!, ... k! j!", returns="q r", memory_order="meta")
def qr(x: Tensor) -> Any:
    """The reduced QR decomposition, x = q @ r; needs at least as many rows as columns.

    >>> flow.linalg.qr(flow.eye(2))[1].abs().tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    return tuple(torch.linalg.qr(x))


@qr.grad
def _(dq, dr, q, r):
    lower = tril(sub(matmul(r, adjoint(dr)), matmul(adjoint(dq), q)), 0)
    both = add(lower, adjoint(lower))
    sym = sub(both, mul(_diagonal_part(both), 0.5))
    return matmul(add(dq, matmul(q, sym)), inv(adjoint(r)))


qr.samples(lambda rand: [(rand(4, 3),)])


@op("... i! j! -> ... i! j!, ... k!", returns="lu pivots*", memory_order="meta")
def lu_factor(x: Tensor) -> Any:
    """The LU factors of matrices in one matrix, L without its unit diagonal; and the pivots.

    >>> flow.linalg.lu_factor(flow.tensor([[0., 2.], [4., 0.]]))[0].tolist()
    [[4.0, 0.0], [0.0, 2.0]]
    """
    return tuple(torch.linalg.lu_factor(x))


@lu_factor.grad
def _(dlu, lu, pivots):
    rows, columns = tuple(lu.shape)[-2:]
    k = min(rows, columns)
    head, dhead = (narrow(narrow(t, -2, 0, k), -1, 0, k) for t in (lu, dlu))
    lower, upper = with_ones(tril(head, -1)), triu(head, 0)
    dlower, dupper = tril(dhead, -1), triu(dhead, 0)
    rest = None
    if columns > k:  # columns right of the square are solved by L
        right, dright = (narrow(t, -1, k, columns - k) for t in (lu, dlu))
        rest = solve_triangle(adjoint(lower), dright, True, True)
        dlower = sub(dlower, tril(matmul(rest, adjoint(right)), -1))
    elif rows > k:  # rows below it, by U
        below, dbelow = (narrow(t, -2, k, rows - k) for t in (lu, dlu))
        rest = adjoint(solve_triangle(upper, adjoint(dbelow), True))
        dupper = sub(dupper, triu(matmul(adjoint(below), rest), 0))
    inside = add(tril(matmul(adjoint(lower), dlower), -1), triu(matmul(dupper, adjoint(upper)), 0))
    left = solve_triangle(adjoint(lower), inside, True, True)
    both = adjoint(solve_triangle(upper, adjoint(left), True))
    whole = both if rest is None else cat([both, rest], -1 if columns > k else -2)
    return matmul(permutation_of(pivots, rows, dlu.dtype), whole)


@lu_factor.samples
def _(rand):
    yield (_regular(rand),)
    yield (_regular(rand, 4),)
    yield (_regular(rand, 4)[..., :2],)
    yield (_regular(rand, 4)[..., :2, :],)


def with_ones(x: Any) -> Any:
    """x with ones added to its diagonal."""
    ones = ones_like(diagonal(x, 0, -2, -1), None)
    return add(x, diagonal_zeros(ones, tuple(x.shape), 0, -2, -1))


@op("... k! -> ... i! j!")
def permutation_of(pivots: Tensor, rows: int, dtype: DType) -> Tensor:
    """The permutation matrix of pivots: x = permutation @ lower @ upper.

    >>> flow._C.permutation_of(flow.tensor([2, 2], dtype=flow.int32), 2, flow.float32).tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """
    like = torch.empty((*pivots.shape[:-1], rows, pivots.shape[-1]), dtype=dtype.torch, device=pivots.device)
    return torch.lu_unpack(like, pivots, unpack_data=False)[0]


permutation_of.samples(lambda rand: [(torch.tensor([[2, 2, 3], [1, 2, 3]], dtype=torch.int32), 3, float64)])


@op("... i! j! -> ... k!, ... i! j!", returns="values vectors", memory_order="meta")
def eig(x: Tensor) -> Any:
    """The complex eigenvalues of square matrices, and their eigenvectors as columns, of length one.

    >>> flow.linalg.eig(flow.tensor([[0., 1.], [-1., 0.]])).eigenvalues.tolist()
    [1j, -1j]
    """
    values, vectors = torch.linalg.eig(x)
    return values, _in_columns(vectors)


@eig.grad
def _(dvalues, dvectors, x_dtype, values, vectors):
    back = adjoint(vectors)
    inside = matmul(back, dvectors)
    along = unsqueeze(real(diagonal(inside, 0, -2, -1)), -2)
    inside = sub(inside, matmul(back, mul(vectors, along)))
    dx = matmul(matmul(inv(back), add(_between(inside, conj(values)), _diag_embed(dvalues))), back)
    return dx if x_dtype.is_complex else real(dx)


eig.samples(lambda rand: [(_regular(rand, 4),)])


@op("... i! j! -> ... k!")
def eigvals(x: Tensor) -> Tensor:
    """The complex eigenvalues of square matrices, in no order.

    >>> flow.linalg.eigvals(flow.tensor([[2., 0.], [0., 3.]])).tolist()
    [(2+0j), (3+0j)]
    """
    return torch.linalg.eigvals(x)


@eigvals.grad
def _(dy, x):
    back = adjoint(eig(x)[1])
    dx = matmul(mul(inv(back), unsqueeze(dy, -2)), back)
    return dx if x.dtype.is_complex else real(dx)


eigvals.samples(lambda rand: [(_regular(rand, 4),)])


@op("... i! k! -> ... i! j!", returns="columns*", memory_order="meta")
def completion(x: Tensor) -> Tensor:
    """Columns that complete orthogonal ones to a square orthogonal matrix.

    >>> flow._C.completion(flow.tensor([[0.], [1.]])).abs().tolist()
    [[1.0], [0.0]]
    """
    return torch.linalg.qr(x, mode="complete")[0][..., x.shape[-1] :]


completion.samples(lambda rand: [(torch.linalg.qr(rand(2, 4, 2))[0],)])
