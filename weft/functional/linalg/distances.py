"""Distances between tensors, and between all pairs of rows: dist, cdist."""

from __future__ import annotations

from typing import Any

import torch

from weft.api.fast_path import in_one
from weft.api.table import public
from weft.core.errors import OptionError, ShapeError
from weft.functional.linalg import norms
from weft.functional.tensor.conversion import in_float32
from weft.ops import ops


@public("flow tensor")
@in_one(torch.dist)
@in_float32
def dist(x: Any, other: Any, p: float = 2) -> Any:
    """The p-norm of the difference."""
    return norms.vector_norm(x - other, p)


COMPUTE_MODES = (  # torch's choice of kernels; here there is one
    None, 0, 1, 2, "use_mm_for_euclid_dist_if_necessary", "use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist",
)  # fmt: skip


@public("flow")
@in_one(torch.cdist, "d_x1, d_x2, p", derived=True)
@in_float32
def cdist(x1: Any, x2: Any, p: float = 2.0, compute_mode: Any = None) -> Any:
    """The distances between all pairs of rows of two matrices.

    >>> flow.cdist(flow.tensor([[0.0, 0.0]]), flow.tensor([[3.0, 4.0], [0.0, 1.0]])).tolist()
    [[5.0, 1.0]]
    """
    if min(x1.ndim, x2.ndim) < 2:
        raise ShapeError(f"cdist() only supports at least 2D tensors; got {list(x1.shape)} and {list(x2.shape)}")
    if x1.shape[-1] != x2.shape[-1]:
        raise ShapeError(f"cdist(): rows of {x1.shape[-1]} and of {x2.shape[-1]} numbers have no distance")
    if not isinstance(compute_mode, (str, int, type(None))) or compute_mode not in COMPUTE_MODES:
        words = ", ".join(m for m in COMPUTE_MODES if isinstance(m, str))
        raise OptionError(
            f"cdist(): {compute_mode} is not a valid value for compute_mode, which changes nothing: {words}"
        )
    if p == 2 and x1.shape[:-2] == x2.shape[:-2] and x1.dtype is x2.dtype and x1.dtype.is_floating_point:
        return ops.euclidean_distances(x1, x2)
    apart = ops.unsqueeze(x1, -2) - ops.unsqueeze(x2, -3)
    return norms.vector_norm(apart, p if x1.shape[-1] else 1, -1)  # without columns, distances are zero
