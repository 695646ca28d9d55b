"""Solvers and inverses of matrices, on the last two dimensions. Matrices aren't split."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from weft.ops.declaration import op
from weft.ops.linalg.matmul import adjoint, matmul
from weft.ops.pointwise.arithmetic import add, neg, sub
from weft.ops.shape.broadcast import fit
from weft.ops.shape.triangle import tril, triu


@op("... i! j! -> ... j! i!", memory_order="meta")
def inv(x: Tensor) -> Tensor:
    """The inverse of matrices.

    >>> flow.linalg.inv(flow.tensor([[2., 0.], [0., 4.]])).tolist()
    [[0.5, 0.0], [0.0, 0.25]]
    """
    return torch.linalg.inv(x)


inv.grad(lambda dy, y: neg(matmul(matmul(adjoint(y), dy), adjoint(y))))


def _regular(rand: Any, *lead: int) -> Any:
    return rand(*lead, 3, 3) + 4 * torch.eye(3, dtype=torch.float64)


inv.samples(lambda rand: [(_regular(rand),), (_regular(rand, 4),)])


@op("... i! j!, ... j! k -> ... i! k", linear="b", memory_order="meta")
def solve(a: Tensor, b: Tensor) -> Tensor:
    """The x of a @ x = b, for matrices a and b.

    >>> flow._C.solve(flow.tensor([[2., 0.], [0., 4.]]), flow.tensor([[2.], [4.]])).tolist()
    [[1.0], [1.0]]
    """
    return torch.linalg.solve(a, b)


@solve.grad
def _(dy, a, y, a_shape, b_shape):
    db = solve(adjoint(a), dy)
    return fit(neg(matmul(db, adjoint(y))), a_shape), fit(db, b_shape)


@solve.samples
def _(rand):
    yield _regular(rand), rand(3, 4)
    yield _regular(rand, 4), rand(4, 3, 2)
    yield _regular(rand), rand(4, 3, 2)


@op("... i! j!, ... j! k -> ... i! k", linear="b", promotes=True, memory_order="meta")
def solve_triangle(a: Tensor, b: Tensor, upper: bool = False, unit: bool = False) -> Tensor:
    """The x of a @ x = b, for triangular a; `unit`: its diagonal is taken as ones.

    >>> flow._C.solve_triangle(flow.tensor([[2., 0.], [2., 4.]]), flow.tensor([[2.], [6.]])).tolist()
    [[1.0], [1.0]]
    """
    return torch.linalg.solve_triangular(a, b, upper=upper, unitriangular=unit)


@solve_triangle.grad
def _(dy, a, y, a_shape, b_shape, upper, unit, needs):
    db = solve_triangle(adjoint(a), dy, not upper, unit)
    da = None
    if needs[0]:
        da = fit(neg(matmul(db, adjoint(y))), a_shape)
        da = triu(da, int(unit)) if upper else tril(da, -int(unit))
    return da, fit(db, b_shape)


@solve_triangle.samples
def _(rand):
    yield torch.tril(_regular(rand)), rand(3, 4)
    yield torch.triu(_regular(rand, 4)), rand(4, 3, 2), True
    yield torch.tril(rand(3, 3)), rand(3, 4), False, True
    yield torch.tril(_regular(rand)), rand(4, 3, 2)


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
    up, over = adjoint(dy), adjoint(y)
    left = matmul(matmul(up, y), over)
    right = matmul(over, matmul(y, up))
    outside = add(sub(left, matmul(x, matmul(y, left))), sub(right, matmul(matmul(right, y), x)))
    return sub(outside, matmul(over, matmul(dy, over)))


pinv.samples(lambda rand: [(_regular(rand),), (_regular(rand, 4)[..., :2],)])
