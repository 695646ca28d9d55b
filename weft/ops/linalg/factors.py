"""LU factorization, pseudo-inverse, and eigenvalues of general matrices."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from weft.core.dtype import DType, float64
from weft.ops.create.constructors import ones_like
from weft.ops.declaration import op
from weft.ops.linalg.decompositions import _between, _diagonal_of, _regular, _t, inv, solve_triangle
from weft.ops.linalg.matmul import matmul
from weft.ops.pointwise.arithmetic import add, conj, mul, sub
from weft.ops.pointwise.complex_numbers import real
from weft.ops.shape.diagonal import diagonal, diagonal_zeros
from weft.ops.shape.joining import cat
from weft.ops.shape.slicing import narrow
from weft.ops.shape.triangle import tril, triu
from weft.ops.shape.views import unsqueeze


@op("... i! j! -> ... i! j!, ... k!", returns="lu pivots*")
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
        rest = solve_triangle(_t(lower), dright, True, True)
        dlower = sub(dlower, tril(matmul(rest, _t(right)), -1))
    elif rows > k:  # rows below it, by U
        below, dbelow = (narrow(t, -2, k, rows - k) for t in (lu, dlu))
        rest = _t(solve_triangle(upper, _t(dbelow), True))
        dupper = sub(dupper, triu(matmul(_t(below), rest), 0))
    inside = add(tril(matmul(_t(lower), dlower), -1), triu(matmul(dupper, _t(upper)), 0))
    left = solve_triangle(_t(lower), inside, True, True)
    both = _t(solve_triangle(upper, _t(left), True))
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


@op("... i! j! -> ... j! i!")
def pinv(x: Tensor, atol: float | None = None, rtol: float | None = None, hermitian: bool = False) -> Tensor:
    """The pseudo-inverse of matrices; singular values below the tolerance count as zero.

    >>> flow.linalg.pinv(flow.tensor([[2.0, 0.0], [0.0, 0.0]])).tolist()
    [[0.5, 0.0], [0.0, 0.0]]
    """
    return torch.linalg.pinv(x, atol=atol, rtol=rtol, hermitian=hermitian)


@pinv.grad
def _(dy, x, y):
    """Without singular values, as repeated ones have no derivatives."""
    up, over = _t(dy), _t(y)
    left = matmul(matmul(up, y), over)
    right = matmul(over, matmul(y, up))
    outside = add(sub(left, matmul(x, matmul(y, left))), sub(right, matmul(matmul(right, y), x)))
    return sub(outside, matmul(over, matmul(dy, over)))


pinv.samples(lambda rand: [(_regular(rand),), (_regular(rand, 4)[..., :2],)])


@op("... k! -> ... i! j!")
def permutation_of(pivots: Tensor, rows: int, dtype: DType) -> Tensor:
    """The permutation matrix of pivots: x = permutation @ lower @ upper.

    >>> flow._C.permutation_of(flow.tensor([2, 2], dtype=flow.int32), 2, flow.float32).tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """
    like = torch.empty((*pivots.shape[:-1], rows, pivots.shape[-1]), dtype=dtype.torch, device=pivots.device)
    return torch.lu_unpack(like, pivots, unpack_data=False)[0]


permutation_of.samples(lambda rand: [(torch.tensor([[2, 2, 3], [1, 2, 3]], dtype=torch.int32), 3, float64)])


@op("... i! j! -> ... k!, ... i! j!", returns="values vectors")
def eig(x: Tensor) -> Any:
    """The complex eigenvalues of square matrices, and their eigenvectors as columns, of length one.

    >>> flow.linalg.eig(flow.tensor([[0., 1.], [-1., 0.]]))[0].tolist()
    [1j, -1j]
    """
    return tuple(torch.linalg.eig(x))


@eig.grad
def _(dvalues, dvectors, x_dtype, values, vectors):
    adjoint = _t(vectors)
    inside = matmul(adjoint, dvectors)
    along = unsqueeze(real(diagonal(inside, 0, -2, -1)), -2)
    inside = sub(inside, matmul(adjoint, mul(vectors, along)))
    dx = matmul(matmul(inv(adjoint), add(_between(inside, conj(values)), _diagonal_of(dvalues))), adjoint)
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
    adjoint = _t(eig(x)[1])
    dx = matmul(mul(inv(adjoint), unsqueeze(dy, -2)), adjoint)
    return dx if x.dtype.is_complex else real(dx)


eigvals.samples(lambda rand: [(_regular(rand, 4),)])


@op("... i! k! -> ... i! j!", returns="columns*")
def completion(x: Tensor) -> Tensor:
    """Columns that complete orthogonal ones to a square orthogonal matrix.

    >>> flow._C.completion(flow.tensor([[0.], [1.]])).abs().tolist()
    [[1.0], [0.0]]
    """
    return torch.linalg.qr(x, mode="complete")[0][..., x.shape[-1] :]


completion.samples(lambda rand: [(torch.linalg.qr(rand(2, 4, 2))[0],)])
