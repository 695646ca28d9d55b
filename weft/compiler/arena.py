"""A static memory plan: the offset of each value in a chain's arena. Values with disjoint lifetimes share memory."""

from __future__ import annotations

import bisect
import functools
import itertools
import random
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np

from weft.plan.spans import Span

ALIGN: Final = 64
TURNS: Final = 20  # plans to try where memory is tight
PLACED: Final = 20_000  # blocks that they place at most, as each takes longer the more there are
FEW: Final = 400  # blocks of which one more plan takes no time


class Block(NamedTuple):
    """Memory that is live from step `first` to step `last`, both included; `pieces` of it, if given, for less time."""

    bytes: int
    first: int
    last: int
    pieces: tuple[Span, ...] = ()


class MemoryPlan(NamedTuple):
    offsets: tuple[int, ...]
    total: int


def aligned(n: int) -> int:
    return -(-n // ALIGN) * ALIGN


def plan(blocks: Sequence[Block], tight: bool = False) -> MemoryPlan:
    """Best-fit allocation in the order of first use, the largest first among those that begin at one step. Or by size,
    if that takes less, in quadratic time: once if few blocks take more than is live at once, many times if it is to be
    `tight`.

    >>> plan([Block(64, 0, 1), Block(64, 1, 2), Block(64, 2, 3)])
    MemoryPlan(offsets=(0, 64, 0), total=128)
    """
    if tight:
        return _tight(tuple(blocks))
    found = _in_time(blocks)
    once = len(blocks) <= FEW and found.total > _live(blocks)
    return _least(found, blocks, int(once))


@functools.lru_cache(maxsize=8)  # what a search within a budget tries is often the same again
def _tight(blocks: tuple[Block, ...]) -> MemoryPlan:
    return _least(_in_time(blocks), blocks, max(1, min(TURNS, PLACED // max(len(blocks), 1))))


def _least(found: MemoryPlan, blocks: Sequence[Block], turns: int) -> MemoryPlan:
    """A plan, or the least of so many by size, if that takes less."""
    return min(found, *itertools.islice(_by_size(blocks), turns), key=lambda p: p.total) if turns else found


def _live(blocks: Sequence[Block]) -> int:
    """The most bytes that are live at once."""
    change: dict[int, int] = {}
    for b in blocks:
        change[b.first] = change.get(b.first, 0) + aligned(b.bytes)
        change[b.last + 1] = change.get(b.last + 1, 0) - aligned(b.bytes)
    return max(itertools.accumulate(change[step] for step in sorted(change)), default=0)


def _by_size(blocks: Sequence[Block]) -> Iterator[MemoryPlan]:
    """Plans that place the large blocks first; then what came to lie on top is placed earlier, and all once more."""
    order = sorted(range(len(blocks)), key=lambda i: (-blocks[i].bytes, blocks[i].first))
    draw = random.Random(0)
    for turn in itertools.count():
        yield (found := _in_order(blocks, order, smallest=turn % 2 == 0))
        for i in [i for i in order if found.offsets[i] + aligned(blocks[i].bytes) == found.total]:
            at = order.index(i)
            order.insert(draw.randint(0, at // 2), order.pop(at))


def _in_order(blocks: Sequence[Block], order: Sequence[int], smallest: bool) -> MemoryPlan:
    """Each block in the smallest gap, or the first one, between the pieces of earlier ones that are live meanwhile;
    without a gap that is large enough, above or below all, where that takes less."""
    offsets, count, bottom, top = [0] * len(blocks), 0, 0, 0
    table = np.zeros((4, sum(max(1, len(b.pieces)) for b in blocks)), dtype=np.int64)
    for i in order:
        size = aligned(blocks[i].bytes)
        pieces = blocks[i].pieces or (Span(0, size, *blocks[i][1:3]),)
        begins, ends, firsts, lasts = table[:, :count]
        low, high = [], []  # no block may begin between them
        for begin, end, first, last, _ in pieces:
            at = ((firsts <= last) & (lasts >= first)).nonzero()[0]
            low.append(begins[at] - end)
            high.append(-((begin - ends[at]) // ALIGN) * ALIGN)
        lows, highs = (low[0], high[0]) if len(pieces) == 1 else (np.concatenate(low), np.concatenate(high))
        upwards = lows.argsort()
        lows = lows[upwards]
        free = np.empty(len(lows) + 1, dtype=np.int64)
        free[0], free[1:] = bottom, highs[upwards]
        np.maximum.accumulate(free, out=free)
        gaps = lows - free[:-1]
        fits = (gaps >= 0).nonzero()[0]
        if len(fits):
            offsets[i] = int(free[fits[gaps[fits].argmin()] if smallest else fits[0]])
        else:
            above, below = int(free[-1]), (min(bottom, int(lows[0])) if len(lows) else bottom) // ALIGN * ALIGN
            offsets[i] = below if bottom - below < above + size - top else above
        bottom, top = min(bottom, offsets[i]), max(top, offsets[i] + size)
        for begin, end, first, last, _ in pieces:
            table[:, count] = offsets[i] + begin, offsets[i] + end, first, last
            count += 1
    return MemoryPlan(tuple(at - bottom for at in offsets), aligned(int(table[1].max(initial=0)) - bottom))


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
