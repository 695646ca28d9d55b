"""Functions along one dimension: cumulative sums and extremes, diff, gradient, trapezoid."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft.api.table import named, public
from weft.core import dtype as dtypes
from weft.core.errors import ArgumentError, ShapeError
from weft.functional.reduce.sums import in_dtype
from weft.functional.results import Ranked, returning
from weft.functional.tensor.conversion import cast
from weft.functional.tensor.in_place import with_in_place
from weft.ops import OPS, ops
from weft.ops.shape.views import dim_of
from weft.tensor.tensor import Tensor


@public("flow")
def cumulative_trapezoid(y: Any, x: Any = None, *, dx: float = 1.0, dim: int = -1) -> Tensor:
    """The cumulative integral of y over x, or over steps of dx, by the trapezoidal rule.

    >>> flow.cumulative_trapezoid(flow.tensor([1.0, 3.0, 3.0])).tolist()
    [2.0, 5.0]
    """
    d = dim_of(dim, y.ndim)
    n, steps = y.shape[d], max(y.shape[d] - 1, 0)
    means = (ops.narrow(y, d, 0, steps) + ops.narrow(y, d, n - steps, steps)) / 2
    if x is None:
        return ops.cumsum(means * dx, d)
    at = x.reshape([-1 if i == d else 1 for i in range(y.ndim)]) if x.ndim == 1 and y.ndim > 1 else x
    along = dim_of(dim, at.ndim)
    return ops.cumsum(means * (ops.narrow(at, along, n - steps, steps) - ops.narrow(at, along, 0, steps)), d)


@public("flow")
def gradient(input: Any, *, spacing: Any = 1, dim: Any = None, edge_order: int = 1) -> tuple[Tensor, ...]:
    """Numerical derivatives along each dimension, by central differences, one-sided at the ends. `spacing` is one step,
    one for each dimension, or the coordinates along each.

    >>> flow.gradient(flow.tensor([0.0, 1.0, 4.0]))[0].tolist()
    [1.0, 2.0, 3.0]
    """
    dims = range(input.ndim) if dim is None else [dim] if isinstance(dim, int) else list(dim)
    dims = [dim_of(d, input.ndim) for d in dims]
    for d in dims:
        if dims.count(d) > 1:
            raise ShapeError(f"dim {d} appears multiple times in the list of dims: gradient() takes each once")
    spacing = 1 if spacing is None else spacing
    steps = list(spacing) if isinstance(spacing, Sequence) else [spacing] * len(dims)
    if len(steps) != len(dims):
        raise ArgumentError(f"gradient(): one spacing, or one for each of {len(dims)} dimensions; got {len(steps)}")
    if edge_order not in (1, 2):
        raise ArgumentError(f"gradient(): edge_order is 1 or 2; got {edge_order}")
    return tuple(_derivative(input, d, s, edge_order) for d, s in zip(dims, steps, strict=True))


def _derivative(y: Any, d: int, step: Any, order: int) -> Tensor:
    n = y.shape[d]
    if n < order + 1:
        raise ShapeError(f"gradient(): dimension {d} has {n} elements; derivatives need {order + 1}")
    gaps: Any = None  # between the coordinates; none if all are one step
    if isinstance(step, Tensor) and step.ndim:
        between = ops.narrow(step, 0, 1, n - 1) - ops.narrow(step, 0, 0, n - 1)
        gaps = between.reshape([-1 if i == d else 1 for i in range(y.ndim)])
    rise = (ops.narrow(y, d, 1, n - 1) - ops.narrow(y, d, 0, n - 1)) / (float(step) if gaps is None else gaps)
    first, last = ops.narrow(rise, d, 0, 1), ops.narrow(rise, d, n - 2, 1)
    if n == 2:
        return ops.cat([first, last], d)
    if gaps is None:
        inner = (ops.narrow(y, d, 2, n - 2) - ops.narrow(y, d, 0, n - 2)) / (2 * float(step))
    else:
        left, right = ops.narrow(rise, d, 0, n - 2), ops.narrow(rise, d, 1, n - 2)
        a, b = ops.narrow(gaps, d, 0, n - 2), ops.narrow(gaps, d, 1, n - 2)
        inner = (left * b + right * a) / (a + b)
    if order == 2:  # a parabola through the three at each end
        first = first + (first - ops.narrow(rise, d, 1, 1)) * _share(gaps, d, 0, 1)
        last = last + (last - ops.narrow(rise, d, n - 3, 1)) * _share(gaps, d, n - 2, n - 3)
    return ops.cat([first, inner, last], d)


def _share(gaps: Any, d: int, one: int, other: int) -> Any:
    """The share of a gap in the sum of itself and its neighbor."""
    if gaps is None:
        return 0.5
    mine = ops.narrow(gaps, d, one, 1)
    return mine / (mine + ops.narrow(gaps, d, other, 1))


@public("flow tensor")
def diff(x: Tensor, n: int = 1, dim: int = -1, prepend: Tensor | None = None, append: Tensor | None = None) -> Tensor:
    """The difference of neighboring elements along a dimension, n times over.

    >>> flow.diff(flow.tensor([1, 4, 9])).tolist()
    [3, 5]
    """
    if n < 0:
        raise ShapeError(f"diff(): order must be non-negative but got {n}")
    d = dim_of(dim, x.ndim)
    if n == 0:
        return ops.clone(x)
    parts = [p for p in (prepend, x, append) if p is not None]
    y = ops.cat(parts, d) if len(parts) > 1 else x
    for _ in range(min(n, y.shape[d])):
        size = max(y.shape[d] - 1, 0)
        change = ops.ne if y.dtype is dtypes.bool_ else ops.sub
        y = change(ops.narrow(y, d, y.shape[d] - size, size), ops.narrow(y, d, 0, size))
    return y


@public("flow", "trapezoid trapz")
def trapezoid(y: Any, x: Any = None, *, dx: float = 1.0, dim: int = -1) -> Any:
    """The integral of y over x, or over steps of dx, by the trapezoidal rule.

    >>> flow.trapezoid(flow.tensor([1.0, 3.0])).item()
    2.0
    """
    d, n = dim_of(dim, y.ndim), y.shape[dim]
    if not n:
        return cast(ops.sum(y, d), y.dtype)
    if x is None:
        return (ops.sum(y, d) - (ops.select(y, d, 0) + ops.select(y, d, -1)) * 0.5) * dx
    between = (ops.narrow(y, d, 1, n - 1) + ops.narrow(y, d, 0, n - 1)) / 2
    steps = diff(x, dim=d if x.ndim == y.ndim else -1)
    if x.ndim == 1:
        steps = ops.reshape(steps, (-1, *(1,) * (y.ndim - d - 1)))
    return ops.sum(between * steps, d)


def _running(name: str) -> None:
    run = OPS[name].entry

    @with_in_place
    @named(name, OPS[name].__doc__)
    def running(x: Tensor, dim: int, *, dtype: Any = None) -> Tensor:
        return run(x, dim) if dtype is None else in_dtype(run, dtype, x, dim)


_running("cumsum")
_running("cumprod")
public("flow tensor")(returning(Ranked, "cummax"))
public("flow tensor")(returning(Ranked, "cummin"))
