"""Matrices and distances, composed of ops: `kron`, `cdist`, `matrix_power`, `pinv`, ..."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

from weft.core import dtype as dtypes
from weft.core.errors import OptionError, ShapeError
from weft.functional import arithmetic, creation, linalg, overwrite
from weft.functional.likeness import beside
from weft.functional.parts import atleast_2d
from weft.functional.signature import door
from weft.functional.table import calling, public
from weft.ops import OPS
from weft.ops.explain import describe
from weft.tensor.tensor import Tensor

_matmul, _sum, _reshape, _expand = map(calling, ("matmul", "sum", "reshape", "expand"))


@public("flow tensor")
def trace(x: Tensor) -> Tensor:
    """The sum of a matrix's diagonal."""
    if x.ndim != 2:
        raise ShapeError(f"trace: expected a matrix, but got tensor with dim {x.ndim}: {list(x.shape)}")
    return _sum(OPS["diagonal"](x, 0, 0, 1))


def _vectors(name: str, *given: Any) -> None:
    if any(not isinstance(x, Tensor) or x.ndim != 1 for x in given):
        raise ShapeError(f"{name}(): 1D tensors expected, but got {' and '.join(map(describe, given))}")


@public("flow tensor")
def inner(x: Any, other: Any) -> Any:
    """The sums of products along both last dimensions.

    >>> flow.inner(flow.ones(2, 3), flow.ones(3)).tolist()
    [3.0, 3.0]
    """
    if not x.ndim or not other.ndim:
        return x * other
    a, b = (_reshape(t, (math.prod(t.shape[:-1]), t.shape[-1])) for t in (x, other))
    return _reshape(_matmul(a, OPS["transpose"](b, 0, 1)), (*x.shape[:-1], *other.shape[:-1]))


@public("flow tensor")
def vdot(x: Any, other: Any) -> Any:
    """The inner product of two vectors, of which the first is conjugated."""
    _vectors("vdot", x, other)
    return _sum(OPS["conj"](x) * other)


@public("flow tensor")
def addr(x: Any, vec1: Any, vec2: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """beta * x + alpha * (vec1 outer vec2)."""
    _vectors("addr", vec1, vec2)
    return arithmetic.beside("addr", x, beta, OPS["unsqueeze"](vec1, 1) * vec2 * alpha)


@public("flow tensor")
def addbmm(x: Any, batch1: Any, batch2: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """beta * x + alpha * the sum of the products of two batches of matrices."""
    arithmetic.check_dims("addbmm", (3, 3), batch1, batch2)
    return arithmetic.beside("addbmm", x, beta, _sum(_matmul(batch1, batch2), 0) * alpha)


for _f in (arithmetic.addmm, arithmetic.baddbmm, addr, addbmm):
    overwrite.composed(_f.__name__, _f)


@public("flow tensor")
def kron(x: Any, other: Any) -> Any:
    """Every element of x times the whole other.

    >>> flow.kron(flow.eye(2), flow.tensor([[1.0, 2.0]])).tolist()
    [[1.0, 2.0, 0.0, 0.0], [0.0, 0.0, 1.0, 2.0]]
    """
    n = max(x.ndim, other.ndim)
    a, b = (_reshape(v, (1,) * (n - v.ndim) + tuple(v.shape)) for v in (x, other))
    left = _reshape(a, tuple(k for size in a.shape for k in (size, 1)))
    right = _reshape(b, tuple(k for size in b.shape for k in (1, size)))
    return _reshape(left * right, tuple(p * q for p, q in zip(a.shape, b.shape, strict=True)))


@public("flow tensor")
def dist(x: Any, other: Any, p: float = 2) -> Any:
    """The p-norm of the difference."""
    return linalg.vector_norm(x - other, p)


COMPUTE_MODES = (  # which of torch's kernels computes; there is but one here
    None, 0, 1, 2, "use_mm_for_euclid_dist_if_necessary", "use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist",
)  # fmt: skip


@public("flow")
def cdist(x1: Any, x2: Any, p: float = 2.0, compute_mode: Any = None) -> Any:
    """The distances between every row of the one and every row of the other.

    >>> flow.cdist(flow.tensor([[0.0, 0.0]]), flow.tensor([[3.0, 4.0], [0.0, 1.0]])).tolist()
    [[5.0, 1.0]]
    """
    if x1.shape[-1] != x2.shape[-1]:
        raise ShapeError(f"cdist(): rows of {x1.shape[-1]} and of {x2.shape[-1]} numbers have no distance")
    if not isinstance(compute_mode, (str, int, type(None))) or compute_mode not in COMPUTE_MODES:
        words = ", ".join(m for m in COMPUTE_MODES if isinstance(m, str))
        raise OptionError(
            f"cdist(): {compute_mode} is not a valid value for compute_mode, which changes nothing: {words}"
        )
    apart = OPS["unsqueeze"](x1, -2) - OPS["unsqueeze"](x2, -3)
    return linalg.vector_norm(apart, p if x1.shape[-1] else 1, -1)  # without columns, nothing is apart


@public("flow tensor")
def matrix_power(x: Any, n: int) -> Any:
    """The product of n times the same matrix; of its inverse, if n is below zero."""
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise ShapeError(f"matrix_power: A must be batches of square matrices; got {list(x.shape)}")
    if n < 0:
        return matrix_power(OPS["inv"](x), -n)
    if n == 0:
        return _expand(creation.eye(x.shape[-1], dtype=x.dtype, **beside(x)), tuple(x.shape))
    half = matrix_power(x, n // 2) if n > 1 else None
    square = x if half is None else _matmul(half, half)
    return _matmul(square, x) if n > 1 and n % 2 else square


@public("flow")
def chain_matmul(*matrices: Any) -> Any:
    """The product of several matrices."""
    given = matrices[0] if len(matrices) == 1 and isinstance(matrices[0], (list, tuple)) else matrices
    return multi_dot(given) if len(given) != 1 else given[0].clone()


def multi_dot(tensors: Sequence[Tensor]) -> Tensor:
    """The product of several matrices, in the order that costs least."""
    if len(tensors) < 2:
        raise ShapeError(f"multi_dot(): expected at least 2 tensors but got {len(tensors)}")
    sizes = [tensors[0].shape[0], *(t.shape[-1] for t in tensors)]

    @functools.cache
    def best(i: int, j: int) -> tuple[int, int]:
        """The least cost of the product of tensors i to j, and where to cut it."""
        if i == j:
            return 0, i
        cost = {k: best(i, k)[0] + best(k + 1, j)[0] + sizes[i] * sizes[k + 1] * sizes[j + 1] for k in range(i, j)}
        return min((c, k) for k, c in cost.items())

    def product(i: int, j: int) -> Tensor:
        k = best(i, j)[1]
        return tensors[i] if i == j else _matmul(product(i, k), product(k + 1, j))

    return product(0, len(tensors) - 1)


def pinv(x: Any, atol: Any = None, rtol: Any = None, hermitian: bool = False) -> Any:
    """The matrix that undoes x as far as that can be: singular values that are next to nothing count as none.

    >>> flow.linalg.pinv(flow.tensor([[2.0, 0.0], [0.0, 0.0]])).tolist()
    [[0.5, 0.0], [0.0, 0.0]]
    """
    if not isinstance(atol, Tensor) and not isinstance(rtol, Tensor):
        return OPS["pinv"](x, atol, rtol, hermitian)
    u, s, vh = linalg.svd(x, False)
    parts: Any = s
    tiny = 2.0**-23 if x.dtype is dtypes.float32 else 2.0**-52
    relative = (max(x.shape[-2:]) * tiny if atol is None else 0.0) if rtol is None else rtol
    limit = OPS["amax"](s, -1, True).detach() * relative
    limit = limit if atol is None else OPS["maximum"](limit, OPS["zeros_like"](limit) + atol)
    kept = parts > limit
    inverse = OPS["where"](kept, 1.0 / OPS["where"](kept, parts, 1.0), 0.0)
    return _matmul(vh.mH * OPS["unsqueeze"](inverse, -2), u.mH)  # type: ignore[attr-defined]


@public("flow tensor")
def pinverse(x: Any, rcond: float = 1e-15) -> Any:
    """`linalg.pinv`, where singular values below `rcond` times the largest count as none."""
    return pinv(x, rtol=rcond)


def eigvalsh(x: Tensor, UPLO: str = "L") -> Tensor:
    """The eigenvalues of symmetric matrices, in rising order."""
    return linalg.eigh(x, UPLO)[0]


def solve_triangular(A: Any, B: Any, *, upper: bool, left: bool = True, unitriangular: bool = False) -> Any:
    """The x of A @ x = B, or of x @ A = B, for triangular A."""
    if left:
        return OPS["solve_triangle"](A, B, upper, unitriangular)
    return OPS["solve_triangle"](A.mT, B.mT, not upper, unitriangular).mT


@public("flow tensor")
def cholesky_solve(x: Any, L: Any, upper: bool = False) -> Any:
    """The y of A @ y = x, where L is A's Cholesky factor."""
    lower = L.mH if upper else L
    return OPS["solve_triangle"](lower.mH, OPS["solve_triangle"](lower, x), True)


@public("flow tensor")
def logdet(x: Any) -> Any:
    """The logarithm of the determinant."""
    sign, size = OPS["slogdet"](x)
    return OPS["where"](OPS["gt"](sign, 0), size, math.nan)


def matrix_rank(x: Any, tol: Any = None, hermitian: bool = False, *, atol: Any = None, rtol: Any = None) -> Any:
    """How many singular values are more than next to nothing."""
    s: Any = linalg.svdvals(x)
    if 0 in s.shape[-1:]:
        return creation.zeros(tuple(s.shape[:-1]), dtype=dtypes.int64, **beside(x))
    tiny = 2.0**-23 if x.dtype is dtypes.float32 else 2.0**-52
    given = atol if tol is None else tol
    relative = (max(x.shape[-2:]) * tiny if given is None else 0.0) if rtol is None else rtol
    limit = OPS["amax"](s, -1, True) * relative
    limit = limit if given is None else OPS["maximum"](limit, OPS["zeros_like"](limit) + given)
    return _sum(OPS["cast"](s > limit, dtypes.int64), -1)


def cond(x: Any, p: Any = None) -> Any:
    """How many times larger an error may become when a matrix is inverted."""
    if x.ndim > 1 and 0 in x.shape[-2:]:
        return creation.zeros(tuple(x.shape[:-2]), dtype=x.dtype, **beside(x))
    if p in (None, 2, -2):
        s: Any = linalg.svdvals(x)
        large, small = OPS["amax"](s, -1), OPS["amin"](s, -1)
        return small / large if p == -2 else large / small
    return linalg.matrix_norm(x, p) * linalg.matrix_norm(OPS["inv"](x), p)  # type: ignore[operator]


def lstsq(A: Any, B: Any, rcond: Any = None, *, driver: Any = None) -> Any:
    """The x for which A @ x comes nearest to B. Gives (x, the squares of what is left, rank, singular values); nothing
    is left to tell of where A isn't tall, or where it lacks rank. `driver` names a way to compute it; there is one.
    """
    vector = B.ndim == A.ndim - 1
    b = OPS["unsqueeze"](B, -1) if vector else B
    x, rank = _matmul(pinv(A, rtol=rcond), b), matrix_rank(A)
    rows, columns = tuple(A.shape)[-2:]
    told = rows > columns and bool((rank == columns).all())
    left = _sum((_matmul(A, x) - b).square(), -2) if told else linalg.nothing(A)
    return Solution(OPS["squeeze"](x, -1) if vector else x, left, rank, linalg.svdvals(A))


class Solution(tuple[Any, ...]):
    """What `lstsq` gives."""

    def __new__(cls, *parts: Any) -> Solution:
        return super().__new__(cls, parts)

    solution = property(lambda self: self[0])
    residuals = property(lambda self: self[1])
    rank = property(lambda self: self[2])
    singular_values = property(lambda self: self[3])


def vecdot(x: Any, y: Any, *, dim: int = -1) -> Any:
    """The sums of products along a dimension."""
    return _sum(OPS["conj"](x) * y if x.dtype.is_complex else x * y, dim)


def vander(x: Any, N: int | None = None) -> Any:
    """The powers of each element, from 0 on."""
    x = x if x.ndim else OPS["reshape"](x, (1,))
    x = x if x.dtype.differentiable else OPS["cast"](x, dtypes.int64)  # as of products
    n = x.shape[-1] if N is None else N
    return OPS["unsqueeze"](x, -1) ** creation.arange(n, dtype=x.dtype, **beside(x))


@public("flow")
def block_diag(*tensors: Any) -> Any:
    """Matrices along a diagonal, zeros elsewhere.

    >>> flow.block_diag(flow.ones(1, 2), flow.ones(1, 1)).tolist()
    [[1.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """
    parts: Any = [atleast_2d(t) for t in tensors]
    width, at, rows = sum(p.shape[1] for p in parts), 0, []
    for p in parts:
        rows.append(OPS["pad_with"](p, (at, width - at - p.shape[1]), 0))
        at += p.shape[1]
    return OPS["cat"](rows, 0)


def norm(x: Any, ord: Any = None, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """The norm of vectors or of matrices: of a matrix where `dim` names two dimensions, or x has two and `ord` is told.

    >>> flow.linalg.norm(flow.eye(4)).item(), flow.linalg.norm(flow.eye(4), 2).item()
    (2.0, 1.0)
    """
    pair = tuple(dim) if isinstance(dim, (tuple, list)) and len(dim) == 2 else None
    pair = (-2, -1) if dim is None and x.ndim == 2 else pair
    if ord is not None and pair is not None:
        return linalg.matrix_norm(x, ord, pair, keepdim, dtype=dtype)
    return linalg.vector_norm(x, 2 if ord is None else ord, dim, keepdim, dtype=dtype)


@public("flow tensor")
def matrix_exp(x: Any) -> Any:
    """The exponential of matrices: the sum of their powers over factorials.

    >>> flow.linalg.matrix_exp(flow.zeros(2, 2)).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    return OPS["matrix_exponential"](x)


__all__ = [  # what `flow.linalg` has of these
    "cond", "eigvalsh", "lstsq", "matrix_exp", "matrix_power", "matrix_rank", "multi_dot", "norm", "pinv",
    "solve_triangular", "vander", "vecdot",
]  # fmt: skip

globals().update({name: door(globals()[name]) for name in __all__})
