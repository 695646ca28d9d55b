"""Variance, standard deviation, covariance and correlation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weft.api.table import named, public
from weft.core.dtype import bool_
from weft.core.errors import DtypeError, ShapeError
from weft.functional.create import creation
from weft.functional.reduce.sums import Dims, _count
from weft.functional.tensor.conversion import cast, in_float32
from weft.functional.tensor.dtypes import promote_types
from weft.ops import ops
from weft.ops.pointwise.complex_numbers import real
from weft.ops.reduce.sums import dims_of, spread
from weft.tensor.tensor import Tensor


@public("flow tensor")
def cov(x: Any, *, correction: int = 1, fweights: Any = None, aweights: Any = None) -> Any:
    """The covariance matrix of variables in rows; observations may be repeated (fweights) or weighted (aweights).

    >>> flow.cov(flow.tensor([[0.0, 2.0], [2.0, 0.0]])).tolist()
    [[2.0, -2.0], [-2.0, 2.0]]
    """
    if x.ndim > 2:
        raise ShapeError(f"cov(): expected input to have two or fewer dimensions; got shape {list(x.shape)}")
    rows = ops.reshape(x, (1, -1)) if x.ndim < 2 else x
    fweights, aweights = (
        _weights(name, w, rows.shape[1]) for name, w in (("fweights", fweights), ("aweights", aweights))
    )
    kinds = [t.dtype for t in (rows, aweights) if t is not None and t.dtype.differentiable]
    kind = promote_types(kinds[0], kinds[-1]) if kinds else creation.get_default_dtype()
    rows = rows if rows.dtype is kind else cast(rows, kind)
    weights = [w for w in (fweights, aweights) if w is not None]
    if not weights:
        off = rows - ops.mean(rows, 1, True)
        found = off @ off.mH / float(max(rows.shape[1] - correction, 0))
    else:
        weight = cast(weights[0], rows.dtype)
        weight = weight * weights[1] if len(weights) == 2 else weight
        whole = ops.sum(weight)
        off = rows - ops.sum(rows * weight, 1, True) / whole
        if aweights is None:
            less = whole - correction
        else:
            less = whole - correction * ops.sum(weight * aweights) / whole
        found = (off * weight) @ off.mH / ops.clamp(real(less) if less.dtype.is_complex else less, 0.0)
    return found.squeeze() if found.numel() == 1 else found


def _weights(name: str, w: Any, count: int) -> Any:
    if w is None:
        return None
    if w.ndim > 1 or w.numel() != count:
        raise ShapeError(
            f"cov(): expected {name} to have one or fewer dimensions and the same numel as there are observations "
            f"in the input, {count}; got shape {list(w.shape)}"
        )
    if name == "fweights" and (w.dtype.differentiable or w.dtype is bool_):
        raise DtypeError(f"cov(): expected fweights to have integral dtype but got {w.dtype}: they count repetitions")
    return ops.require(w, ops.ge(w, 0), f"cov(): {name} cannot be negative")


@public("flow tensor")
def corrcoef(x: Any) -> Any:
    """The correlation coefficients of variables in rows."""
    together = cov(x)
    if together.ndim == 0:
        return together / together
    width = ops.sqrt(ops.diagonal(together, 0, 0, 1))
    return ops.clamp(together / ops.unsqueeze(width, 1) / ops.unsqueeze(width, 0), -1.0, 1.0)


@public("flow tensor")
def var(
    x: Tensor, dim: Dims = None, unbiased: bool = True, keepdim: bool = False, *, correction: int | None = None
) -> Tensor:
    """The variance of the elements, over some dimensions or all; unbiased by default.

    >>> flow.tensor([1., 3.]).var().item()
    2.0
    """
    if isinstance(dim, bool):  # PyTorch's overload: var(False)
        dim, unbiased = None, dim
    less = int(unbiased) if correction is None else correction
    if not x.dtype.is_floating_point or _count(x, dim) <= less:
        if not x.dtype.differentiable:
            raise DtypeError(f"std and var only support floating point and complex dtypes; got {x.dtype}: x.float()")
        return spread(x, dim, less, keepdim)
    return ops.variance(x, dims_of(dim, x.ndim), less, keepdim)


@public("flow tensor")
@in_float32
def std(
    x: Tensor, dim: Dims = None, unbiased: bool = True, keepdim: bool = False, *, correction: int | None = None
) -> Tensor:
    """The standard deviation of the elements, over some dimensions or all."""
    return ops.root(var(x, dim, unbiased, keepdim, correction=correction))


def _with_mean(name: str, spread: Callable[..., Tensor], says: str) -> None:
    @public("flow")
    @named(name, f"{says} and the mean.")
    def both(
        x: Tensor, dim: Any = None, unbiased: bool = True, keepdim: bool = False, *, correction: Any = None
    ) -> Any:
        if isinstance(dim, bool):  # PyTorch's overload
            dim, unbiased = None, dim
        return spread(x, dim, unbiased, keepdim, correction=correction), ops.mean(x, dim, keepdim)


_with_mean("var_mean", var, "The variance")
_with_mean("std_mean", std, "The standard deviation")
