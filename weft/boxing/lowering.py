"""Lower a route to one rank's part of each step. Pure; `execute` runs it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable
from dataclasses import dataclass

from weft.boxing import steps
from weft.boxing.overlap import overlap
from weft.boxing.routes import Route
from weft.boxing.steps import AxisStep, State, Step
from weft.boxing.two_level import Levels, two_level
from weft.core import shard
from weft.core.dtype import DType
from weft.core.shard import Box

Slices = tuple[slice, ...]
Shape = tuple[int, ...]
HostOf = Callable[[int], Hashable]


@dataclass(frozen=True, slots=True)
class Transfers:
    """A rank's part of an exchange, as slices of its shards before and after.

    `receives` lists for each piece the ranks that contribute to it. `reduces` says how: (number, reduction) for each
    partial axis of the source, outermost first. Slices that a rank has itself are listed under its own number.
    """

    sends: tuple[tuple[int, Slices], ...]
    receives: tuple[tuple[Slices, tuple[int, ...]], ...]
    reduces: tuple[tuple[int, str], ...]


@dataclass(frozen=True, slots=True)
class LocalStep:
    """One step on one rank.

    `kind` is the step's name. `before` and `shape` are the shapes of this rank's shard before (None if it had none) and
    after. A step of an axis has `ranks`, its group in order, and this rank's `index` there; across hosts also `levels`.
    `fill` names the reduction whose neutral element fills what isn't written; an exchange has `transfers`.
    """

    kind: str
    rank: int
    dtype: DType
    device: str
    before: Shape | None
    shape: Shape
    ranks: tuple[int, ...] = ()
    index: int = 0
    dim: int = -1
    from_dim: int = -1
    reduce: str = ""
    fill: str = ""
    levels: Levels | None = None
    transfers: Transfers | None = None

    @property
    def collective(self) -> bool:
        """Whether all ranks of its group must call it together."""
        return self.kind in ("all_reduce", "reduce_scatter", "all_gather", "all_to_all")

    def __str__(self) -> str:
        what = [f"{self.before} -> {self.shape}"]
        if self.ranks:
            what.append(f"ranks {list(self.ranks)}")
        if self.transfers is not None:
            what.append(f"to {[r for r, _ in self.transfers.sends]}")
            what.append(f"from {[list(ranks) for _, ranks in self.transfers.receives]}")
        return f"{self.kind} {', '.join(what)}"


def lower(route: Route, rank: int, hosts: HostOf | None = None) -> list[LocalStep]:
    """The steps in which a rank takes part, in order."""
    return list(_lowered(route, rank, hosts))


@functools.lru_cache(maxsize=4096)
def _lowered(route: Route, rank: int, hosts: HostOf | None) -> tuple[LocalStep, ...]:
    states = list(route.states())
    found = []
    for step, before, after in zip(route.steps, states, states[1:], strict=False):
        if rank in before.placement or rank in after.placement:
            found.append(_lower(route, step, before, after, rank, hosts))
    return tuple(found)


def _lower(route: Route, step: Step, before: State, after: State, rank: int, hosts: HostOf | None) -> LocalStep:
    had = shard.local_shape(route.shape, *before, rank) if rank in before.placement else None
    gets = shard.local_shape(route.shape, *after, rank)
    basic = functools.partial(LocalStep, step.name, rank, route.dtype, after.placement.type, had, gets)
    if isinstance(step, steps.Exchange):
        return _exchange(basic, route.shape, before, after, rank)
    if not isinstance(step, AxisStep):
        return basic()
    ranks = before.placement.group(rank, step.axis)
    place = before.placement.coordinate(rank)
    assert place is not None
    with_group = functools.partial(basic, ranks=ranks, index=place[step.axis])
    levels = two_level(ranks, hosts)
    match step:
        case steps.AllReduce():
            return with_group(reduce=step.reduce, levels=levels)
        case steps.ReduceScatter():
            return with_group(dim=step.dim, reduce=step.reduce, levels=levels)
        case steps.AllGather():
            return with_group(dim=step.dim, levels=levels)
        case steps.AllToAll():
            return with_group(from_dim=step.from_dim, dim=step.to_dim)
        case steps.Slice():
            return with_group(dim=step.dim)
        case steps.SplitToPartial():
            return with_group(dim=step.dim, fill=step.reduce)
        case steps.ToPartial():
            keeps = step.reduce != "sum" or place[step.axis] == 0
            return with_group(fill="" if keeps else step.reduce)
    raise AssertionError(f"{step} has no lowering")


def _exchange(basic: Callable[..., LocalStep], shape: Shape, src: State, dst: State, rank: int) -> LocalStep:
    found = overlap(shape, src, dst)
    has, gets = (_box(shape, state, rank) for state in (src, dst))
    transfers = Transfers(
        tuple((r, shard.relative(box, has)) for r, box in found.sends_of(rank)) if has is not None else (),
        tuple((shard.relative(box, gets), tuple(ranks)) for box, ranks in found.receives_of(rank))
        if gets is not None
        else (),
        tuple((n, s.reduce) for n, s in zip(src.placement.shape, src.nd_sbp, strict=True) if s.is_partial),
    )
    # the innermost partial axis on which the rank isn't first decides what it holds
    place = dst.placement.coordinate(rank)
    empty = [s for c, s in zip(place, dst.nd_sbp, strict=True) if c and s.is_partial] if place is not None else []
    return basic(transfers=transfers, fill=empty[-1].reduce if empty else "")


def _box(shape: Shape, state: State, rank: int) -> Box | None:
    place = state.placement.coordinate(rank)
    return None if place is None else shard.box(shape, state.placement.shape, state.nd_sbp, place)
