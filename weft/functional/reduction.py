"""Reductions in PyTorch's forms: with a dtype, with indices, over two tensors."""

from __future__ import annotations

from typing import Any

from weft.functional.conversion import cast
from weft.functional.creation import get_default_dtype
from weft.functional.ranked import Ranked
from weft.functional.signature import overloaded
from weft.functional.table import calling, public
from weft.ops import OPS
from weft.ops.reduce import dims_of, spread
from weft.tensor.tensor import Tensor

Dims = int | tuple[int, ...] | list[int] | None
_sum, _mean, _prod, _amax, _amin = map(calling, ("sum", "mean", "prod", "amax", "amin"))
_maximum, _minimum, _add, _sub = map(calling, ("maximum", "minimum", "add", "sub"))
_div, _root, _log, _exp, _variance = map(calling, ("div", "root", "log", "exp", "variance"))


@public("flow tensor")
def sum(x: Tensor, dim: Dims = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """The sum of the elements, over some dimensions or all.

    >>> flow.ones(2, 3).sum(1).tolist()
    [3.0, 3.0]
    """
    return _sum(x if dtype is None else cast(x, dtype), dim, keepdim)


@public("flow tensor")
def mean(x: Tensor, dim: Dims = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """The mean of the elements, over some dimensions or all.

    >>> flow.mean(flow.tensor([[1., 3.]])).item()
    2.0
    """
    return _mean(x if dtype is None else cast(x, dtype), dim, keepdim)


@public("flow tensor")
def prod(x: Tensor, dim: Dims = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """The product of the elements, over some dimensions or all.

    >>> flow.prod(flow.tensor([2., 3.])).item()
    6.0
    """
    y = x if dtype is None else cast(x, dtype)
    if not isinstance(dim, (tuple, list)):
        return _prod(y, dim, keepdim)
    for d in sorted(dims_of(tuple(dim), x.ndim), reverse=True):
        y = _prod(y, d, keepdim)
    return y


def _max_of_all(x: Tensor) -> Tensor:
    """The largest element; with `dim`, that of each slice and its index; of two tensors, the larger elements.

    >>> flow.max(flow.tensor([[1., 3.], [5., 2.]]), 1)[0].tolist()
    [3.0, 5.0]
    """
    return _amax(x)


def _max_along(x: Tensor, dim: int, keepdim: bool = False) -> Ranked:
    return Ranked(*OPS["max"](x, dim, keepdim))


def _max_of_two(x: Tensor, other: Tensor) -> Tensor:
    return _maximum(x, other)


def _min_of_all(x: Tensor) -> Tensor:
    """The smallest element; with `dim`, that of each slice and its index; of two tensors, the smaller elements."""
    return _amin(x)


def _min_along(x: Tensor, dim: int, keepdim: bool = False) -> Ranked:
    return Ranked(*OPS["min"](x, dim, keepdim))


def _min_of_two(x: Tensor, other: Tensor) -> Tensor:
    return _minimum(x, other)


max = public("flow tensor", "max")(overloaded("max", _max_of_all, _max_along, _max_of_two))
min = public("flow tensor", "min")(overloaded("min", _min_of_all, _min_along, _min_of_two))


def _count(x: Tensor, dim: Dims) -> int:
    total = 1
    for d in dims_of(dim, x.ndim):
        total *= x.shape[d]
    return total


@public("flow tensor")
def var(
    x: Tensor, dim: Dims = None, unbiased: bool = True, keepdim: bool = False, *, correction: int | None = None
) -> Tensor:
    """The variance of the elements, over some dimensions or all; divided by one less than their number.

    >>> flow.tensor([1., 3.]).var().item()
    2.0
    """
    if isinstance(dim, bool):  # PyTorch's short form: var(False)
        dim, unbiased = None, dim
    less = int(unbiased) if correction is None else correction
    if not x.dtype.is_floating_point or _count(x, dim) <= less:
        return spread(x, dim, less, keepdim)
    return _variance(x, dims_of(dim, x.ndim), less, keepdim)


@public("flow tensor")
def std(
    x: Tensor, dim: Dims = None, unbiased: bool = True, keepdim: bool = False, *, correction: int | None = None
) -> Tensor:
    """The standard deviation of the elements, over some dimensions or all."""
    return _root(var(x, dim, unbiased, keepdim, correction=correction))


@public("flow tensor")
def logsumexp(x: Tensor, dim: int | tuple[int, ...] | list[int], keepdim: bool = False) -> Tensor:
    """log(sum(exp(x))) over some dimensions, without overflow."""
    x = cast(x, get_default_dtype()) if not x.dtype.differentiable else x
    if not _count(x, dim):
        return _log(_sum(_exp(x), dim, keepdim))  # of nothing: minus infinity, wherever there is a place for it
    top = _amax(x.real if x.dtype.is_complex else x, dim, True).detach()  # type: ignore[attr-defined]
    y = _add(_log(_sum(_exp(_sub(x, top)), dim, True)), top)
    return y if keepdim else y.squeeze(tuple(dims_of(dim, x.ndim)))  # type: ignore[attr-defined]


def _running(name: str) -> None:
    run = calling(name)

    def running(x: Tensor, dim: int, *, dtype: Any = None) -> Tensor:
        return run(x if dtype is None else cast(x, dtype), dim)

    running.__name__ = running.__qualname__ = name
    running.__doc__ = OPS[name].__doc__
    public("flow tensor")(running)


_running("cumsum")
_running("cumprod")
