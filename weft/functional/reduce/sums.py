"""Sums, means and products with PyTorch's signatures: with a dtype, or ignoring NaN."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

from weft.api.fast_path import in_one
from weft.api.table import public
from weft.functional.create.creation import get_default_dtype
from weft.functional.tensor.conversion import cast
from weft.ops import ops
from weft.ops.reduce.sums import Dims, dims_of
from weft.tensor.tensor import Tensor


def in_dtype(reduce: Callable[..., Tensor], dtype: Any, x: Tensor, *rest: Any) -> Tensor:
    """The reduction in a dtype, which is the result's, too: the sums and products of narrow integers are int64."""
    return cast(reduce(cast(x, dtype), *rest), dtype)


@public("flow tensor")
def sum(x: Tensor, dim: Dims = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    return ops.sum(x, dim, keepdim) if dtype is None else in_dtype(ops.sum, dtype, x, dim, keepdim)


@public("flow tensor")
def mean(x: Tensor, dim: Dims = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    return ops.mean(x, dim, keepdim) if dtype is None else in_dtype(ops.mean, dtype, x, dim, keepdim)


@public("flow tensor")
def prod(x: Tensor, dim: Dims = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """The product of the elements, over some dimensions or all.

    >>> flow.prod(flow.tensor([2., 3.])).item()
    6.0
    """
    if dtype is not None:
        return in_dtype(prod, dtype, x, dim, keepdim)
    if not isinstance(dim, (tuple, list)):
        return ops.prod(x, dim, keepdim)
    for d in sorted(dims_of(tuple(dim), x.ndim), reverse=True):
        x = ops.prod(x, d, keepdim)
    return x


def _count(x: Tensor, dim: Dims) -> int:
    return math.prod(x.shape[d] for d in dims_of(dim, x.ndim))


@public("flow tensor")
@in_one(torch.logsumexp)
def logsumexp(x: Tensor, dim: int | tuple[int, ...] | list[int], keepdim: bool = False) -> Tensor:
    """log(sum(exp(x))) over some dimensions, without overflow."""
    x = cast(x, get_default_dtype()) if not x.dtype.differentiable else x
    if not _count(x, dim):
        return ops.log(ops.sum(ops.exp(x), dim, keepdim))  # empty: minus infinity
    if x.is_local and x.dtype.is_floating_point:
        return ops.log_sum_exp(x, dims_of(dim, x.ndim), keepdim)
    top = ops.amax(x.real if x.dtype.is_complex else x, dim, True).detach()
    top = ops.where(ops.isinf(top), 0.0, top)  # infinity - infinity is NaN
    y = ops.add(ops.log(ops.sum(ops.exp(ops.sub(x, top)), dim, True)), top)
    return y if keepdim else y.squeeze(tuple(dims_of(dim, x.ndim)))


@public("flow tensor")
@in_one(torch.nanmean)
def nanmean(x: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """The mean, ignoring NaN.

    >>> flow.nanmean(flow.tensor([1.0, float("nan"), 3.0])).item()
    2.0
    """
    x = x if dtype is None else cast(x, dtype)
    there = ops.logical_not(ops.isnan(x))
    return ops.sum(ops.where(there, x, 0.0), dim, keepdim) / ops.sum(cast(there, x.dtype), dim, keepdim)


@public("bound", "reduce_nansum")
@public("flow tensor")
@in_one(torch.nansum)
def nansum(x: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """The sum, ignoring NaN.

    >>> flow.nansum(flow.tensor([1., float("nan")])).item()
    1.0
    """
    if dtype is not None:
        return in_dtype(nansum, dtype, x, dim, keepdim)
    if not x.dtype.differentiable:
        return ops.sum(x, dim, keepdim)
    return ops.sum(ops.where(ops.isnan(x), 0.0, x), dim, keepdim)
