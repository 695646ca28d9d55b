"""A tensor's shape and dtype as a row of numbers, for messages between ranks."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from weft.core.dtype import DType, every, kept
from weft.core.errors import RankError, ShapeError

NUMBERED = (*every, *kept)
MOST_DIMS = 16
LENGTH = MOST_DIMS + 2
MOST_BYTES = 1 << 48


def encoded(shape: Sequence[int], dtype: DType) -> torch.Tensor:
    if len(shape) > MOST_DIMS:
        raise ShapeError(f"messages between ranks hold tensors of up to {MOST_DIMS} dimensions; this has {len(shape)}")
    return torch.tensor([len(shape), NUMBERED.index(dtype), *shape, *[-1] * (MOST_DIMS - len(shape))])


def read(form: torch.Tensor, rank: int) -> tuple[tuple[int, ...], DType]:
    """The shape and the dtype that a rank sent; invalid numbers are an error that names it."""
    ndim, kind, *sizes = form.tolist()
    if not (0 <= ndim <= MOST_DIMS and 0 <= kind < len(NUMBERED)) or min(sizes[:ndim], default=0) < 0:
        raise RankError(f"rank {rank} sent an invalid shape and dtype: {form.tolist()}")
    shape, dtype = tuple(sizes[:ndim]), NUMBERED[kind]
    if math.prod(shape, start=dtype.itemsize) > MOST_BYTES:
        raise RankError(f"rank {rank} announces a tensor of shape {list(shape)}, which no memory holds")
    return shape, dtype
