"""A static memory plan: the offset of each value in a chain's arena. Values with disjoint lifetimes share memory."""

from __future__ import annotations

import bisect
import math
from collections.abc import Sequence
from typing import NamedTuple

ALIGN = 64


class Block(NamedTuple):
    """Memory that is live from step `first` to step `last`, both included."""

    bytes: int
    first: int
    last: int


class MemoryPlan(NamedTuple):
    offsets: tuple[int, ...]
    total: int


def aligned(n: int) -> int:
    return -(-n // ALIGN) * ALIGN


def plan(blocks: Sequence[Block], tight: bool = False) -> MemoryPlan:
    """Best-fit allocation in the order of first use, the largest first among those that begin at one step. Or, if it is
    to be `tight`, by size, if that takes less: in quadratic time.

    >>> plan([Block(64, 0, 1), Block(64, 1, 2), Block(64, 2, 3)])
    MemoryPlan(offsets=(0, 64, 0), total=128)
    """
    found = _in_time(blocks)
    return min(found, _by_size(blocks), key=lambda p: p.total) if tight else found


def _by_size(blocks: Sequence[Block]) -> MemoryPlan:
    """Each block in the smallest gap between those that are larger and live meanwhile."""
    offsets = [0] * len(blocks)
    placed: list[tuple[int, int, int, int]] = []  # offset, end, first, last; by offset
    for i in sorted(range(len(blocks)), key=lambda i: (-blocks[i].bytes, blocks[i].first)):
        size, first, last = aligned(blocks[i].bytes), blocks[i].first, blocks[i].last
        at, best = 0, (math.inf, 0)
        for offset, end, begin, until in placed:
            if begin <= last and first <= until:
                if offset - at >= size:
                    best = min(best, (offset - at, at))
                at = max(at, end)
        offsets[i] = at if best[0] == math.inf else best[1]
        bisect.insort(placed, (offsets[i], offsets[i] + size, first, last))
    return MemoryPlan(tuple(offsets), max((end for _, end, _, _ in placed), default=0))


def _in_time(blocks: Sequence[Block]) -> MemoryPlan:
    order = sorted(range(len(blocks)), key=lambda i: (blocks[i].first, -blocks[i].bytes))
    offsets = [0] * len(blocks)
    free: list[tuple[int, int]] = []  # (offset, size), by offset, never adjacent
    ending: list[tuple[int, int, int]] = []  # (last, offset, size), by last
    total = 0
    for i in order:
        size = aligned(blocks[i].bytes)
        while ending and ending[0][0] < blocks[i].first:
            _, offset, length = ending.pop(0)
            _release(free, offset, length)
        fits = [(length, offset) for offset, length in free if length >= size]
        if fits:
            length, offset = min(fits)
            free.remove((offset, length))
            if length > size:
                bisect.insort(free, (offset + size, length - size))
        elif free and sum(free[-1]) == total:  # grow the last gap rather than begin anew
            offset, _ = free.pop()
            total = offset + size
        else:
            offset, total = total, total + size
        offsets[i] = offset
        bisect.insort(ending, (blocks[i].last, offset, size))
    return MemoryPlan(tuple(offsets), total)


def _release(free: list[tuple[int, int]], offset: int, size: int) -> None:
    i = bisect.bisect(free, (offset, size))
    if i < len(free) and free[i][0] == offset + size:
        size += free.pop(i)[1]
    if i and sum(free[i - 1]) == offset:
        before, length = free.pop(i - 1)
        offset, size, i = before, size + length, i - 1
    free.insert(i, (offset, size))


def packed(sizes: Sequence[int]) -> MemoryPlan:
    """Offsets of values laid out one after another, as in a register."""
    offsets, at = [], 0
    for n in sizes:
        offsets.append(at)
        at += aligned(n)
    return MemoryPlan(tuple(offsets), at)
