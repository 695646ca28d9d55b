"""Matrices taken apart: triangles and the order of rows, and the eigenvalues of any."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from weft.core.dtype import DType, float64
from weft.core.errors import AutogradError
from weft.ops.complex import real
from weft.ops.create import ones_like
from weft.ops.declaration import op
from weft.ops.diagonal import diagonal, diagonal_zeros
from weft.ops.elementwise import add, mul
from weft.ops.linalg import _regular, _t, inv, solve_triangle
from weft.ops.matmul import matmul
from weft.ops.shape import unsqueeze
from weft.ops.triangle import tril, triu


@op("... i! j! -> ... i! j!, ... k!", returns="lu pivots*")
def lu_factor(x: Tensor) -> Any:
    """Both triangles of matrices in one, the lower without its ones; and which rows were exchanged for it.

    >>> flow.linalg.lu_factor(flow.tensor([[0., 2.], [4., 0.]]))[0].tolist()
    [[4.0, 0.0], [0.0, 2.0]]
    """
    return tuple(torch.linalg.lu_factor(x))


@lu_factor.grad
def _(dlu, lu, pivots):
    n, m = tuple(lu.shape)[-2:]
    if n != m:
        raise AutogradError(f"the gradient of lu_factor() is known of square matrices; these are {n} by {m}")
    lower, upper = with_ones(tril(lu, -1)), triu(lu, 0)
    inside = add(tril(matmul(_t(lower), tril(dlu, -1)), -1), triu(matmul(triu(dlu, 0), _t(upper)), 0))
    left = solve_triangle(_t(lower), inside, True, True)
    both = _t(solve_triangle(upper, _t(left), True))
    return matmul(permutation_of(pivots, n, dlu.dtype), both)


@lu_factor.samples
def _(rand):
    yield (_regular(rand),)
    yield (_regular(rand, 4),)


def with_ones(x: Any) -> Any:
    """x, with ones added on its diagonal."""
    ones = ones_like(diagonal(x, 0, -2, -1), None)
    return add(x, diagonal_zeros(ones, tuple(x.shape), 0, -2, -1))


@op("... k! -> ... i! j!")
def permutation_of(pivots: Tensor, rows: int, dtype: DType) -> Tensor:
    """The matrix that exchanges rows back as `lu_factor` tells: x = permutation @ lower @ upper.

    >>> flow._C.permutation_of(flow.tensor([2, 2], dtype=flow.int32), 2, flow.float32).tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """
    like = torch.empty((*pivots.shape[:-1], rows, pivots.shape[-1]), dtype=dtype.torch, device=pivots.device)
    return torch.lu_unpack(like, pivots, unpack_data=False)[0]


@permutation_of.samples
def _(rand):
    yield torch.tensor([[2, 2, 3], [1, 2, 3]], dtype=torch.int32), 3, float64


@op("... i! j! -> ... k!, ... i! j!", returns="values* vectors*")
def eig(x: Tensor) -> Any:
    """The eigenvalues of square matrices, complex ones, and their eigenvectors as columns; `eigvals` has a gradient.

    >>> flow.linalg.eig(flow.tensor([[0., 1.], [-1., 0.]]))[0].tolist()
    [1j, -1j]
    """
    return tuple(torch.linalg.eig(x))


@eig.samples
def _(rand):
    yield (_regular(rand, 4),)


@op("... i! j! -> ... k!")
def eigvals(x: Tensor) -> Tensor:
    """The eigenvalues of square matrices, complex ones, in no order.

    >>> flow.linalg.eigvals(flow.tensor([[2., 0.], [0., 3.]])).tolist()
    [(2+0j), (3+0j)]
    """
    return torch.linalg.eigvals(x)


@eigvals.grad
def _(dy, x):
    adjoint = _t(eig(x)[1])
    dx = matmul(mul(inv(adjoint), unsqueeze(dy, -2)), adjoint)
    return dx if x.dtype.is_complex else real(dx)


@eigvals.samples
def _(rand):
    yield (_regular(rand, 4),)


@op("... i! k! -> ... i! j!", returns="columns*")
def completion(x: Tensor) -> Tensor:
    """Further orthogonal columns, as many as make a square with these.

    >>> flow._C.completion(flow.tensor([[0.], [1.]])).abs().tolist()
    [[1.0], [0.0]]
    """
    return torch.linalg.qr(x, mode="complete")[0][..., x.shape[-1] :]


@completion.samples
def _(rand):
    yield (torch.linalg.qr(rand(2, 4, 2))[0],)
