"""The cost model of steps: bytes of the busiest rank over bandwidth, plus latency."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import NamedTuple

from weft.boxing import steps
from weft.boxing.links import DEVICE, MEMORY, Link, Links
from weft.boxing.overlap import Side
from weft.boxing.steps import AxisStep, State, Step
from weft.core import shard
from weft.core.sbp import NdSbp

SAMPLES = 8  # receiving ranks sampled to estimate an exchange


class Cost(NamedTuple):
    moved: float  # bytes between ranks
    seconds: float


FREE = Cost(0.0, 0.0)


class Costs:
    """The costs of steps of one tensor, with a cache of them and of intermediate results."""

    def __init__(self, shape: tuple[int, ...], itemsize: int, links: Links) -> None:
        self.shape, self.itemsize, self.links = shape, itemsize, links
        self._bytes: dict[tuple[tuple[int, ...], NdSbp], int] = {}
        self._sides: dict[State, Side] = {}
        self._known: dict[tuple[type[Step], int, State, State], Cost] = {}

    def shard_bytes(self, state: State) -> int:
        """The bytes of the largest shard."""
        key = state.placement.shape, state.nd_sbp
        found = self._bytes.get(key)
        if found is None:
            sizes = list(self.shape)
            for n, s in zip(*key, strict=True):
                if s.is_split:
                    sizes[s.dim] = -(-sizes[s.dim] // n)
            found = self._bytes[key] = math.prod(sizes) * self.itemsize
        return found

    def of(self, step: Step, before: State, after: State) -> Cost:
        key = type(step), step.axis if isinstance(step, AxisStep) else -1, before, after
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = _RULES[type(step)](self, step, before, after)
        return found

    def side(self, state: State) -> Side:
        found = self._sides.get(state)
        if found is None:
            found = self._sides[state] = Side(self.shape, state)
        return found


costs_of: Callable[[tuple[int, ...], int, Links], Costs] = functools.lru_cache(maxsize=256)(Costs)


def _nothing(costs: Costs, step: Step, before: State, after: State) -> Cost:
    return FREE


def _written(costs: Costs, step: Step, before: State, after: State) -> Cost:
    return Cost(0.0, _time(MEMORY[after.placement.type], costs.shard_bytes(after)))


def _to_device(costs: Costs, step: Step, before: State, after: State) -> Cost:
    return Cost(0.0, _time(DEVICE, costs.shard_bytes(before)))


def _collective(turns: int, whole: Callable[[int, int], int]) -> Callable[[Costs, Step, State, State], Cost]:
    """The cost of a ring of n ranks: (n - 1) / n of the whole, `turns` times. Across hosts as in `two_level`."""

    def rule(costs: Costs, step: Step, before: State, after: State) -> Cost:
        assert isinstance(step, AxisStep)
        place = before.placement
        n, size = place.shape[step.axis], whole(costs.shard_bytes(before), costs.shard_bytes(after))
        if n == 1:
            return FREE
        inside, between = costs.links.inside[place.type], costs.links.between[place.type]
        hosts = costs.links.of_axis(place, step.axis)
        moved = turns * size * (n - 1) / n
        if hosts.number == 1:
            return Cost(moved, _time(inside, moved, n))
        if hosts.members < 2 or isinstance(step, steps.AllToAll):
            return Cost(moved, _time(between, moved, n))
        within = turns * size * (hosts.members - 1) / hosts.members
        across = turns * size / hosts.members * (hosts.number - 1) / hosts.number
        seconds = _time(inside, within, hosts.members) + _time(between, across, hosts.number)
        return Cost(moved, seconds)

    return rule


def _exchange(costs: Costs, step: Step, before: State, after: State) -> Cost:
    src, dst = costs.side(before), costs.side(after)
    contributions = math.prod(src.partial_sizes)
    count = dst.full
    sampled = range(count) if count <= SAMPLES else [i * (count - 1) // (SAMPLES - 1) for i in range(SAMPLES)]
    most = total = 0
    for number in sampled:
        place = dst.receiver(number)
        box = dst.box(place)
        incoming = shard.volume(box) * contributions
        own = before.placement.coordinate(after.placement.at(tuple(place)))
        if own is not None:
            kept = shard.intersect(box, src.box(own))
            incoming -= shard.volume(kept) if kept is not None else 0
        most = max(most, incoming)
        total += incoming
    if total == 0:
        return _written(costs, step, before, after)
    # each replica of the source serves its share of the replicas, or of the receivers, of the target
    outgoing = min(
        costs.shard_bytes(before) * -(-dst.replicas // src.replicas),
        costs.shard_bytes(after) * -(-dst.full // src.replicas),
        total * costs.itemsize * count / len(sampled),
    )
    moved = max(most * costs.itemsize, outgoing)
    link = costs.links.of_exchange(before.placement, after.placement)
    # messages between pairs are posted one by one, where a collective is one call
    return Cost(moved, moved / link.speed + link.latency * (1 + _peers(src, dst)))


def _peers(src: Side, dst: Side) -> int:
    """The number of peers of the busiest rank of an exchange."""
    sources, targets = math.prod(src.partial_sizes), -(-dst.replicas // src.replicas)
    for a, b in zip(src.parts, dst.parts, strict=True):
        sources, targets = sources * -(-a // b), targets * -(-b // a)
    return max(sources, targets)


def _time(link: Link, size: float, ranks: int = 2) -> float:
    return size / link.speed + link.latency * math.log2(ranks)


_RULES: dict[type[Step], Callable[[Costs, Step, State, State], Cost]] = {
    steps.AllReduce: _collective(2, lambda before, after: before),
    steps.ReduceScatter: _collective(1, lambda before, after: before),
    steps.AllGather: _collective(1, lambda before, after: after),
    steps.AllToAll: _collective(1, max),
    steps.Slice: _written,
    steps.ToPartial: _written,
    steps.SplitToPartial: _written,
    steps.Exchange: _exchange,
    steps.Relabel: _nothing,
    steps.Copy: _to_device,
}
