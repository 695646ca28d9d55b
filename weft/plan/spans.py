"""Ranges of memory, and for how long they are needed: of a value that is read piece by piece, each piece until its last
reader, and of one that is made in pieces, each from its maker on.
"""

from __future__ import annotations

import functools
from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from heapq import heappop, heappush
from itertools import accumulate, pairwise
from operator import mul
from typing import Any, NamedTuple


class Span(NamedTuple):
    """Bytes, and their lifetime: from the step that first writes them to the last that reads them."""

    begin: int
    end: int
    first: int
    last: int
    name: str = ""


class Strided(NamedTuple):
    """The layout of a value in memory, with strides in elements."""

    shape: Sequence[int]
    strides: Sequence[int]
    itemsize: int

    @property
    def extent(self) -> int:
        """The bytes from its first to its last element, gaps included."""
        reach = sum((n - 1) * s for n, s in zip(self.shape, self.strides, strict=True))
        return (1 + reach) * self.itemsize if all(self.shape) else 0


class Use(NamedTuple):
    """A node's or call's operands and results; `view`: whether the results are views of the first operand."""

    op: str
    args: Sequence[Any]
    reads: Sequence[Any]
    makes: Sequence[Any]
    view: bool


@functools.lru_cache(maxsize=1 << 14)
def contiguous(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The strides of a contiguous tensor, as in torch."""
    steps = accumulate((max(n, 1) for n in reversed(shape[1:])), mul, initial=1)
    return tuple(steps)[::-1] if shape else ()


def _view(base: Strided, op: str, args: Sequence[Any], shape: Sequence[int]) -> tuple[Strided, int] | None:
    """The layout of a view, and the byte of its operand at which it begins; None if that isn't known here."""
    sizes, strides, start = [*base.shape], [*base.strides], 0
    if op == "reshape" and strides == [*contiguous(tuple(sizes))] and tuple(args[0]) == tuple(shape):
        sizes, strides = [*shape], [*contiguous(tuple(shape))]
    elif op in ("transpose", "permute"):
        order = list(range(len(sizes)))
        if op == "transpose":
            order[args[0]], order[args[1]] = order[args[1]], order[args[0]]
        else:
            order = args[0]
        sizes, strides = ([of[i] for i in order] for of in (sizes, strides))
    elif op == "narrow":
        dim, first, length, step = args
        start = (first + sizes[dim] * (first < 0)) * strides[dim] * base.itemsize
        sizes[dim], strides[dim] = length, strides[dim] * step
    else:
        return None
    return Strided(sizes, strides, base.itemsize), start


def needed(
    uses: Iterable[Use], form: Callable[[Any], Strided | None], within: Mapping[Any, tuple[Any, int]]
) -> dict[Any, list[Span]]:
    """The lifetimes of the values with memory of their own, piece by piece. `form` is None for those to be left out;
    `within`: values that lie in another one, which is made later, and at which byte."""
    where: dict[Any, tuple[Any, int, int, Strided | None]] = {}
    made, read = defaultdict[Any, list[tuple[int, int, int]]](list), defaultdict[Any, list[tuple[int, int, int]]](list)
    for i, (op, args, reads, makes, view) in enumerate(uses):
        for v in makes:
            known = form(v)
            if view and reads[0] in where and known is not None:
                root, begin, end, base = where[reads[0]]
                found = _view(base, op, args[1:], known.shape) if base is not None else None
                where[v] = root, begin, end, None
                if found is not None:
                    begin += found[1]
                    where[v] = root, begin, min(end, begin + found[0].extent), found[0]
            elif not view and known is not None:
                root, begin = v, 0
                while root in within:
                    root, begin = within[root][0], begin + within[root][1]
                where[v] = root, begin, begin + known.extent, known
                made[root].append((*where[v][1:3], i))
        for v in () if view else reads:
            if v in where:
                root, begin, end, _ = where[v]
                read[root].append((begin, end, i))
    return {v: list(_pieces(spans, read[v])) for v, spans in made.items()}


def _pieces(made: list[tuple[int, int, int]], read: list[tuple[int, int, int]]) -> Iterator[Span]:
    """The bytes that are made and read last at one time."""
    begin, end, start = made[0]
    if len(made) == 1 and begin < end and all(r[:2] == (begin, end) for r in read):  # all of it, each time
        yield Span(begin, end, start, max((i for *_, i in read), default=start))
        return
    cuts = sorted({at for begin, end, _ in (*made, *read) for at in (begin, end)})
    first, last = [0] * len(cuts), [0] * len(cuts)
    for begin, end, i in sorted(made, key=lambda m: -m[2]):
        for at in range(bisect_left(cuts, begin), bisect_left(cuts, end)):
            first[at] = i
    for begin, end, i in sorted([*made, *read], key=lambda m: m[2]):
        for at in range(bisect_left(cuts, begin), bisect_left(cuts, end)):
            last[at] = i
    start = cuts[0]
    for at, (_, end) in enumerate(pairwise(cuts)):
        if at + 2 == len(cuts) or (first[at], last[at]) != (first[at + 1], last[at + 1]):
            yield Span(start, end, first[at], last[at])
            start = end


def clashes(spans: Iterable[Span]) -> Iterator[tuple[Span, Span]]:
    """Pairs that overlap in memory and in lifetime, the earlier first.

    Live spans are kept in sorted lists by magnitude of size: of disjoint spans of about one size only a few can overlap
    another one.
    """
    live: dict[int, list[tuple[int, int, int, Span]]] = {}  # by magnitude: begin, end, number
    ending: list[tuple[int, int, int, tuple[int, int, int, Span]]] = []
    for n, span in enumerate(sorted(spans, key=lambda s: s.first)):
        while ending and ending[0][0] < span.first:
            *_, size, gone = heappop(ending)
            del live[size][bisect_left(live[size], gone)]
        for size, entries in live.items():
            for i in range(bisect_left(entries, (span.end,)) - 1, -1, -1):
                entry = entries[i]
                if entry[0] + (1 << size) <= span.begin:
                    break
                if entry[1] > span.begin:
                    yield entry[3], span
        entry, size = (span.begin, span.end, n, span), (span.end - span.begin).bit_length()
        insort(live.setdefault(size, []), entry)  # by address: numbers are unique, so spans aren't compared
        heappush(ending, (span.last, n, size, entry))
