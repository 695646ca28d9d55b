"""Shard arithmetic: which part of a logical tensor a rank holds. Splits are balanced and may be uneven."""

from __future__ import annotations

from collections.abc import Sequence

from weft.core.placement import Placement
from weft.core.sbp import NdSbp

Interval = tuple[int, int]
Box = tuple[Interval, ...]  # per dimension, [start, stop)


def part(size: int, parts: int, index: int) -> Interval:
    """The index-th of `parts` balanced slices; the first ones are longer by one if the size doesn't divide.

    >>> [part(5, 2, i) for i in range(2)]
    [(0, 3), (3, 5)]
    """
    base, longer = divmod(size, parts)
    start = index * base + min(index, longer)
    return start, start + base + (index < longer)


def sizes(size: int, parts: int) -> tuple[int, ...]:
    return tuple(stop - start for start, stop in (part(size, parts, i) for i in range(parts)))


def box(shape: Sequence[int], grid: Sequence[int], nd_sbp: NdSbp, coordinate: Sequence[int]) -> Box:
    """The part of the logical shape at a coordinate. Axes that split one dimension nest, first axis outermost."""
    intervals = [(0, n) for n in shape]
    for n, s, c in zip(grid, nd_sbp, coordinate, strict=True):
        if s.dim >= 0:
            start, stop = intervals[s.dim]
            a, b = part(stop - start, n, c)
            intervals[s.dim] = (start + a, start + b)
    return tuple(intervals)


def local_shape(shape: Sequence[int], placement: Placement, nd_sbp: NdSbp, rank: int) -> tuple[int, ...]:
    """The shape of a rank's shard; zeros for a rank outside the placement."""
    coordinate = placement.coordinate(rank)
    if coordinate is None:
        return (0,) * max(len(shape), 1)
    return tuple(stop - start for start, stop in box(shape, placement.shape, nd_sbp, coordinate))


def intersect(a: Box, b: Box) -> Box | None:
    both = tuple((max(p, r), min(q, s)) for (p, q), (r, s) in zip(a, b, strict=True))
    return both if all(p < q for p, q in both) else None


def relative(inner: Box, outer: Box) -> tuple[slice, ...]:
    """The slices of the inner box within a shard that holds the outer one."""
    return tuple(slice(p - r, q - r) for (p, q), (r, _) in zip(inner, outer, strict=True))


def volume(b: Box) -> int:
    total = 1
    for start, stop in b:
        total *= stop - start
    return total
