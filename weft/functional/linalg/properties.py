"""Properties of matrices: determinants, rank, condition number, diagonal."""

from __future__ import annotations

import math
from typing import Any

import torch

from weft.api.signature import door
from weft.api.table import public
from weft.core import dtype as dtypes
from weft.functional.create import creation
from weft.functional.create.likeness import device_of
from weft.functional.linalg import norms
from weft.functional.linalg.decompositions import eigvalsh, svdvals
from weft.functional.results import SignAndSize, returning
from weft.ops import ops
from weft.ops.shape.views import dim_of
from weft.tensor.tensor import Tensor

public("flow tensor")(returning(SignAndSize, "slogdet"))
slogdet = returning(SignAndSize, "slogdet", "linalg_")


@public("flow tensor")
def logdet(x: Any) -> Any:
    """The logarithm of the determinant."""
    sign, size = ops.slogdet(x)
    return ops.where(ops.ge(sign, 0), size, math.nan)


def cond(x: Any, p: Any = None) -> Any:
    """The condition number of matrices."""
    if x.ndim > 1 and 0 in x.shape[-2:]:
        return creation.zeros(tuple(x.shape[:-2]), dtype=x.dtype, **device_of(x))
    if p in (None, 2, -2):
        s: Any = svdvals(x)
        large, small = ops.amax(s, -1), ops.amin(s, -1)
        return small / large if p == -2 else large / small
    return norms.matrix_norm(x, p) * norms.matrix_norm(ops.inv(x), p)


def matrix_rank(x: Any, tol: Any = None, hermitian: bool = False, *, atol: Any = None, rtol: Any = None) -> Any:
    """The number of singular values above the tolerance."""
    if x.ndim > 1 and not x.numel():
        return creation.zeros(tuple(x.shape[:-2]), dtype=dtypes.int64, **device_of(x))
    s: Any = ops.abs(eigvalsh(x)) if hermitian else svdvals(x)
    limit = tolerance(x, s, atol, rtol) if tol is None else tolerance(x, s, tol, 0.0)
    return ops.sum(ops.cast(s > limit, dtypes.int64), -1)


def tolerance(x: Any, s: Any, atol: Any, rtol: Any) -> Any:
    """The limit up to which singular values of x count as zero."""
    if rtol is None:
        rtol = max(x.shape[-2:]) * torch.finfo(x.dtype.torch).eps
        if isinstance(atol, Tensor):
            rtol = ops.where(ops.gt(atol, 0), 0.0, rtol)
        elif atol:
            rtol = 0.0
    atol, rtol = (ops.unsqueeze(t, -1) if isinstance(t, Tensor) else t for t in (atol, rtol))  # one for each matrix
    limit = ops.amax(s, -1, True).detach() * rtol
    return limit if atol is None else ops.maximum(limit, ops.zeros_like(limit) + atol)


def diagonal(x: Tensor, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """A diagonal of two dimensions, by default the last ones, as a new last dimension."""
    return ops.diagonal(x, offset, dim_of(dim1, x.ndim), dim_of(dim2, x.ndim))


__all__ = ["cond", "diagonal", "matrix_rank", "slogdet"]

globals().update({name: door(globals()[name]) for name in __all__})
det = ops.det
__all__ += ["det"]
