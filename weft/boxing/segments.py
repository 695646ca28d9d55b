"""Buckets: one contiguous buffer for values that are gathered or scattered together, by ranks and then by values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch

from weft.core import shard


class Segment(NamedTuple):
    """One rank's part of a bucket: contiguous, and as views of its part of each value."""

    flat: torch.Tensor
    parts: list[torch.Tensor]


def segments(memory: torch.Tensor, wholes: Sequence[Sequence[int]], dim: int, ranks: int) -> list[Segment]:
    """Divide a buffer for values of these shapes, which are split along one dimension, into the ranks' segments.

    >>> [[tuple(p.shape) for p in s.parts] for s in segments(torch.empty(8), [(3, 2), (2,)], 0, 2)]
    [[(2, 2), (1,)], [(1, 2), (1,)]]
    """
    found, at = [], 0
    for index in range(ranks):
        shapes = []
        for whole in wholes:
            start, stop = shard.part(whole[dim], ranks, index)
            shapes.append((*whole[:dim], stop - start, *whole[dim + 1 :]))
        sizes = [math.prod(s) for s in shapes]
        flat = memory[at : at + sum(sizes)]
        at += sum(sizes)
        found.append(Segment(flat, [part.view(s) for part, s in zip(flat.split(sizes), shapes, strict=True)]))
    return found


def cut(whole: torch.Tensor, dim: int, ranks: int) -> tuple[torch.Tensor, ...]:
    """The ranks' slices of a value."""
    return whole.split(list(shard.sizes(whole.shape[dim], ranks)), dim)
