"""Which ranks send what to whom: the intersections of two layouts, dimension by dimension.

Slices are intervals and a grid is a product, so a rank finds its peers by interval arithmetic, at a cost that grows
with their number and not with the number of ranks.

A rank takes data from itself if it can; else from replica `i mod R`, where i is its index among the receivers and R the
number of replicas. Both sides derive this without communication.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from weft.boxing.steps import State
from weft.core import shard
from weft.core.sbp import NdSbp
from weft.core.shard import Box, Interval


@dataclass(frozen=True)
class Axes:
    """The axes of an nd_sbp by kind."""

    splitting: tuple[tuple[int, ...], ...]  # per dimension of the tensor
    broadcast: tuple[int, ...]
    partial: tuple[int, ...]


@functools.lru_cache(maxsize=4096)
def axes_of(nd_sbp: NdSbp, ndim: int) -> Axes:
    splitting: list[list[int]] = [[] for _ in range(ndim)]
    for axis, s in enumerate(nd_sbp):
        if s.is_split:
            splitting[s.dim].append(axis)
    return Axes(
        tuple(map(tuple, splitting)),
        tuple(a for a, s in enumerate(nd_sbp) if s.is_broadcast),
        tuple(a for a, s in enumerate(nd_sbp) if s.is_partial),
    )


def overlapping(within: Interval, parts: Sequence[int], wanted: Interval) -> Iterator[tuple[tuple[int, ...], Interval]]:
    """The nested slices of an interval that intersect another one: their indices, and the intersections.

    >>> list(overlapping((0, 10), [2, 2], (2, 6)))
    [((0, 0), (2, 3)), ((0, 1), (3, 5)), ((1, 0), (5, 6))]
    """
    start, stop = max(within[0], wanted[0]), min(within[1], wanted[1])
    if start >= stop:
        return
    if not parts:
        yield (), (start, stop)
        return
    size = within[1] - within[0]
    for index in range(_holder(size, parts[0], start - within[0]), _holder(size, parts[0], stop - 1 - within[0]) + 1):
        a, b = shard.part(size, parts[0], index)
        for rest, met in overlapping((within[0] + a, within[0] + b), parts[1:], wanted):
            yield (index, *rest), met


def _holder(size: int, parts: int, position: int) -> int:
    """The index of the balanced slice that holds a position: the inverse of `shard.part`."""
    base, longer = divmod(size, parts)
    border = longer * (base + 1)
    return position // (base + 1) if position < border else longer + (position - border) // base


def _number(sizes: Sequence[int], indices: Sequence[int]) -> int:
    number = 0
    for n, i in zip(sizes, indices, strict=True):
        number = number * n + i
    return number


def _indices(sizes: Sequence[int], number: int) -> list[int]:
    indices = []
    for n in reversed(sizes):
        number, i = divmod(number, n)
        indices.append(i)
    return indices[::-1]


class Side:
    """One of the two layouts, its axes sorted."""

    def __init__(self, shape: tuple[int, ...], state: State) -> None:
        self.shape, self.state = shape, state
        self.grid = state.placement.shape
        self.axes = axes_of(state.nd_sbp, len(shape))
        self.replica_sizes = [self.grid[a] for a in self.axes.broadcast]
        self.replicas = math.prod(self.replica_sizes)
        self.parts = [math.prod([self.grid[a] for a in axes]) for axes in self.axes.splitting]
        self.partial_sizes = [self.grid[a] for a in self.axes.partial]
        # of a partial target only the first coordinates receive
        self.full_axes = [a for a in range(len(self.grid)) if a not in self.axes.partial]
        self.full_sizes = [self.grid[a] for a in self.full_axes]
        self.full = math.prod(self.full_sizes)

    def box(self, coordinate: Sequence[int]) -> Box:
        return shard.box(self.shape, self.grid, self.state.nd_sbp, coordinate)

    def number(self, coordinate: Sequence[int]) -> int:
        """The index of a rank among the receivers."""
        return _number(self.full_sizes, [coordinate[a] for a in self.full_axes])

    def receiver(self, number: int) -> list[int]:
        """The coordinate of the receiver with this index."""
        coordinate = [0] * len(self.grid)
        for a, i in zip(self.full_axes, _indices(self.full_sizes, number), strict=True):
            coordinate[a] = i
        return coordinate

    def receives(self, coordinate: Sequence[int]) -> bool:
        return all(coordinate[a] == 0 for a in self.axes.partial)

    def pieces(self, box: Box) -> list[list[tuple[tuple[int, ...], Interval]]]:
        """For each dimension, the slices of this side that intersect the box."""
        return [
            list(overlapping((0, n), [self.grid[a] for a in axes], wanted))
            for n, axes, wanted in zip(self.shape, self.axes.splitting, box, strict=True)
        ]

    def joined(
        self, pieces: list[list[tuple[tuple[int, ...], Interval]]]
    ) -> Iterator[tuple[list[int], tuple[Interval, ...]]]:
        """For each combination of slices, a coordinate (zero on axes that don't split) and the intersection."""
        for chosen in itertools.product(*pieces):
            coordinate = [0] * len(self.grid)
            for axes, (indices, _) in zip(self.axes.splitting, chosen, strict=True):
                for a, i in zip(axes, indices, strict=True):
                    coordinate[a] = i
            yield coordinate, tuple(met for _, met in chosen)


class Overlap:
    """The transfers of one exchange."""

    def __init__(self, shape: tuple[int, ...], src: State, dst: State) -> None:
        self.src, self.dst = Side(shape, src), Side(shape, dst)
        self.src_at, self.dst_at = src.placement, dst.placement

    def receives_of(self, rank: int) -> list[tuple[Box, list[int]]]:
        """A rank's receives: boxes of the logical tensor, and for each the ranks that contribute, ordered with the
        first partial axis outermost (one rank if the source isn't partial)."""
        place = self.dst_at.coordinate(rank)
        if place is None or not self.dst.receives(place):
            return []
        src, own = self.src, self.src_at.coordinate(rank)
        replica = _indices(src.replica_sizes, self.dst.number(place) % src.replicas)
        needed = []
        for coordinate, met in src.joined(src.pieces(self.dst.box(place))):
            ranks = []
            for partial in itertools.product(*map(range, src.partial_sizes)):
                for a, i in zip(src.axes.partial, partial, strict=True):
                    coordinate[a] = i
                if own is not None and self._same_data(own, coordinate):
                    ranks.append(rank)
                    continue
                for a, i in zip(src.axes.broadcast, replica, strict=True):
                    coordinate[a] = i
                ranks.append(self.src_at.at(tuple(coordinate)))
            needed.append((met, ranks))
        return needed

    def sends_of(self, rank: int) -> list[tuple[int, Box]]:
        """A rank's sends: receivers and boxes, at most one box per receiver."""
        own = self.src_at.coordinate(rank)
        if own is None:
            return []
        dst, box = self.dst, self.src.box(own)
        mine = _number(self.src.replica_sizes, [own[a] for a in self.src.axes.broadcast])
        pieces = dst.pieces(box)
        met = math.prod([len(p) for p in pieces]) * dst.replicas
        found = []
        # search either the ranks whose boxes intersect mine, or those whose replica I am, whichever are fewer
        there = self._meeting(pieces) if met <= dst.full // self.src.replicas + 1 else self._served(mine, box, rank)
        for coordinate, both in there:
            partner = self.dst_at.at(tuple(coordinate))
            if partner != rank:
                if dst.number(coordinate) % self.src.replicas != mine:
                    continue
                theirs = self.src_at.coordinate(partner)
                if theirs is not None and self._same_data(theirs, own):
                    continue
            found.append((partner, both))
        return found

    def _meeting(self, pieces: list[list[tuple[tuple[int, ...], Interval]]]) -> Iterator[tuple[list[int], Box]]:
        dst = self.dst
        for coordinate, both in dst.joined(pieces):
            for replica in itertools.product(*map(range, dst.replica_sizes)):
                for a, i in zip(dst.axes.broadcast, replica, strict=True):
                    coordinate[a] = i
                yield coordinate, both

    def _served(self, mine: int, box: Box, rank: int) -> Iterator[tuple[list[int], Box]]:
        dst = self.dst
        numbers = list(range(mine, dst.full, self.src.replicas))
        own = self.dst_at.coordinate(rank)
        if own is not None and dst.receives(own):
            number = dst.number(own)
            if number % self.src.replicas != mine:
                numbers.append(number)
        for number in numbers:
            coordinate = dst.receiver(number)
            both = shard.intersect(box, dst.box(coordinate))
            if both is not None:
                yield coordinate, both

    def _same_data(self, a: Sequence[int], b: Sequence[int]) -> bool:
        """Whether two coordinates of the source hold the same shard."""
        return all(a[i] == b[i] or s.is_broadcast for i, s in enumerate(self.src.state.nd_sbp))


@functools.lru_cache(maxsize=1024)
def overlap(shape: tuple[int, ...], src: State, dst: State) -> Overlap:
    return Overlap(shape, src, dst)
