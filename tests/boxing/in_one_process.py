"""Simulated boxing: split a logical tensor into shards, run all ranks' parts of a route in one process, assemble.

It is the oracle of the tests, and a way to try routes over worlds and hosts that don't exist.
"""

from __future__ import annotations

import functools
import itertools
from collections import defaultdict, deque
from collections.abc import Mapping, Sequence

import torch

from weft.boxing.execute import along, perform
from weft.boxing.lowering import HostOf
from weft.boxing.routes import Route
from weft.boxing.two_level import Call, Calls
from weft.core import shard
from weft.core.errors import RankError, SbpError
from weft.core.placement import Placement
from weft.core.sbp import NdSbp
from weft.core.spec import Spec
from weft.transport.reduction import BINARY

Shards = dict[int, torch.Tensor]


def shards_of(logical: torch.Tensor, placement: Placement, nd_sbp: NdSbp, seed: int = 0) -> Shards:
    """Each rank's shard of a logical tensor. Partials are random integers, so that their sums are exact."""
    generator = torch.Generator().manual_seed(seed)
    wholes: dict[tuple[int, ...], torch.Tensor] = {(): logical}  # by the coordinates on partial axes
    for n, s in zip(placement.shape, nd_sbp, strict=True):
        if s.is_partial:
            wholes = {
                (*place, i): part
                for place, whole in wholes.items()
                for i, part in enumerate(_parts(whole, n, s.reduce, generator))
            }
    shards = {}
    for place in placement.coordinates():
        box = shard.box(logical.shape, placement.shape, nd_sbp, place)
        shards[placement.at(place)] = wholes[_partial(place, nd_sbp)][_slices(box)].clone()
    return shards


def _partial(place: tuple[int, ...], nd_sbp: NdSbp) -> tuple[int, ...]:
    return tuple(c for c, s in zip(place, nd_sbp, strict=True) if s.is_partial)


def _parts(whole: torch.Tensor, count: int, reduce: str, generator: torch.Generator) -> list[torch.Tensor]:
    keeper = int(torch.randint(count, (), generator=generator))
    noise = [torch.randint(0, 9, whole.shape, generator=generator).to(whole.dtype) for _ in range(count)]
    if reduce == "sum":
        noise[keeper] = whole - sum((n for i, n in enumerate(noise) if i != keeper), torch.zeros_like(whole))
        return noise
    parts = [whole - n if reduce == "max" else whole + n for n in noise]
    parts[keeper] = whole
    return parts


def _slices(box: shard.Box) -> tuple[slice, ...]:
    return tuple(slice(a, b) for a, b in box)


def assemble(shards: Mapping[int, torch.Tensor], spec: Spec) -> torch.Tensor:
    """The logical tensor of the shards; raises if replicas differ."""
    grid = spec.placement.shape
    wholes: dict[tuple[int, ...], torch.Tensor] = {}  # by the coordinates on partial axes
    filled: dict[tuple[object, ...], int] = {}
    for place in spec.placement.coordinates():
        rank = spec.placement.at(place)
        part, box = shards[rank], shard.box(spec.shape, grid, spec.nd_sbp, place)
        if tuple(part.shape) != tuple(b - a for a, b in box):
            raise SbpError(f"rank {rank} holds {tuple(part.shape)} where {spec} has {spec.local_shape(rank)}")
        partial = _partial(place, spec.nd_sbp)
        whole = wholes.get(partial)
        if whole is None:
            whole = wholes[partial] = torch.zeros(spec.shape, dtype=spec.dtype.torch)
        there = whole[_slices(box)]
        first = filled.setdefault((partial, box), rank)
        if first != rank and not torch.equal(there, part):
            raise SbpError(f"ranks {first} and {rank} should hold the same shard of {spec}, but they differ")
        there.copy_(part)
    for reduce in [s.reduce for s in reversed(spec.nd_sbp) if s.is_partial]:
        outer: dict[tuple[int, ...], torch.Tensor] = {}
        for place, whole in wholes.items():
            key = place[:-1]
            outer[key] = BINARY[reduce](outer[key], whole) if key in outer else whole
        wholes = outer
    return wholes[()]


def simulate(
    route: Route, shards: Mapping[int, torch.Tensor], hosts: HostOf | None = None, world: Sequence[int] = ()
) -> Shards:
    """Run all ranks' parts of a route, in lock-step; `world` adds ranks outside of both ends. Raises on deadlock, or if
    ranks call different collectives."""
    ranks = sorted({*route.src.placement.members, *route.dst.placement.members, *world})
    return LockStep({rank: along(route, shards.get(rank), rank, hosts) for rank in ranks}).run()


class LockStep:
    """A simulated transport for the calls of several ranks: each rank runs until it waits for another."""

    def __init__(self, calls: dict[int, Calls]) -> None:
        self.calls = calls
        self.waiting: dict[int, Call] = {}
        self.results: Shards = {}
        self.mail: dict[tuple[int, int], deque[torch.Tensor]] = defaultdict(deque)

    def run(self) -> Shards:
        for rank in self.calls:
            self._go(rank)
        while self.waiting:
            able = [rank for rank, call in self.waiting.items() if self._can(rank, call)]
            if not able:
                story = "; ".join(f"rank {r} in {c.method} of {list(c.ranks)}" for r, c in self.waiting.items())
                raise RankError(f"the ranks wait for each other for ever: {story}")
            for rank in able:
                call = self.waiting.get(rank)
                if call is not None and self._can(rank, call):
                    self._do(rank, call)
        return self.results

    def _go(self, rank: int) -> None:
        self.waiting.pop(rank, None)
        try:
            while (call := next(self.calls[rank])).local:
                perform(call)
        except StopIteration as end:
            self.results[rank] = end.value
            return
        if not call.ranks:
            for peer, t in call.args[0]:
                self.mail[rank, peer].append(t.clone())
        self.waiting[rank] = call

    def _can(self, rank: int, call: Call) -> bool:
        if not call.ranks:
            return all(self.mail[peer, rank] for peer, _ in call.args[1])
        return all(
            (other := self.waiting.get(r)) is not None and (other.method, other.ranks) == (call.method, call.ranks)
            for r in call.ranks
        )

    def _do(self, rank: int, call: Call) -> None:
        if not call.ranks:
            for peer, t in call.args[1]:
                t.copy_(self.mail[peer, rank].popleft())
            self._go(rank)
            return
        each = [self.waiting[r].args for r in call.ranks]
        _COLLECTIVES[call.method](each)
        for r in call.ranks:
            self._go(r)


def _fold(parts: Sequence[torch.Tensor], reduce: str) -> torch.Tensor:
    return functools.reduce(lambda a, b: BINARY[reduce](a, b), parts).clone()


def _all_reduce(each: list[tuple[torch.Tensor, str]]) -> None:
    total = _fold([t for t, _ in each], each[0][1])
    for t, _ in each:
        t.copy_(total)


def _reduce_scatter(each: list[tuple[torch.Tensor, Sequence[torch.Tensor], str]]) -> None:
    totals = [_fold([parts[i] for _, parts, _ in each], each[0][2]) for i in range(len(each))]
    for (out, _, _), total in zip(each, totals, strict=True):
        out.copy_(total)


def _all_gather(each: list[tuple[Sequence[torch.Tensor], torch.Tensor]]) -> None:
    given = [t.clone() for _, t in each]
    for outs, _ in each:
        for out, t in zip(outs, given, strict=True):
            out.copy_(t)


def _all_to_all(each: list[tuple[Sequence[torch.Tensor], Sequence[torch.Tensor]]]) -> None:
    given = [[p.clone() for p in parts] for _, parts in each]
    for (i, (outs, _)), (j, parts) in itertools.product(enumerate(each), enumerate(given)):
        outs[j].copy_(parts[i])


_COLLECTIVES = {
    "all_reduce": _all_reduce, "reduce_scatter": _reduce_scatter, "all_gather": _all_gather, "all_to_all": _all_to_all,
}  # fmt: skip
