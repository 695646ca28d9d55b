"""`flow.linalg` names that `flow` has with other signatures: `norm`, `vander`."""

from __future__ import annotations

from typing import Any

from weft.api.signature import door
from weft.core import dtype as dtypes
from weft.functional.create import creation
from weft.functional.create.likeness import device_of
from weft.functional.linalg import norms
from weft.ops import ops


def vander(x: Any, N: int | None = None) -> Any:
    """The Vandermonde matrix: powers of each element, ascending."""
    x = x if x.ndim else ops.reshape(x, (1,))
    x = x if x.dtype.differentiable else ops.cast(x, dtypes.int64)  # as products give
    n = x.shape[-1] if N is None else N
    return ops.unsqueeze(x, -1) ** creation.arange(n, dtype=x.dtype, **device_of(x))


def norm(x: Any, ord: Any = None, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """The norm of vectors or matrices: of matrices if `dim` names two dimensions, or x is 2-d and `ord` is given.

    >>> flow.linalg.norm(flow.eye(4)).item(), flow.linalg.norm(flow.eye(4), 2).item()
    (2.0, 1.0)
    """
    pair = tuple(dim) if isinstance(dim, (tuple, list)) and len(dim) == 2 else None
    pair = (-2, -1) if dim is None and x.ndim == 2 else pair
    if ord is not None and pair is not None:
        return norms.matrix_norm(x, ord, pair, keepdim, dtype=dtype)
    return norms.vector_norm(x, 2 if ord is None else ord, dim, keepdim, dtype=dtype)


__all__ = ["norm", "vander"]

globals().update({name: door(globals()[name]) for name in __all__})
