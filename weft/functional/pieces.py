"""Pieces of tensors taken, put and turned: `take`, `index_fill`, `masked_scatter`, `scatter_reduce`, `rot90`, ..."""

from __future__ import annotations

import builtins
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

from weft.core import dtype as dtypes
from weft.core.errors import ArgumentError, DtypeError, ShapeError
from weft.functional import creation, indexing, overwrite, places
from weft.functional.conversion import cast
from weft.functional.likeness import beside
from weft.functional.linalg import vector_norm
from weft.functional.shaping import broadcast_shapes, movedim
from weft.functional.table import public
from weft.ops import OPS
from weft.ops.complex import imag as imag_of
from weft.ops.complex import polar as polar_of
from weft.ops.complex import real as real_of
from weft.ops.explain import describe
from weft.ops.shape import dim_of
from weft.tensor.tensor import Tensor

MOST_CHOSEN = 1 << 24  # numbers that `combinations` writes out, in Python


def _both(f: Callable[..., Any], name: str = "") -> Callable[..., Any]:
    """A function and method of this name, and the method `name_` that overwrites."""
    name = name or f.__name__
    public("flow tensor", name)(f)
    overwrite.composed(name, f)
    return f


# ---- along one dimension -----------------------------------------------------------------------------


@_both
def index_copy(x: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    """x with the slices along a dimension at these positions replaced.

    >>> flow.index_copy(flow.zeros(3), 0, flow.tensor([2]), flow.ones(1)).tolist()
    [0.0, 0.0, 1.0]
    """
    if not x.ndim:  # as one element in a row
        return OPS["reshape"](index_copy(OPS["reshape"](x, (1,)), 0, index, OPS["reshape"](source, (-1,))), ())
    d = dim_of(dim, x.ndim)
    moved = source if source.ndim < x.ndim else movedim(source, d, 0)
    y = OPS["index_put"](movedim(x, d, 0), [OPS["reshape"](index, (-1,))], moved)
    return movedim(y, 0, d)


@_both
def index_fill(x: Tensor, dim: int, index: Tensor, value: Any) -> Tensor:
    """x with one value in the slices along a dimension at these positions.

    >>> flow.index_fill(flow.zeros(3), 0, flow.tensor([0, 2]), 5).tolist()
    [5.0, 0.0, 5.0]
    """
    if not x.ndim:
        return OPS["reshape"](index_fill(OPS["reshape"](x, (1,)), 0, index, value), ())
    d = dim_of(dim, x.ndim)
    if isinstance(value, Tensor) and value.requires_grad:  # a place that is named twice is filled once
        named = OPS["index_put"](
            creation.zeros(x.shape[d], dtype="bool", **beside(x)),
            [OPS["reshape"](index, (-1,))],
            creation.tensor(True, **beside(x)),
        )
        named = OPS["reshape"](named, (-1, *(1,) * (x.ndim - d - 1)))
        return OPS["where"](named, value if value.dtype is x.dtype else cast(value, x.dtype), x)
    filled = value if isinstance(value, Tensor) else creation.full((), value, dtype=x.dtype, **beside(x))
    return OPS["index_put"](x, [*[None] * d, OPS["reshape"](index, (-1,))], filled)


@_both
def scatter_reduce(x: Tensor, dim: int, index: Tensor, src: Any, reduce: str, *, include_self: bool = True) -> Tensor:
    """x with src put in along a dimension at the places that the index tells; where several meet, they are reduced:
    "sum", "prod", "mean", "amax" or "amin". `include_self`: with what x held there.

    >>> flow.scatter_reduce(flow.ones(2), 0, flow.tensor([1, 1]), flow.tensor([2., 3.]), "sum").tolist()
    [1.0, 6.0]
    """
    if reduce not in ("sum", "prod", "mean", "amax", "amin"):
        raise ArgumentError(f'scatter_reduce(): reduce is "sum", "prod", "mean", "amax" or "amin"; got {reduce!r}')
    if tuple(src.shape) != tuple(index.shape):  # the index says how much of src is put in
        src = indexing.getitem(src, tuple(slice(0, n) for n in index.shape))
    if reduce not in ("sum", "mean"):
        return OPS["scatter_reduced"](x, dim, index, src, reduce, include_self)
    ones = OPS["ones_like"](src.detach())
    count: Any = OPS["scatter_add"](OPS["zeros_like"](x.detach()), dim, index, ones)
    base = x if include_self else OPS["where"](count > 0, 0.0, x)
    whole = OPS["scatter_add"](base, dim, index, src)
    if reduce == "sum":
        return whole
    each: Any = count + 1 if include_self else OPS["clamp"](count, 1)
    return OPS["div"](whole, each) if x.dtype.differentiable else OPS["floor_divide"](whole, each)


@_both
def index_reduce(
    x: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """x with the source's slices put in along a dimension at these positions; where several meet, they are reduced:
    "prod", "mean", "amax" or "amin".

    >>> flow.index_reduce(flow.ones(2), 0, flow.tensor([1, 1]), flow.tensor([2., 3.]), "prod").tolist()
    [1.0, 6.0]
    """
    d = dim_of(dim, x.ndim)
    places = OPS["reshape"](index, [-1 if i == d else 1 for i in builtins.range(x.ndim)])
    places = OPS["expand"](places, tuple(source.shape))
    return scatter_reduce(x, d, places, source, reduce, include_self=include_self)


# ---- from x seen as one row --------------------------------------------------------------------------


@public("flow tensor")
def take(x: Tensor, index: Tensor) -> Tensor:
    """The elements at these positions of x, as if it were one row.

    >>> flow.take(flow.tensor([[1, 2], [3, 4]]), flow.tensor([0, 3])).tolist()
    [1, 4]
    """
    return OPS["index"](OPS["reshape"](x, (-1,)), [index])


@_both
def put(x: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    """x with other elements at these positions, as if it were one row; or with them added."""
    flat = OPS["index_put"](OPS["reshape"](x, (-1,)), [index], OPS["reshape"](source, tuple(index.shape)), accumulate)
    return OPS["reshape"](flat, tuple(x.shape))


@_both
def masked_scatter(x: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """x with the first elements of the source, one after another, where the mask is True.

    >>> flow.masked_scatter(flow.zeros(3), flow.tensor([True, False, True]), flow.tensor([1., 2., 3.])).tolist()
    [1.0, 0.0, 2.0]
    """
    shape = tuple(broadcast_shapes(tuple(x.shape), tuple(mask.shape)))
    x = x if tuple(x.shape) == shape else OPS["expand"](x, shape)
    flat = OPS["reshape"](OPS["expand"](mask, shape), (-1,))
    at: Any = OPS["cumsum"](cast(flat, dtypes.int64), 0) - 1
    picked = OPS["index"](OPS["reshape"](source, (-1,)), [OPS["clamp"](at, 0)])
    return OPS["reshape"](OPS["where"](flat, picked, OPS["reshape"](x, (-1,))), tuple(x.shape))


@public("flow tensor")
def ravel(x: Tensor) -> Tensor:
    """x as one row."""
    return OPS["reshape"](x, (-1,))


# ---- turning -----------------------------------------------------------------------------------------


@public("flow tensor")
def fliplr(x: Tensor) -> Tensor:
    """x with its columns in the reverse order."""
    return OPS["flip"](x, (1,))


@public("flow tensor")
def flipud(x: Tensor) -> Tensor:
    """x with its rows in the reverse order."""
    if not x.ndim:
        raise ShapeError("flipud(): Input must be >= 1-d.")
    return OPS["flip"](x, (0,))


@public("flow tensor")
def rot90(x: Tensor, k: int = 1, dims: Sequence[int] = (0, 1)) -> Tensor:
    """x turned by k quarters in the plane of two dimensions.

    >>> flow.rot90(flow.tensor([[1, 2], [3, 4]])).tolist()
    [[2, 4], [1, 3]]
    """
    if len(dims) != 2 or x.ndim < 2:
        raise ShapeError(
            f"rot90(): expected total dims >= 2 and two of them to turn in, but got {list(x.shape)} and dims "
            f"{list(dims)}"
        )
    a, b = dims
    if dim_of(a, x.ndim) == dim_of(b, x.ndim):
        raise ShapeError(f"rot90(): expected rotation dims to be different, but got dim0 = {a} and dim1 = {b}")
    if k % 4 == 0:
        return OPS["clone"](x)
    if k % 4 == 2:
        return OPS["flip"](x, (a, b))
    turned = OPS["transpose"](x, a, b)
    return OPS["flip"](turned, (a if k % 4 == 1 else b,))


@public("flow tensor")
def msort(x: Tensor) -> Tensor:
    """x sorted along its first dimension."""
    return OPS["sort"](x, 0)[0]


# ---- diagonals, grids and combinations ---------------------------------------------------------------


@public("flow tensor")
def diag_embed(x: Tensor, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """Matrices, zero but for their diagonals, the last dimension of x.

    >>> flow.diag_embed(flow.tensor([1, 2])).tolist()
    [[1, 0], [0, 2]]
    """
    n, ndim = x.shape[-1] + abs(offset), x.ndim + 1
    a, b = dim_of(dim1, ndim), dim_of(dim2, ndim)
    made = OPS["diagonal_zeros"](x, (*x.shape[:-1], n, n), offset, ndim - 2, ndim - 1)
    return movedim(made, (ndim - 2, ndim - 1), (a, b))


@public("flow tensor")
def diagflat(x: Tensor, offset: int = 0) -> Tensor:
    """The matrix with all of x on a diagonal."""
    return diag_embed(ravel(x), offset)


@public("flow")
def cartesian_prod(*tensors: Tensor) -> Tensor:
    """Every choice of one element from each vector, a row each.

    >>> flow.cartesian_prod(flow.tensor([1, 2]), flow.tensor([3, 4])).tolist()
    [[1, 3], [1, 4], [2, 3], [2, 4]]
    """
    if any(not isinstance(x, Tensor) or x.ndim != 1 for x in tensors):
        raise ShapeError(f"cartesian_prod(): Expect a 1D vector each, but got {', '.join(map(describe, tensors))}")
    if len(tensors) == 1:
        return tensors[0]
    flat = [OPS["reshape"](g, (-1, 1)) for g in places.meshgrid(*tensors)]
    return OPS["cat"](flat, 1)


@public("flow")
def combinations(x: Tensor, r: int = 2, with_replacement: bool = False) -> Tensor:
    """Every choice of r elements of a vector, in its order, a row each."""
    if x.ndim != 1 or r < 0:
        raise ShapeError(f"combinations(): Expect a 1D vector, but got shape {list(x.shape)}, and r >= 0; r is {r}")
    rows = math.comb(x.shape[0] + (r - 1 if with_replacement and x.shape[0] else 0), r)
    if rows * r > MOST_CHOSEN:
        raise ShapeError(f"combinations(): {rows} rows of {r}; at most {MOST_CHOSEN} elements are written out")
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    chosen = [i for row in choose(builtins.range(x.shape[0]), r) for i in row]
    at = creation.tensor(chosen, dtype=dtypes.int64, **beside(x))
    return OPS["reshape"](OPS["index_select"](x, 0, at), (-1, r))


@public("tensor")
def fill_diagonal_(x: Tensor, fill_value: Any, wrap: bool = False) -> Tensor:
    """Overwrite the diagonal with one value."""
    n = min(x.shape)
    if x.ndim < 2 or wrap or (x.ndim > 2 and len(set(x.shape)) > 1):
        raise ShapeError(f"fill_diagonal_(): a matrix, or equal sizes, and no wrap; this has shape {list(x.shape)}")
    at = creation.arange(n, **beside(x))
    value = creation.full((), fill_value, dtype=x.dtype, **beside(x))
    return overwrite.copy_(x, OPS["index_put"](x, [at] * x.ndim, value))


@public("flow tensor")
def sum_to_size(x: Tensor, *size: creation.Sizes) -> Tensor:
    """x summed over the dimensions that broadcasting from this size would have made."""
    return OPS["sum_to"](x, creation.size_of("sum_to_size", size))


@public("flow tensor")
def split_with_sizes(x: Tensor, split_sizes: Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
    """Views of parts of these sizes along a dimension."""
    return x.split(list(split_sizes), dim)  # type: ignore[attr-defined]  # bound from the registry


@public("flow")
def range(start: float = 0, end: float | None = None, step: float = 1, **options: Any) -> Tensor:
    """start, start + step, ... up to end, which belongs to it."""
    if end is None:
        start, end = 0, start
    return creation.arange(start, end + step / 2, step, **{"dtype": creation.get_default_dtype(), **options})


@public("flow")
def scalar_tensor(value: Any, **options: Any) -> Tensor:
    """A tensor of no dimension."""
    return creation.tensor(value, **{"dtype": creation.get_default_dtype(), **options})


@public("flow")
def asarray(data: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False, copy: Any = None) -> Tensor:
    """Data as a tensor, sharing memory where that is possible."""
    y = creation.tensor(data, dtype=dtype, device=device) if copy else creation.as_tensor(data, dtype, device)
    if y is data and (requires_grad or data.requires_grad):  # the gradient is not the given tensor's
        y = data.detach()
    return creation.finished(y, requires_grad)


# ---- complex numbers ---------------------------------------------------------------------------------


@public("flow")
def real(x: Tensor) -> Tensor:
    """The real part, sharing memory; x itself, if it is real."""
    return real_of(x) if x.dtype.is_complex else x


@public("flow")
def imag(x: Tensor) -> Tensor:
    """The imaginary part, sharing memory."""
    return imag_of(x)


@public("flow")
def polar(abs: Tensor, angle: Tensor) -> Tensor:
    """Complex numbers from sizes and directions.

    >>> flow.polar(flow.tensor([2.0]), flow.tensor([0.0])).tolist()
    [(2+0j)]
    """
    return polar_of(abs, angle)


@public("flow tensor")
def is_complex(x: Tensor) -> bool:
    """Whether x holds complex numbers."""
    return x.dtype.is_complex


@public("flow tensor", "conj_physical")
def conj_physical(x: Tensor) -> Tensor:
    """The complex conjugate."""
    return OPS["conj"](x)


@public("flow tensor")
def adjoint(x: Tensor) -> Tensor:
    """The conjugate with its last two dimensions exchanged."""
    return OPS["conj"](OPS["transpose"](x, -2, -1))


@public("flow tensor")
def positive(x: Tensor) -> Tensor:
    """x."""
    if x.dtype is dtypes.bool_:
        raise DtypeError("positive(): The `+` operator, on a bool tensor is not supported: x.int()")
    return x


@public("flow tensor")
def ldexp(x: Any, other: Any) -> Any:
    """x * 2 ** other."""
    return x * OPS["pow"](2.0, other)


@public("flow tensor")
def float_power(x: Any, exponent: Any) -> Any:
    """x ** exponent, in float64, or of complex numbers in complex128."""
    tensors = [t for t in (x, exponent) if isinstance(t, Tensor)]
    complex_ = any(t.dtype.is_complex for t in tensors) or isinstance(x, complex) or isinstance(exponent, complex)
    wide = dtypes.complex128 if complex_ else dtypes.float64
    return OPS["pow"](*(cast(t, wide) if isinstance(t, Tensor) else t for t in (x, exponent)))


@public("flow tensor")
def renorm(x: Any, p: float, dim: int, maxnorm: float) -> Any:
    """x with each slice along a dimension scaled down to a p-norm of at most maxnorm."""
    if not p > 0 or maxnorm < 0:
        raise ShapeError(
            f"renorm: non-positive-norm not supported, nor a maxnorm below zero; got p={p}, maxnorm={maxnorm}"
        )
    others = tuple(d for d in builtins.range(x.ndim) if d != dim_of(dim, x.ndim))
    size: Any = vector_norm(x, float(p), others, True)
    return x * OPS["where"](size > maxnorm, maxnorm / (size + 1e-7), 1.0)
