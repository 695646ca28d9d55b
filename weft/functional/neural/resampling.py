"""Resizing by computed indices or weights, for modes without a kernel."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from weft.core import dtype as dtypes
from weft.core.errors import OptionError
from weft.functional.create.creation import tensor
from weft.functional.create.likeness import device_of
from weft.ops import ops
from weft.tensor.tensor import Tensor


def _bicubic(x: float) -> float:
    a, x = -0.5, abs(x)
    if x < 1:
        return ((a + 2) * x - (a + 3)) * x * x + 1
    return (((x - 5) * x + 8) * x - 4) * a if x < 2 else 0.0


# mode: the filter's radius, and its weight at a distance
FILTERS: Final[dict[str, tuple[int, Callable[[float], float]]]] = {
    "bilinear": (1, lambda x: max(0.0, 1 - abs(x))),
    "bicubic": (2, _bicubic),
}


def nearest_exact(x: Tensor, wanted: Sequence[int], scales: Any) -> Tensor:
    """Nearest-neighbor resizing by the centers of the new elements."""
    for i, n in enumerate(wanted):
        size = x.shape[2 + i]
        step = size / n if scales is None else 1 / scales[i]
        places = [min(math.floor((j + 0.5) * step), size - 1) for j in range(n)]
        x = ops.index_select(x, 2 + i, tensor(places, dtype=dtypes.int64, **device_of(x)))
    return x


def antialiased(x: Tensor, wanted: Sequence[int], scales: Any, mode: str, align_corners: bool) -> Tensor:
    """Antialiased resizing: each new element averages all that it covers."""
    if mode not in FILTERS or x.ndim != 4:
        raise OptionError(
            f"antialias is for images, in mode 'bilinear' or 'bicubic'; got {mode!r} over {list(x.shape)}"
        )
    for i, n in enumerate(wanted):
        size = x.shape[2 + i]
        step = size / n if scales is None else 1 / scales[i]
        if align_corners:
            step = (size - 1) / (n - 1) if n > 1 else 0.0
        matrix = tensor(_weights(size, n, step, mode), dtype=x.dtype, **device_of(x))
        if i == 0:
            x = ops.matmul(matrix, x)
        else:
            x = ops.matmul(x, ops.transpose(matrix, 0, 1))
    return x


def _weights(size: int, n: int, step: float, mode: str) -> np.ndarray:
    """The weight of each element for each new one: [new, old]."""
    reach, weigh = FILTERS[mode]
    wide = max(step, 1.0)
    made = np.zeros((n, size))
    for i in range(n):
        centre = step * (i + 0.5)
        first, last = max(int(centre - reach * wide + 0.5), 0), min(int(centre + reach * wide + 0.5), size)
        made[i, first:last] = [weigh((j + 0.5 - centre) / wide) for j in range(first, last)]
        made[i] /= made[i].sum()
    return made
