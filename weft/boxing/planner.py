"""Plan a route: the shortest path (Dijkstra) over the layouts on both placements, by the cost model.

There are few states: on each axis only the sbp that the two ends name, broadcast, and splits of the dimensions that
the ends split or of the longest one. Every rank searches alone and must find the same route, so nothing here depends
on the order of a set or on the rank. rustworkx, which orders acts elsewhere, searches graphs that are there as a whole:
here neighbours are found, and costs worked out, only where the search gets to.
"""

from __future__ import annotations

import functools
import heapq
import itertools
import math
from collections.abc import Iterator

from weft.boxing import steps
from weft.boxing.costs import FREE, Cost, costs_of
from weft.boxing.links import ONE_HOST, Links
from weft.boxing.routes import Route
from weft.boxing.steps import AxisStep, State, Step, blocked, canonical
from weft.core import sbp as sbps
from weft.core.dtype import DType
from weft.core.placement import Placement
from weft.core.sbp import NdSbp, Sbp
from weft.core.spec import Spec


def route(
    shape: tuple[int, ...], dtype: DType, src_placement: Placement, src_nd_sbp: NdSbp,
    dst_placement: Placement, dst_nd_sbp: NdSbp, links: Links = ONE_HOST,
) -> Route:  # fmt: skip
    """The cheapest route; cached."""
    return _planned(shape, dtype, State(src_placement, src_nd_sbp), State(dst_placement, dst_nd_sbp), links)[0]


def cost(
    shape: tuple[int, ...], dtype: DType, src_placement: Placement, src_nd_sbp: NdSbp,
    dst_placement: Placement, dst_nd_sbp: NdSbp, links: Links = ONE_HOST, most: float = math.inf,
) -> float:  # fmt: skip
    """The estimated seconds of the cheapest route; 0 if nothing moves. Beyond `most`, on one kind of device, it isn't
    looked for: the answer is infinite."""
    if src_nd_sbp == dst_nd_sbp and src_placement is dst_placement:
        return 0.0
    if most < math.inf and src_placement.type == dst_placement.type:
        ends = State(src_placement, src_nd_sbp), State(dst_placement, dst_nd_sbp)
        if _search(shape, dtype.itemsize, *ends, links, most) is None:
            return math.inf
    return _planned(shape, dtype, State(src_placement, src_nd_sbp), State(dst_placement, dst_nd_sbp), links)[1].seconds


def cost_of(found: Route, links: Links = ONE_HOST) -> Cost:
    """The cost of a route: bytes that the busiest rank moves, and seconds, summed over the steps."""
    costs = costs_of(found.shape, found.dtype.itemsize, links)
    states = list(found.states())
    each = [costs.of(step, a, b) for step, a, b in zip(found.steps, states, states[1:], strict=False)]
    return Cost(sum(c.moved for c in each), sum(c.seconds for c in each))


@functools.lru_cache(maxsize=1 << 16)
def _planned(shape: tuple[int, ...], dtype: DType, src: State, dst: State, links: Links) -> tuple[Route, Cost]:
    for state in (src, dst):
        sbps.nd(state.nd_sbp, state.placement.ndim, len(shape))
    ends = Spec(shape, dtype, *src), Spec(shape, dtype, *dst)
    kind = dst.placement.type
    if src.placement.type == kind:
        found = Route(*ends, _found(shape, dtype.itemsize, src, dst, links))
        return found, cost_of(found, links)
    early = State(Placement(kind, src.placement.ranks), src.nd_sbp)
    late = State(Placement(src.placement.type, dst.placement.ranks), dst.nd_sbp)
    both = (
        Route(*ends, (steps.Copy(kind), *_found(shape, dtype.itemsize, early, dst, links))),
        Route(*ends, (*_found(shape, dtype.itemsize, src, late, links), steps.Copy(kind))),
    )
    return min(((r, cost_of(r, links)) for r in both), key=lambda pair: pair[1].seconds)


def _found(shape: tuple[int, ...], itemsize: int, src: State, dst: State, links: Links) -> tuple[Step, ...]:
    steps = _search(shape, itemsize, src, dst, links, math.inf)
    assert steps is not None, "an exchange leads anywhere"
    return steps


@functools.lru_cache(maxsize=1 << 16)
def _search(
    shape: tuple[int, ...], itemsize: int, src: State, dst: State, links: Links, most: float
) -> tuple[Step, ...] | None:
    """The steps of the cheapest route; None if it takes more than so many seconds."""
    costs, moves = costs_of(shape, itemsize, links), _Moves(shape, src, dst)
    best: dict[State, float] = {src: 0.0}
    came: dict[State, tuple[State, Step]] = {}
    done: set[State] = set()
    order = itertools.count()  # ties go to the first found, alike on every rank
    heap: list[tuple[float, int, State]] = [(0.0, next(order), src)]
    while dst not in done:
        if not heap:
            return None
        seconds, _, state = heapq.heappop(heap)
        if state in done:
            continue
        done.add(state)
        for step, after in moves.of(state):
            total = seconds + (FREE if isinstance(step, steps.Relabel) else costs.of(step, state, after)).seconds
            if total <= most and total < best.get(after, math.inf) and total < best.get(dst, math.inf):
                best[after], came[after] = total, (state, step)
                heapq.heappush(heap, (total, next(order), after))
    path: list[Step] = []
    state = dst
    while state != src:
        state, step = came[state]
        path.append(step)
    return tuple(reversed(path))


_canonical = functools.lru_cache(maxsize=1 << 14)(canonical)


class _Moves:
    """The edges of the search: the steps worth trying from a state."""

    def __init__(self, shape: tuple[int, ...], src: State, dst: State) -> None:
        self.shape, self.src, self.dst = shape, src, dst
        ends = (*src.nd_sbp, *dst.nd_sbp)
        longest = {max(range(len(shape)), key=lambda d: shape[d])} if shape else set()
        self.dims = tuple(sorted({s.dim for s in ends if s.is_split} | longest))
        self.targets = tuple(sorted({s.reduce for s in dst.nd_sbp if s.is_partial}))
        self.same = src.placement is dst.placement
        # before an exchange a tensor may be reduced; after it, gathered from slices
        self.gates_out = set(self._gates(src, "P", (sbps.broadcast,)))
        self.gates_in = [dst] if self.same else list(self._gates(dst, "BP", ()))
        self.names: dict[tuple[object, ...], list[State]] = {}
        if src.placement.members == dst.placement.members:
            others = [src, dst] if self.same else [*self._every(dst.placement), dst]
            for state in dict.fromkeys(others):
                self.names.setdefault(_canonical(shape, state), []).append(state)

    def _gates(self, state: State, kinds: str, others: tuple[Sbp, ...]) -> Iterator[State]:
        choices = [
            (s, *others, *map(sbps.split, self.dims)) if s.kind in kinds and n > 1 else (s,)
            for n, s in zip(state.placement.shape, state.nd_sbp, strict=True)
        ]
        return (State(state.placement, nd_sbp) for nd_sbp in itertools.product(*choices))

    def _every(self, placement: Placement) -> Iterator[State]:
        partials = dict.fromkeys(s for s in (*self.src.nd_sbp, *self.dst.nd_sbp) if s.is_partial)
        kinds = (sbps.broadcast, *map(sbps.split, self.dims), *partials)
        return (State(placement, nd_sbp) for nd_sbp in itertools.product(kinds, repeat=placement.ndim))

    def of(self, state: State) -> Iterator[tuple[Step, State]]:
        if self.names:
            for other in self.names.get(_canonical(self.shape, state), ()):
                if other != state:
                    yield steps.Relabel(state, other), other
        yield from _on_axes(state, self.dims, self.targets)
        if state.placement is self.src.placement and state in self.gates_out:
            for other in self.gates_in:
                if other != state:
                    yield steps.Exchange(state, other), other


@functools.lru_cache(maxsize=1 << 14)
def _on_axes(state: State, dims: tuple[int, ...], targets: tuple[str, ...]) -> tuple[tuple[AxisStep, State], ...]:
    """The steps that change one axis, and where they lead."""
    placement, nd_sbp = state
    found: list[tuple[AxisStep, State]] = []
    for axis, s in enumerate(nd_sbp):
        if placement.shape[axis] == 1:
            continue  # a relabel does it
        for step in _on(axis, s, dims, targets):
            old, new = step.change()
            if not blocked(state, axis, old, new):
                found.append((step, State(placement, (*nd_sbp[:axis], new, *nd_sbp[axis + 1 :]))))
    return tuple(found)


def _on(axis: int, s: Sbp, dims: tuple[int, ...], targets: tuple[str, ...]) -> Iterator[AxisStep]:
    if s.is_partial:
        yield steps.AllReduce(axis, s.reduce)
        for dim in dims:
            yield steps.ReduceScatter(axis, dim, s.reduce)
    elif s.is_split:
        yield steps.AllGather(axis, s.dim)
        for dim in dims:
            if dim != s.dim:
                yield steps.AllToAll(axis, s.dim, dim)
        for reduce in targets:
            yield steps.SplitToPartial(axis, s.dim, reduce)
    else:
        for dim in dims:
            yield steps.Slice(axis, dim)
        for reduce in targets:
            yield steps.ToPartial(axis, reduce)
