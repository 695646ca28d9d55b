"""Shape inference for ops whose meta kernels are written in Python, which would load torch's compiler at first use.

Each function infers the form for operands that certainly fit; otherwise it returns None, and the meta kernel runs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar

from weft.core.dtype import int64, named
from weft.core.errors import ShapeError
from weft.ops.form import WIDE, Form, alike, counts
from weft.ops.neural.resize import _RESIZE
from weft.ops.shape.views import together

boolean = named("bool")

Found = Form | tuple[Form, ...] | None
F = TypeVar("F", bound=Callable[..., Found])

INFERRED: dict[str, Callable[..., Found]] = {}  # by op; `ops/__init__.py` adds them to the declarations


def infers(*names: str) -> Callable[[F], F]:
    """The form of these ops."""

    def take(f: F) -> F:
        INFERRED.update(dict.fromkeys(names, f))
        return f

    return take


def plain(x: Any) -> bool:
    """Whether x is floating or of indices, not empty, and not 0-d."""
    return isinstance(x, Form) and (alike(x) or counts(x)) and bool(x.shape) and 0 not in x.shape


def inside(x: Form, dim: Any) -> bool:
    return isinstance(dim, int) and -len(x.shape) <= dim < len(x.shape)


def all_inside(x: Form, dims: Any) -> bool:
    given = dims if isinstance(dims, tuple) else (dims,)
    return all(inside(x, d) for d in given) and len({d % len(x.shape) for d in given}) == len(given)


def sized(x: Form, dim: int, size: int) -> tuple[int, ...]:
    """x's shape with another size along a dimension."""
    dim %= len(x.shape)
    return (*x.shape[:dim], size, *x.shape[dim + 1 :])


def without(x: Form, dim: Any, keepdim: bool) -> tuple[int, ...]:
    given = range(len(x.shape)) if dim is None or dim == () else dim if isinstance(dim, tuple) else (dim,)
    gone = {d % len(x.shape) for d in given}
    return tuple(1 if d in gone else n for d, n in enumerate(x.shape) if keepdim or d not in gone)


def along(x: Form, dim: int, *_: Any) -> Found:
    return x if plain(x) and inside(x, dim) else None


@infers("sort")
def values_and_indices(x: Form, dim: int = -1, *_: Any) -> Found:
    return (x, Form(x.shape, int64)) if plain(x) and inside(x, dim) else None


@infers("argsort")
def indices_of(x: Form, dim: int = -1, *_: Any) -> Found:
    return Form(x.shape, int64) if plain(x) and inside(x, dim) else None


@infers("argmax", "argmin")
def index_of(x: Form, dim: int | None, keepdim: bool) -> Found:
    return Form(without(x, dim, keepdim), int64) if plain(x) and (dim is None or inside(x, dim)) else None


@infers("topk")
def most(x: Form, k: int, dim: int, largest: bool, sorted: bool) -> Found:
    if not plain(x) or not inside(x, dim) or not 0 < k <= x.shape[dim]:
        return None
    return Form(sized(x, dim, k), x.dtype), Form(sized(x, dim, k), int64)


@infers("kthvalue")
def at_rank(x: Form, k: int, dim: int, keepdim: bool) -> Found:
    if not plain(x) or not inside(x, dim) or not 0 < k <= x.shape[dim]:
        return None
    return Form(without(x, dim, keepdim), x.dtype), Form(without(x, dim, keepdim), int64)


@infers("prod")
def product(x: Form, dim: int | None, keepdim: bool) -> Found:
    return (
        Form(without(x, dim, keepdim), x.dtype) if plain(x) and alike(x) and (dim is None or inside(x, dim)) else None
    )


@infers("any", "all")
def of_truth(x: Form, dim: Any, keepdim: bool) -> Found:
    fits = isinstance(x, Form) and x.dtype is boolean and bool(x.shape) and 0 not in x.shape
    return Form(without(x, dim, keepdim), boolean) if fits and (dim in (None, ()) or all_inside(x, dim)) else None


@infers("flip")
def flipped(x: Form, dims: Any) -> Found:
    return x if plain(x) and dims and all_inside(x, dims) else None


@infers("roll")
def rolled(x: Form, shifts: Any, dims: Any) -> Found:
    if not plain(x):
        return None
    if isinstance(shifts, int) and (dims == () or inside(x, dims)):
        return x
    equal = isinstance(shifts, tuple) and isinstance(dims, tuple) and len(shifts) == len(dims) > 0
    return x if equal and all_inside(x, dims) else None


# ---- indexing ----------------------------------------------------------------------------------------


def picked(x: Form, indices: tuple[Form | None, ...]) -> tuple[int, ...] | None:
    """The shape of x[indices]: the broadcast index dimensions are at the indices, or first if they aren't adjacent."""
    given = [d for d, i in enumerate(indices) if i is not None]
    lists = [indices[d] for d in given]
    if not plain(x) or not given or len(indices) > len(x.shape):
        return None
    if any(i.dtype is not int64 or not i.shape or 0 in i.shape for i in lists if i is not None):
        return None
    try:
        wide = together(*(i.shape for i in lists if i is not None))
    except ShapeError:
        return None
    rest = [n for d, n in enumerate(x.shape) if d not in given]
    at = given[0] if given == list(range(given[0], given[-1] + 1)) else 0
    return (*rest[:at], *wide, *rest[at:])


@infers("index")
def indexed(x: Form, indices: tuple[Form | None, ...]) -> Found:
    shape = picked(x, indices)
    return None if shape is None else Form(shape, x.dtype)


@infers("index_put")
def put(x: Form, indices: tuple[Form | None, ...], value: Form, accumulate: bool = False) -> Found:
    shape = picked(x, indices)
    if shape is None or not isinstance(value, Form) or value.dtype is not x.dtype or len(value.shape) > len(shape):
        return None
    fits = all(n in (1, m) for n, m in zip(reversed(value.shape), reversed(shape), strict=False))
    return x if fits else None


def reaches(x: Form, dim: int, index: Form) -> bool:
    """Whether an index has x's number of dimensions, none of them longer, except along `dim`."""
    if not plain(x) or not inside(x, dim) or index.dtype is not int64 or len(index.shape) != len(x.shape):
        return False
    return 0 not in index.shape and all(
        n <= m for d, (n, m) in enumerate(zip(index.shape, x.shape, strict=True)) if d != dim % len(x.shape)
    )


@infers("gather")
def gathered(x: Form, dim: int, index: Form) -> Found:
    return Form(index.shape, x.dtype) if reaches(x, dim, index) else None


@infers("scatter", "scatter_add")
def scattered(x: Form, dim: int, index: Form, src: Any) -> Found:
    if not reaches(x, dim, index):
        return None
    if not isinstance(src, Form):
        return x if alike(x) and isinstance(src, (int, float)) else None
    fits = len(src.shape) == len(index.shape) and all(n <= m for n, m in zip(index.shape, src.shape, strict=True))
    return x if src.dtype is x.dtype and fits else None


@infers("scatter_add_zeros")
def scattered_to(src: Form, dim: int, index: Form, shape: Any) -> Found:
    target = Form(tuple(shape), src.dtype)
    return scattered(target, dim, index, src) if plain(src) else None


@infers("index_add")
def added(x: Form, dim: int, index: Form, source: Form, alpha: Any = 1) -> Found:
    if not plain(x) or not plain(source) or not inside(x, dim) or alpha != 1 or source.dtype is not x.dtype:
        return None
    fits = index.dtype is int64 and len(index.shape) == 1 and source.shape == sized(x, dim, index.shape[0])
    return x if fits else None


@infers("index_put_zeros")
def put_in_zeros(value: Form, indices: tuple[Form | None, ...], shape: Any, sparse: bool) -> Found:
    return put(Form(tuple(shape), value.dtype), indices, value) if alike(value) else None


# ---- windows -----------------------------------------------------------------------------------------


@infers("im2col")
def columns(x: Form, kernel_size: Any, dilation: Any, padding: Any, stride: Any) -> Found:
    if not plain(x) or not alike(x) or len(x.shape) != 4:
        return None
    steps = [
        (n + 2 * p - d * (k - 1) - 1) // s + 1
        for n, k, d, p, s in zip(x.shape[2:], kernel_size, dilation, padding, stride, strict=True)
    ]
    return (
        Form((x.shape[0], x.shape[1] * math.prod(kernel_size), math.prod(steps)), x.dtype) if min(steps) > 0 else None
    )


@infers("col2im")
def windows(x: Form, output_size: Any, kernel_size: Any, dilation: Any, padding: Any, stride: Any) -> Found:
    area = math.prod(kernel_size)
    if not plain(x) or not alike(x) or len(x.shape) != 3 or x.shape[1] % area or min(output_size) < 1:
        return None
    y = Form((x.shape[0], x.shape[1] // area, *output_size), x.dtype)
    return y if columns(y, kernel_size, dilation, padding, stride) == x else None


@infers("pad_edges")
def padded(x: Form, pad: Any, mode: str) -> Found:
    dims = len(pad) // 2
    if not plain(x) or not alike(x) or len(x.shape) < dims or dims > 3 or mode not in ("reflect", "replicate"):
        return None
    shape = list(x.shape)
    for i, (left, right) in enumerate(zip(pad[::2], pad[1::2], strict=True)):
        n = shape[-1 - i]
        if not all(0 <= p < n for p in (left, right)):
            return None
        shape[-1 - i] = n + left + right
    return Form(tuple(shape), x.dtype)


@infers("resize")
def resized(x: Form, size: Any, mode: str, align_corners: bool, scales: Any) -> Found:
    fits = plain(x) and alike(x) and isinstance(size, tuple)
    fits = fits and len(size) == len(x.shape) - 2 and min(size) > 0
    return Form((*x.shape[:2], *size), x.dtype) if fits and (mode, len(size)) in _RESIZE else None


@infers("grid_sample")
def sampled(x: Form, grid: Form, mode: str, padding_mode: str, align_corners: bool) -> Found:
    fits = plain(x) and plain(grid) and alike(x, grid) and len(x.shape) == len(grid.shape) == 4
    fits = fits and grid.shape[0] == x.shape[0] and grid.shape[-1] == 2
    known = mode in ("bilinear", "nearest", "bicubic") and padding_mode in ("zeros", "border", "reflection")
    return Form((*x.shape[:2], *grid.shape[1:-1]), x.dtype) if fits and known else None


# ---- matrices ----------------------------------------------------------------------------------------


def matrices(x: Form, square: bool = True) -> bool:
    return plain(x) and alike(x, among=WIDE) and len(x.shape) > 1 and (not square or x.shape[-1] == x.shape[-2])


@infers("solve")
def solved(a: Form, b: Form) -> Found:
    fits = matrices(a) and matrices(b, False) and alike(a, b) and a.shape[:-1] == b.shape[:-1]
    return b if fits else None


@infers("svd")
def thin(x: Form) -> Found:
    if not matrices(x, False):
        return None
    (*lead, m, n), k = x.shape, min(x.shape[-2:])
    return Form((*lead, m, k), x.dtype), Form((*lead, k), x.dtype), Form((*lead, k, n), x.dtype)


@infers("qr")
def orthogonal(x: Form) -> Found:
    if not matrices(x, False) or x.shape[-2] < x.shape[-1]:
        return None
    return x, Form((*x.shape[:-2], x.shape[-1], x.shape[-1]), x.dtype)


@infers("einsum")
def contracted(operands: tuple[Form, ...], equation: str) -> Found:
    left, arrow, right = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    if not arrow or not all(map(plain, operands)) or not alike(*operands) or len(terms) != len(operands):
        return None
    sizes: dict[str, int] = {}
    for term, x in zip(terms, operands, strict=True):
        if len(term) != len(x.shape) or not term.isalpha() or len(set(term)) != len(term):
            return None
        for letter, n in zip(term, x.shape, strict=True):
            if sizes.setdefault(letter, n) != n:
                return None
    fits = len(set(right)) == len(right) and set(right) <= sizes.keys()
    return Form(tuple(sizes[letter] for letter in right), operands[0].dtype) if fits else None


@infers("arange")
def counted(start: Any, end: Any, step: Any, dtype: Any, *where: Any) -> Found:
    numbers = start, end, step
    if not all(type(n) is int for n in numbers) or not step or (end - start) * step < 0:
        return None
    return Form((len(range(start, end, step)),), dtype)


@infers("fourier")
def transformed(x: Form, dims: Any, scale: int, forward: bool) -> Found:
    return x if x.dtype.is_complex and x.shape and 0 not in x.shape and dims and all_inside(x, dims) else None


@infers("searchsorted")
def found_among(s: Form, values: Form, right: bool) -> Found:
    fits = plain(s) and plain(values) and s.dtype is values.dtype and len(s.shape) == 1
    return Form(values.shape, int64) if fits else None


@infers("one_hot")
def hot(x: Form, classes: int) -> Found:
    return Form((*x.shape, classes), int64) if plain(x) and x.dtype is int64 and classes > 0 else None


@infers("inv", "cholesky")
def square(x: Form) -> Found:
    return x if matrices(x) else None


INFERRED |= {
    **dict.fromkeys(("cumsum", "cumprod"), lambda x, dim: along(x, dim) if alike(x) else None),
    "det": lambda x: Form(x.shape[:-2], x.dtype) if matrices(x) else None,
    "slogdet": lambda x: (Form(x.shape[:-2], x.dtype),) * 2 if matrices(x) else None,
    "eigh": lambda x: (Form(x.shape[:-1], x.dtype), x) if matrices(x) else None,
}
