"""Linear algebra on the last two dimensions: inverses, determinants, solvers, decompositions. Matrices aren't split."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from weft.ops.create.constructors import ones_like
from weft.ops.declaration import op
from weft.ops.linalg.matmul import matmul
from weft.ops.pointwise.arithmetic import add, conj, conjugated, div, eq, mul, neg, square, sub
from weft.ops.pointwise.complex_numbers import complex__, imag
from weft.ops.pointwise.copies import where
from weft.ops.shape.broadcast import fit
from weft.ops.shape.diagonal import diagonal, diagonal_zeros
from weft.ops.shape.joining import cat
from weft.ops.shape.slicing import narrow
from weft.ops.shape.triangle import tril, triu
from weft.ops.shape.views import axes_at, transpose, unsqueeze


def _t(x: Any) -> Any:
    """The adjoint: the transpose, if real."""
    return transpose(conjugated(x), -2, -1)


@op("... i! j! -> ... j! i!")
def inv(x: Tensor) -> Tensor:
    """The inverse of matrices.

    >>> flow.linalg.inv(flow.tensor([[2., 0.], [0., 4.]])).tolist()
    [[0.5, 0.0], [0.0, 0.25]]
    """
    return torch.linalg.inv(x)


inv.grad(lambda dy, y: neg(matmul(matmul(_t(y), dy), _t(y))))


def _regular(rand: Any, *lead: int) -> Any:
    return rand(*lead, 3, 3) + 4 * torch.eye(3, dtype=torch.float64)


inv.samples(lambda rand: [(_regular(rand),), (_regular(rand, 4),)])


@op("... i! j! -> ...")
def det(x: Tensor) -> Tensor:
    """The determinant of matrices.

    >>> flow.linalg.det(flow.tensor([[2., 0.], [0., 4.]])).item()
    8.0
    """
    return torch.linalg.det(x)


det.grad(lambda dy, x, y: mul(unsqueeze(unsqueeze(mul(dy, conjugated(y)), -1), -1), _t(inv(x))))
det.samples(lambda rand: [(_regular(rand),), (_regular(rand, 4),)])


@op("... i! j! -> ..., ...", returns="sign logabsdet")
def slogdet(x: Tensor) -> Any:
    """The sign of the determinant of matrices, and the logarithm of its absolute value.

    >>> flow.linalg.slogdet(flow.eye(2))[1].item()
    0.0
    """
    return tuple(torch.linalg.slogdet(x))


@slogdet.grad
def _(dsign, dlogabsdet, x, sign):
    if x.dtype.is_complex:  # the sign is a phase, whose change is the imaginary part of the logarithm's
        dlogabsdet = complex__(dlogabsdet, imag(mul(conj(sign), dsign)))
    return mul(unsqueeze(unsqueeze(dlogabsdet, -1), -1), _t(inv(x)))


slogdet.samples(lambda rand: [(_regular(rand, 4),)])


@op("... i! j!, ... j! k -> ... i! k", linear="b")
def solve(a: Tensor, b: Tensor) -> Tensor:
    """The x of a @ x = b, for matrices a and b.

    >>> flow._C.solve(flow.tensor([[2., 0.], [0., 4.]]), flow.tensor([[2.], [4.]])).tolist()
    [[1.0], [1.0]]
    """
    return torch.linalg.solve(a, b)


@solve.grad
def _(dy, a, y, a_shape, b_shape):
    db = solve(_t(a), dy)
    return fit(neg(matmul(db, _t(y))), a_shape), fit(db, b_shape)


@solve.samples
def _(rand):
    yield _regular(rand), rand(3, 4)
    yield _regular(rand, 4), rand(4, 3, 2)
    yield _regular(rand), rand(4, 3, 2)


@op("... i! j!, ... j! k -> ... i! k", linear="b", promotes=True)
def solve_triangle(a: Tensor, b: Tensor, upper: bool = False, unit: bool = False) -> Tensor:
    """The x of a @ x = b, for triangular a; `unit`: its diagonal is taken as ones.

    >>> flow._C.solve_triangle(flow.tensor([[2., 0.], [2., 4.]]), flow.tensor([[2.], [6.]])).tolist()
    [[1.0], [1.0]]
    """
    return torch.linalg.solve_triangular(a, b, upper=upper, unitriangular=unit)


@solve_triangle.grad
def _(dy, a, y, a_shape, b_shape, upper, unit, needs):
    db = solve_triangle(_t(a), dy, not upper, unit)
    da = None
    if needs[0]:
        da = fit(neg(matmul(db, _t(y))), a_shape)
        da = triu(da, int(unit)) if upper else tril(da, -int(unit))
    return da, fit(db, b_shape)


@solve_triangle.samples
def _(rand):
    yield torch.tril(_regular(rand)), rand(3, 4)
    yield torch.triu(_regular(rand, 4)), rand(4, 3, 2), True
    yield torch.tril(rand(3, 3)), rand(3, 4), False, True
    yield torch.tril(_regular(rand)), rand(4, 3, 2)


@op("... i! j! -> ... i! j!")
def cholesky(x: Tensor) -> Tensor:
    """The lower triangular l of x = l @ l.T, for symmetric positive definite x.

    >>> flow.linalg.cholesky(flow.tensor([[4., 0.], [0., 9.]])).tolist()
    [[2.0, 0.0], [0.0, 3.0]]
    """
    return torch.linalg.cholesky(x)


@cholesky.grad
def _(dy, y):
    inner = tril(matmul(_t(y), dy), 0)
    inner = sub(inner, mul(_diagonals(inner), 0.5))
    back = inv(_t(y))
    dx = matmul(matmul(back, inner), inv(y))
    return mul(add(dx, _t(dx)), 0.5)


def _diagonals(x: Any) -> Any:
    return sub(tril(x, 0), tril(x, -1))


@cholesky.samples
def _(rand):
    a = rand(4, 3, 3)
    yield (a @ a.mT + torch.eye(3, dtype=torch.float64),)


@op("... i! j! -> ... k!, ... i! j!", returns="values vectors")
def eigh(x: Tensor) -> Any:
    """The eigenvalues of symmetric matrices, ascending, and their eigenvectors as columns.

    >>> flow.linalg.eigh(flow.tensor([[2., 0.], [0., 1.]]))[0].tolist()
    [1.0, 2.0]
    """
    return tuple(torch.linalg.eigh(x))


@eigh.grad
def _(dvalues, dvectors, values, vectors):
    inside = add(_between(matmul(_t(vectors), dvectors), values), _diagonal_of(dvalues))
    dx = matmul(matmul(vectors, inside), _t(vectors))
    return mul(add(dx, _t(dx)), 0.5)


def _diagonal_of(x: Any) -> Any:
    n = x.shape[-1]
    return diagonal_zeros(x, (*tuple(x.shape), n), 0, -2, -1)


def _between(x: Any, values: Any) -> Any:
    """x[i, j] / (v[j] - v[i]) off the diagonal, 0 on it."""
    apart = sub(unsqueeze(values, -2), unsqueeze(values, -1))
    return _over(sub(x, _diagonals(x)), add(apart, _diagonal_of(ones_like(values))))


def _over(x: Any, by: Any) -> Any:
    """x / by, and 0 where x is: equal or no values matter only to the vectors."""
    return where(eq(x, 0), 0.0, div(x, by))


# the sign of eigenvectors is arbitrary, so the generic test uses the values only
@eigh.samples
def _(rand):
    a = rand(4, 3, 3)
    yield (a + a.mT,)


@op("... i! j! -> ... i! k!, ... k!, ... k! j!", returns="u s vh")
def svd(x: Tensor) -> Any:
    """The singular value decomposition of matrices, thin: x = u @ diag(s) @ vh.

    >>> flow.linalg.svd(flow.tensor([[2., 0.], [0., 1.]]), full_matrices=False)[1].tolist()
    [2.0, 1.0]
    """
    return tuple(torch.linalg.svd(x, full_matrices=False))


@svd.grad
def _(du, ds, dvh, x_shape, u, s, vh):
    v, dv = _t(vh), _t(dvh)
    m, n = tuple(x_shape)[-2:]
    squares = square(s)
    across, along_s = unsqueeze(s, -2), unsqueeze(s, -1)
    inside_u, inside_v = matmul(_t(u), du), matmul(vh, dv)
    mid = mul(_between(sub(inside_u, _t(inside_u)), squares), across)
    mid = add(mid, mul(along_s, _between(sub(inside_v, _t(inside_v)), squares)))
    if inside_u.dtype.is_complex:  # the phase of u's columns is arbitrary, together with v's
        turn = diagonal(sub(inside_u, _t(inside_u)), 0, -2, -1)
        mid = add(mid, _diagonal_of(_over(turn, mul(s, 2.0))))
    dx = matmul(matmul(u, add(mid, _diagonal_of(ds))), vh)
    if m > n:  # the component of du outside of u's columns
        beyond = sub(du, matmul(u, inside_u))
        dx = add(dx, matmul(_over(beyond, across), vh))
    if n > m:
        beyond = sub(dv, matmul(v, inside_v))
        dx = add(dx, matmul(u, _t(_over(beyond, across))))
    return dx


svd.samples(lambda rand: [(rand(3, 3),), (rand(4, 2),), (rand(2, 2, 4),)])


@op("... i! j! -> ... i! k!, ... k! j!", returns="q r")
def qr(x: Tensor) -> Any:
    """The reduced QR decomposition, x = q @ r; needs at least as many rows as columns.

    >>> flow.linalg.qr(flow.eye(2))[1].abs().tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    return tuple(torch.linalg.qr(x))


@qr.grad
def _(dq, dr, q, r):
    lower = tril(sub(matmul(r, _t(dr)), matmul(_t(dq), q)), 0)
    both = add(lower, _t(lower))
    sym = sub(both, mul(_diagonals(both), 0.5))
    return matmul(add(dq, matmul(q, sym)), inv(_t(r)))


qr.samples(lambda rand: [(rand(4, 3),)])


@op("... i! j! -> ... i! j!")
def matrix_exponential(x: Tensor) -> Tensor:
    """The exponential of matrices."""
    return torch.linalg.matrix_exp(x)


@matrix_exponential.grad
def _(dy, x):
    n, t = tuple(x.shape)[-1], _t(x)  # the upper right of the exponential of [[t, dy], [0, t]]
    both = cat([cat([t, dy], -1), cat([mul(t, 0.0), t], -1)], -2)
    return narrow(narrow(matrix_exponential(both), -2, 0, n), -1, n, n)


matrix_exponential.samples(lambda rand: [(rand(3, 3),), (rand(4, 2, 2),)])


@op(linear="a b")
def cross(a: Tensor, b: Tensor, dim: int = -1) -> Tensor:
    """The cross product of vectors of three elements along a dimension.

    >>> flow._C.cross(flow.tensor([1., 0., 0.]), flow.tensor([0., 1., 0.])).tolist()
    [0.0, 0.0, 1.0]
    """
    return torch.linalg.cross(a, b, dim=dim)


cross.layout(lambda a, b, dim: axes_at("<!>, <!> -> <!>", len(a), dim) if len(a) == len(b) else None)


@cross.grad
def _(dy, a, b, dim, needs):
    return cross(conjugated(b), dy, dim) if needs[0] else None, cross(dy, conjugated(a), dim) if needs[1] else None


cross.samples(lambda rand: [(rand(4, 3), rand(4, 3)), (rand(3, 4), rand(3, 4), 0)])
