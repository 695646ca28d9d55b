"""Along one dimension: running sums of several kinds, slopes, powers; and places in grids from places in rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from weft.core.dtype import bool_, int64
from weft.core.errors import ArgumentError, OptionError, ShapeError
from weft.functional import creation
from weft.functional.conversion import cast
from weft.functional.likeness import beside
from weft.functional.parts import stack
from weft.functional.table import public
from weft.ops import OPS
from weft.ops.shape import dim_of
from weft.tensor.tensor import Tensor


def _from(x: Any, dim: int, start: int, count: int) -> Any:
    return OPS["narrow"](x, dim, start, count)


@public("flow tensor")
def logcumsumexp(x: Any, dim: int) -> Tensor:
    """The logarithms of running sums of exp(x).

    >>> flow.logcumsumexp(flow.zeros(2), 0).tolist()
    [0.0, 0.693...]
    """
    d = dim_of(dim, x.ndim)
    if not x.ndim:
        return OPS["clone"](x)
    # each against the largest so far, so that nothing overflows
    above = OPS["cummax"](x.detach(), d)[0]
    above = OPS["where"](above == -math.inf, 0.0, above)
    n = x.shape[d]
    shown: Any = OPS["unsqueeze"](x, d) - OPS["unsqueeze"](above, d + 1)  # [..., until, of, ...]
    rows: Any = creation.arange(n, **beside(x))
    past = OPS["ge"](rows.reshape(n, 1), rows).reshape([1] * d + [n, n] + [1] * (x.ndim - d - 1))
    return above + OPS["log"](OPS["sum"](OPS["exp"](OPS["where"](past, shown, -math.inf)), d + 1))


@public("flow")
def cumulative_trapezoid(y: Any, x: Any = None, *, dx: float = 1.0, dim: int = -1) -> Tensor:
    """The running integral of y over x, or over steps of dx, by trapezoids.

    >>> flow.cumulative_trapezoid(flow.tensor([1.0, 3.0, 3.0])).tolist()
    [2.0, 5.0]
    """
    d = dim_of(dim, y.ndim)
    n = y.shape[d]
    means = (_from(y, d, 0, n - 1) + _from(y, d, 1, n - 1)) / 2
    if x is None:
        return OPS["cumsum"](means * dx, d)
    at = x.reshape([-1 if i == d else 1 for i in range(y.ndim)]) if x.ndim == 1 and y.ndim > 1 else x
    along = dim_of(dim, at.ndim)
    return OPS["cumsum"](means * (_from(at, along, 1, n - 1) - _from(at, along, 0, n - 1)), d)


@public("flow")
def gradient(input: Any, *, spacing: Any = 1, dim: Any = None, edge_order: int = 1) -> tuple[Tensor, ...]:
    """Slopes along each dimension: differences to both sides, at the ends to one. `spacing` is one step, one for each
    dimension, or the coordinates along each.

    >>> flow.gradient(flow.tensor([0.0, 1.0, 4.0]))[0].tolist()
    [1.0, 2.0, 3.0]
    """
    dims = list(range(input.ndim)) if dim is None else [dim] if isinstance(dim, int) else list(dim)
    steps = list(spacing) if isinstance(spacing, Sequence) else [spacing] * len(dims)
    if len(steps) != len(dims):
        raise ArgumentError(f"gradient(): one spacing, or one for each of {len(dims)} dimensions; got {len(steps)}")
    if edge_order not in (1, 2):
        raise ArgumentError(f"gradient(): edge_order is 1 or 2; got {edge_order}")
    return tuple(_slope(input, dim_of(d, input.ndim), s, edge_order) for d, s in zip(dims, steps, strict=True))


def _slope(y: Any, d: int, step: Any, order: int) -> Tensor:
    n = y.shape[d]
    if n < order + 1:
        raise ShapeError(f"gradient(): dimension {d} has {n} elements; slopes need {order + 1}")
    if isinstance(step, Tensor) and step.ndim:
        between = _from(step, 0, 1, n - 1) - _from(step, 0, 0, n - 1)
        gaps = between.reshape([-1 if i == d else 1 for i in range(y.ndim)])
    else:
        gaps = creation.full((*[1] * d, n - 1, *[1] * (y.ndim - d - 1)), float(step), dtype=y.dtype, **beside(y))
    rise = (_from(y, d, 1, n - 1) - _from(y, d, 0, n - 1)) / gaps
    first, last = _from(rise, d, 0, 1), _from(rise, d, n - 2, 1)
    if n == 2:
        return OPS["cat"]([first, last], d)
    a, b = _from(gaps, d, 0, n - 2), _from(gaps, d, 1, n - 2)
    inner = (_from(rise, d, 0, n - 2) * b + _from(rise, d, 1, n - 2) * a) / (a + b)
    if order == 2:  # a parabola through the three at each end
        first = first + (first - _from(rise, d, 1, 1)) * _share(gaps, d, 0, 1)
        last = last + (last - _from(rise, d, n - 3, 1)) * _share(gaps, d, n - 2, n - 3)
    return OPS["cat"]([first, inner, last], d)


def _share(gaps: Any, d: int, one: int, other: int) -> Any:
    """A gap over itself and its neighbour."""
    mine = _from(gaps, d, one, 1)
    return mine / (mine + _from(gaps, d, other, 1))


@public("flow")
def vander(x: Any, N: int | None = None, increasing: bool = False) -> Tensor:
    """The powers of x, one to a column.

    >>> flow.vander(flow.tensor([1, 2, 3]), increasing=True).tolist()
    [[1, 1, 1], [1, 2, 4], [1, 3, 9]]
    """
    if x.ndim != 1:
        raise ShapeError(f"vander(): takes a vector; got shape {list(x.shape)}")
    n = x.shape[0] if N is None else N
    powers: list[Any] = [OPS["ones_like"](x, None)]
    for _ in range(1, n):
        powers.append(powers[-1] * x)
    made = powers[:n]
    return stack(made if increasing else made[::-1], 1)


@public("flow")
def unravel_index(indices: Any, shape: Sequence[int] | int) -> tuple[Tensor, ...]:
    """The places in a grid of what has these places in one row.

    >>> [i.tolist() for i in flow.unravel_index(flow.tensor([5, 7]), (3, 4))]
    [[1, 1], [1, 3]]
    """
    if indices.dtype.differentiable or indices.dtype is bool_:
        raise ArgumentError(
            f"unravel_index(): expected 'indices' to be integer dtype, but got {indices.dtype}: x.long()"
        )
    sizes = (shape,) if isinstance(shape, int) else tuple(shape)
    if any(n < 0 for n in sizes):
        raise OptionError(f"unravel_index(): 'shape' cannot have negative values, but got {sizes}")
    indices = cast(indices, int64)
    found: list[Tensor] = []
    for n in reversed(sizes):
        found.append(OPS["remainder"](indices, n))
        indices = OPS["floor_divide"](indices, n)
    return tuple(reversed(found))
