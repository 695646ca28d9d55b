"""Products of matrices and vectors."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import torch

from weft.api.fast_path import in_one
from weft.api.signature import door
from weft.api.table import named, public
from weft.core import dtype as dtypes
from weft.core.dtype import bool_
from weft.core.errors import DtypeError, ShapeError
from weft.functional.create import creation
from weft.functional.create.likeness import device_of
from weft.functional.pointwise.arithmetic import _scaled
from weft.functional.shape.broadcasting import broadcast_shapes
from weft.functional.tensor.dtypes import promote_types
from weft.functional.tensor.in_place import with_in_place
from weft.ops import ops
from weft.ops.explain import LONGER, describe
from weft.ops.pointwise.arithmetic import conjugated
from weft.ops.shape.views import dim_of
from weft.tensor.tensor import Tensor


@public("flow", "vander")
def _flow_vander(x: Any, N: int | None = None, increasing: bool = False) -> Tensor:
    """The Vandermonde matrix: the powers of x as columns.

    >>> flow.vander(flow.tensor([1, 2, 3]), increasing=True).tolist()
    [[1, 1, 1], [1, 2, 4], [1, 3, 9]]
    """
    if x.ndim != 1:
        raise ShapeError(f"vander(): takes a vector; got shape {list(x.shape)}")
    made = vander(x, N)
    return made if increasing else ops.flip(made, (1,))


def vander(x: Any, N: int | None = None) -> Any:
    """The Vandermonde matrix: powers of each element, ascending."""
    x = x if x.ndim else ops.reshape(x, (1,))
    x = x if x.dtype.differentiable else ops.cast(x, dtypes.int64)  # as products give
    n = x.shape[-1] if N is None else N
    powers = ops.expand(ops.unsqueeze(x, -1), (*x.shape, max(n - 1, 0)))
    one = ops.ones_like(ops.unsqueeze(x.detach(), -1))
    return ops.narrow(ops.cumprod(ops.cat([one, powers], -1), -1), -1, 0, n)


def _matmul(
    input: Tensor, other: Tensor, transpose_a: bool = False, transpose_b: bool = False, alpha: float = 1.0
) -> Tensor:
    """The matrix product with OneFlow's extra arguments: transposed operands, and a factor."""
    a = ops.transpose(input, -2, -1) if transpose_a else input
    y = ops.matmul(a, ops.transpose(other, -2, -1) if transpose_b else other)
    return y if alpha == 1 else ops.mul(y, alpha)


LONGER["matmul"] = door(_matmul, "matmul")


def check_dims(name: str, dims: tuple[int, int], x: Any, other: Any) -> None:
    """Raise unless the operands of a product have the numbers of dimensions that it takes."""
    try:
        fits = (x.ndim, other.ndim) == dims
    except AttributeError:
        return  # matmul raises
    if not fits:
        i = 0 if x.ndim != dims[0] else 1
        kind = {1: "vector", 2: "matrix", 3: "3D tensor"}[dims[i]]
        raise ShapeError(
            f"{name}(): the {('first', 'second')[i]} must be a {kind}: it takes tensors of {dims[0]} and "
            f"{dims[1]} dimensions; got shapes {list(x.shape)} and {list(other.shape)}. matmul() takes any"
        )
    if dims == (3, 3) and x.shape[0] != other.shape[0]:
        raise ShapeError(f"{name}(): batches of {x.shape[0]} and {other.shape[0]} matrices differ. matmul() broadcasts")


@public("flow tensor")
def bmm(x: Tensor, mat2: Tensor, transpose_a: bool = False, transpose_b: bool = False, alpha: float = 1.0) -> Tensor:
    """The products of two batches of matrices, with the extra arguments of `matmul`."""
    check_dims("bmm", (3, 3), x, mat2)
    return _matmul(x, mat2, transpose_a, transpose_b, alpha)


def _product(name: str, dims: tuple[int, int], doc: str) -> Any:
    """Bind matmul for tensors with these numbers of dimensions alone."""

    @public("flow tensor")
    @named(name, doc)
    def multiply(x: Tensor, other: Tensor) -> Tensor:
        check_dims(name, dims, x, other)
        return ops.matmul(x, other)

    return door(multiply)


_product("mm", (2, 2), "The product of two matrices.")
_product("mv", (2, 1), "The product of a matrix and a vector.")
_dot = _product("dot", (1, 1), "The inner product of two vectors.")


@with_in_place
@in_one(torch.addmm)
def addmm(x: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """beta * x + alpha * (mat1 @ mat2)."""
    check_dims("addmm", (2, 2), mat1, mat2)
    return plus_scaled("addmm", x, beta, ops.matmul(mat1, mat2), alpha)


def plus_scaled(name: str, x: Any, beta: Any, product: Tensor, alpha: Any) -> Tensor:
    """beta * x + alpha * product, x broadcast; where beta is zero, x's values (NaN, too) don't matter."""
    if not product.dtype.differentiable:  # torch's kernels take factors of integers so
        beta, alpha = (math.trunc(f) if isinstance(f, float) else f for f in (beta, alpha))
    y = ops.add(_scaled(x, beta) if beta != 0 else ops.zeros_like(x), _scaled(product, alpha))
    if y.shape != product.shape:
        raise ShapeError(
            f"{name}(): x of shape {list(x.shape)} can't be expanded to the product's, {list(product.shape)}"
        )
    return y


@with_in_place
@in_one(torch.addmv)
def addmv(x: Tensor, mat: Tensor, vec: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """beta * x + alpha * (mat @ vec)."""
    check_dims("addmv", (2, 1), mat, vec)
    return plus_scaled("addmv", x, beta, ops.matmul(mat, vec), alpha)


@with_in_place
@in_one(torch.baddbmm)
def baddbmm(x: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """beta * x + alpha * (batch1 @ batch2).

    >>> flow.baddbmm(flow.ones(1), flow.ones(2, 1, 3), flow.ones(2, 3, 1)).flatten().tolist()
    [4.0, 4.0]
    """
    check_dims("baddbmm", (3, 3), batch1, batch2)
    return plus_scaled("baddbmm", x, beta, ops.matmul(batch1, batch2), alpha)


@public("flow tensor")
@in_one(torch.trace)
def trace(x: Tensor) -> Tensor:
    """The sum of a matrix's diagonal."""
    if x.ndim != 2:
        raise ShapeError(f"trace: expected a matrix, but got tensor with dim {x.ndim}: {list(x.shape)}")
    return ops.sum(ops.diagonal(x, 0, 0, 1))


def _vectors(name: str, *given: Any) -> None:
    if any(not isinstance(x, Tensor) or x.ndim != 1 for x in given):
        raise ShapeError(f"{name}(): 1D tensors expected, but got {' and '.join(map(describe, given))}")


@public("flow tensor")
@in_one(torch.inner)
def inner(x: Any, other: Any) -> Any:
    """The inner product along the last dimension of both.

    >>> flow.inner(flow.ones(2, 3), flow.ones(3)).tolist()
    [3.0, 3.0]
    """
    if not x.ndim or not other.ndim:
        return x * other
    if x.ndim == other.ndim == 1:
        return _dot(x, other)
    a, b = (ops.reshape(t, (math.prod(t.shape[:-1]), t.shape[-1])) for t in (x, other))
    return ops.reshape(ops.matmul(a, ops.transpose(b, 0, 1)), (*x.shape[:-1], *other.shape[:-1]))


@public("flow tensor")
@in_one(torch.vdot)
def vdot(x: Any, other: Any) -> Any:
    """The inner product of two vectors, the first one conjugated."""
    _vectors("vdot", x, other)
    if x.shape != other.shape or x.dtype is not other.dtype:
        raise ShapeError(
            f"vdot(): expected both vectors to have same dtype and size, but found {describe(x)} and {describe(other)}"
        )
    return _dot(conjugated(x), other)


@with_in_place
@in_one(torch.addr)
def addr(x: Any, vec1: Any, vec2: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """beta * x + alpha * (vec1 outer vec2)."""
    _vectors("addr", vec1, vec2)
    outer = ops.unsqueeze(vec1, 1) * vec2
    dtype = promote_types(x.dtype, outer.dtype)
    for name, scale in (("beta", beta), ("alpha", alpha)):
        if isinstance(scale, float | complex) and not dtype.differentiable:
            raise DtypeError(
                f"addr(): For integral input tensors, argument {name} must not be a floating point number; got {scale}"
            )
    if dtype is bool_:
        beta, alpha = bool(beta), bool(alpha)
    x, outer = ops.cast(x, dtype), ops.cast(outer, dtype)
    return plus_scaled("addr", x, beta, outer, alpha)


@with_in_place
@in_one(torch.addbmm)
def addbmm(x: Any, batch1: Any, batch2: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """beta * x + alpha * the sum of the products of two batches of matrices."""
    check_dims("addbmm", (3, 3), batch1, batch2)
    products = ops.matmul(batch1, batch2)
    return plus_scaled("addbmm", x, beta, ops.cast(ops.sum(products, 0), products.dtype), alpha)


@public("bound", "linalg_cross")
@in_one(torch.linalg.cross)
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


@public("flow tensor")
@in_one(torch.kron)
def kron(x: Any, other: Any) -> Any:
    """The Kronecker product.

    >>> flow.kron(flow.eye(2), flow.tensor([[1.0, 2.0]])).tolist()
    [[1.0, 2.0, 0.0, 0.0], [0.0, 0.0, 1.0, 2.0]]
    """
    n = max(x.ndim, other.ndim)
    a, b = (ops.reshape(v, (1,) * (n - v.ndim) + tuple(v.shape)) for v in (x, other))
    left = ops.reshape(a, tuple(k for size in a.shape for k in (size, 1)))
    right = ops.reshape(b, tuple(k for size in b.shape for k in (1, size)))
    return ops.reshape(left * right, tuple(p * q for p, q in zip(a.shape, b.shape, strict=True)))


@public("flow tensor")
def matrix_power(x: Any, n: int) -> Any:
    """The n-th power of a matrix; of its inverse, if n is negative."""
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise ShapeError(f"matrix_power: A must be batches of square matrices; got {list(x.shape)}")
    if n < 0:
        return matrix_power(ops.inv(x), -n)
    if n == 0:
        return ops.clone(ops.expand(creation.eye(x.shape[-1], dtype=x.dtype, **device_of(x)), tuple(x.shape)))
    if n == 1:
        return ops.clone(x)
    half = x if n < 4 else matrix_power(x, n // 2)
    square = ops.matmul(half, half)
    return ops.matmul(square, x) if n % 2 else square


@public("flow")
def chain_matmul(*matrices: Any) -> Any:
    """The product of several matrices."""
    given = matrices[0] if len(matrices) == 1 and isinstance(matrices[0], (list, tuple)) else matrices
    return multi_dot(given) if len(given) != 1 else given[0].clone()


@in_one(torch.linalg.multi_dot)
def multi_dot(tensors: Sequence[Tensor]) -> Tensor:
    """The product of several matrices, in the cheapest order."""
    if len(tensors) < 2:
        raise ShapeError(f"multi_dot(): expected at least 2 tensors but got {len(tensors)}")
    for i, t in enumerate(tensors):
        if t.ndim != 2 and (t.ndim != 1 or 0 < i < len(tensors) - 1):
            raise ShapeError(
                f"multi_dot(): tensor {i} of {len(tensors)} must be 2D, or 1D at an end, but got {t.ndim}D"
            )
    sizes = [tensors[0].shape[0], *(t.shape[-1] for t in tensors)]

    @functools.cache
    def best(i: int, j: int) -> tuple[int, int]:
        """The least cost of the product of tensors i to j, and where to split it."""
        if i == j:
            return 0, i
        cost = {k: best(i, k)[0] + best(k + 1, j)[0] + sizes[i] * sizes[k + 1] * sizes[j + 1] for k in range(i, j)}
        return min((c, k) for k, c in cost.items())

    def product(i: int, j: int) -> Tensor:
        k = best(i, j)[1]
        return tensors[i] if i == j else ops.matmul(product(i, k), product(k + 1, j))

    return product(0, len(tensors) - 1)


def vecdot(x: Any, y: Any, *, dim: int = -1) -> Any:
    """The inner product along a dimension."""
    return ops.sum(conjugated(x) * y, dim)


@public("flow tensor")
def matrix_exp(x: Any) -> Any:
    """The matrix exponential.

    >>> flow.linalg.matrix_exp(flow.zeros(2, 2)).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    return ops.matrix_exponential(x)


__all__ = ["cross", "matrix_exp", "matrix_power", "multi_dot", "vander", "vecdot"]

globals().update({name: door(globals()[name]) for name in __all__})
matmul = ops.matmul
__all__ += ["matmul"]


@public("flow tensor")
@in_one(torch.outer)
def outer(x: Tensor, other: Tensor) -> Tensor:
    """Every product of an element of x and one of the other."""
    if x.ndim != 1 or other.ndim != 1:
        raise ShapeError(f"outer() takes two vectors; got {x.ndim} and {other.ndim} dimensions")
    return ops.mul(ops.unsqueeze(x, 1), other)
