"""The steps of a route. Each step is a value: it defines from which state it may start and to which it leads.

A state is (placement, nd_sbp). Two rules hold for the steps of one axis, as inner axes are nested in outer ones:

- axes that split the same dimension nest, first axis outermost, so an axis may start or stop splitting a dimension only
  while no later axis splits it;
- partials nest too: (P, P(max)) is a sum of maxima, so a partial is reduced only when no later axis holds another kind.
"""

from __future__ import annotations

import abc
import dataclasses
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from weft.core import placement as placements
from weft.core import sbp as sbps
from weft.core.errors import PlacementError, SbpError, WeftError
from weft.core.placement import Placement
from weft.core.sbp import NdSbp, Sbp


class State(NamedTuple):
    """A tensor's layout at one point of a route."""

    placement: Placement
    nd_sbp: NdSbp

    def __str__(self) -> str:
        return f"{self.placement} {sbps.show(self.nd_sbp)}"

    @staticmethod
    def parse(text: str) -> State:
        """The inverse of str(): cpu:[0,1] (S(0))."""
        place, _, how = text.partition(" ")
        ranks = place.partition(":")[2]
        if not (ranks and set(ranks) <= set("[]0123456789,-") and how.startswith("(") and how.endswith(")")):
            raise SbpError(f"{text!r} is no state; write one like 'cpu:[0,1] (S(0))'")
        try:
            placement = placements.parse(place)
        except PlacementError as cause:
            raise SbpError(str(cause)) from None
        return State(placement, tuple(map(sbps.parse, how[1:-1].split(", "))))


@dataclass(frozen=True)
class Step(abc.ABC):
    """One step. `after` gives the next state, or raises."""

    name: ClassVar[str]
    local: ClassVar[bool] = False  # nothing travels between ranks

    @abc.abstractmethod
    def after(self, shape: Sequence[int], state: State) -> State: ...

    def __str__(self) -> str:
        inside = ", ".join(f"{f.name}={getattr(self, f.name)}" for f in dataclasses.fields(self))
        return f"{self.name}({inside})"


@dataclass(frozen=True)
class AxisStep(Step):
    """A step that changes the sbp of one axis: by a collective of each group along it, or locally."""

    axis: int
    way: ClassVar[tuple[str, str]]  # from and to: "B", "P" (of its `reduce`), or the field with a split's dimension

    def change(self) -> tuple[Sbp, Sbp]:
        """The axis's sbp before and after."""
        old, new = map(self._sbp, self.way)
        return old, new

    def _sbp(self, kind: str) -> Sbp:
        if kind == "P":
            return _partial(getattr(self, "reduce"))  # noqa: B009  (a field of those steps that name it)
        return sbps.broadcast if kind == "B" else sbps.split(getattr(self, kind))

    def after(self, shape: Sequence[int], state: State) -> State:
        placement, nd_sbp = state
        old, new = self.change()
        if not 0 <= self.axis < len(nd_sbp):
            raise SbpError(f"{self}: {state} has axes 0 to {len(nd_sbp) - 1} only")
        if nd_sbp[self.axis] is not old:
            raise SbpError(f"{self} starts from {old} on axis {self.axis}, but the tensor lies as {state}")
        if new.dim >= len(shape):
            raise SbpError(f"{self} splits dimension {new.dim}, but the tensor has {len(shape)}, counted from 0")
        reason = blocked(state, self.axis, old, new)
        if reason:
            raise SbpError(f"{self} can't start from {state}: {reason}; change that axis first")
        return State(placement, (*nd_sbp[: self.axis], new, *nd_sbp[self.axis + 1 :]))


def blocked(state: State, axis: int, old: Sbp, new: Sbp) -> str:
    """Why an axis may not change from old to new in this state; empty if it may."""
    partial = old if old.is_partial else new if new.is_partial and old.is_split else None
    for inner in range(axis + 1, len(state.nd_sbp)):
        s = state.nd_sbp[inner]
        if s.is_broadcast or state.placement.shape[inner] == 1:
            continue
        if s.is_split and (s is old or s is new):
            return f"axis {inner} splits dimension {s.dim} within axis {axis}'s slices"
        if s.is_partial and partial is not None and s is not partial:
            return f"axis {inner} is {s} within axis {axis}'s {partial}"
    return ""


@dataclass(frozen=True)
class AllReduce(AxisStep):
    """P -> B."""

    name = "all_reduce"
    way = "P", "B"
    reduce: str


@dataclass(frozen=True)
class ReduceScatter(AxisStep):
    """P -> S."""

    name = "reduce_scatter"
    way = "P", "dim"
    dim: int
    reduce: str


@dataclass(frozen=True)
class AllGather(AxisStep):
    """S -> B."""

    name = "all_gather"
    way = "dim", "B"
    dim: int


@dataclass(frozen=True)
class AllToAll(AxisStep):
    """S of one dimension -> S of another."""

    name = "all_to_all"
    way = "from_dim", "to_dim"
    from_dim: int
    to_dim: int

    def change(self) -> tuple[Sbp, Sbp]:
        if self.from_dim == self.to_dim:
            raise SbpError(f"{self} changes nothing: its dimensions are the same")
        return super().change()


@dataclass(frozen=True)
class Slice(AxisStep):
    """B -> S: each rank keeps its slice."""

    name = "slice"
    local = True
    way = "B", "dim"
    dim: int


@dataclass(frozen=True)
class ToPartial(AxisStep):
    """B -> P: for a sum the first rank of the axis keeps its data, the others get zeros; for max, min all keep it."""

    name = "to_partial"
    local = True
    way = "B", "P"
    reduce: str


@dataclass(frozen=True)
class SplitToPartial(AxisStep):
    """S -> P: each rank pads its slice with the neutral element."""

    name = "split_to_partial"
    local = True
    way = "dim", "P"
    dim: int
    reduce: str


@dataclass(frozen=True)
class Exchange(Step):
    """Anything -> anything, point to point: every rank sends what others need of its shard. Contributions of a partial
    source are reduced by the receiver; of a partial target the first coordinate gets the data, the others the neutral
    element."""

    name = "exchange"
    src: State
    dst: State

    def after(self, shape: Sequence[int], state: State) -> State:
        _starts_from(self, self.src, state)
        if self.src.placement.type != self.dst.placement.type:
            raise SbpError(f"{self} would cross device types; copy to {self.dst.placement.type} before or after it")
        sbps.nd(self.dst.nd_sbp, self.dst.placement.ndim, len(shape))
        return self.dst


@dataclass(frozen=True)
class Relabel(Step):
    """Another description of the same layout: other axes of the same ranks, or another sbp on axes of one rank."""

    name = "relabel"
    local = True
    src: State
    dst: State

    def after(self, shape: Sequence[int], state: State) -> State:
        _starts_from(self, self.src, state)
        sbps.nd(self.dst.nd_sbp, self.dst.placement.ndim, len(shape))
        if canonical(shape, self.src) != canonical(shape, self.dst):
            raise SbpError(f"{self} changes more than names: some rank would hold something else; use an exchange")
        return self.dst


@dataclass(frozen=True)
class Copy(Step):
    """The same ranks and sbp on another type of device."""

    name = "copy"
    local = True
    type: str

    def after(self, shape: Sequence[int], state: State) -> State:
        return State(Placement(self.type, state.placement.ranks), state.nd_sbp)


def _partial(reduce: str) -> Sbp:
    if reduce not in sbps.partials:
        raise SbpError(f"{reduce!r} is no reduction of a partial; there are {', '.join(sbps.partials)}")
    return sbps.partials[reduce]


def _starts_from(step: Step, expected: State, state: State) -> None:
    if expected != state:
        raise SbpError(f"{step} starts from {expected}, but the tensor lies as {state}")


def canonical(shape: Sequence[int], state: State) -> tuple[object, ...]:
    """A canonical form, equal for equivalent states: axes of one rank dropped, neighbouring axes of one sbp merged."""
    parts: dict[int, int] = {}
    for n, s in zip(state.placement.shape, state.nd_sbp, strict=True):
        parts[s.dim] = parts.get(s.dim, 1) * n
    grid: list[int] = []
    how: list[Sbp] = []
    for n, s in zip(state.placement.shape, state.nd_sbp, strict=True):
        if n == 1:
            continue
        even = not s.is_split or shape[s.dim] % parts[s.dim] == 0  # nested slices are those of one axis only if even
        if how and how[-1] is s and even:
            grid[-1] *= n
        else:
            grid.append(n)
            how.append(s)
    return state.placement.type, state.placement.members, tuple(grid), tuple(how)


_KINDS: dict[str, type[Step]] = {
    kind.name: kind
    for kind in (
        AllReduce, ReduceScatter, AllGather, AllToAll, Slice, ToPartial, SplitToPartial, Exchange, Relabel, Copy,
    )
}  # fmt: skip
_READ = {"int": int, "str": str, "State": State.parse}


def parse(text: str) -> Step:
    """The inverse of str(): all_gather(axis=0, dim=1)."""
    found = re.fullmatch(r"(\w+)\((.*)\)", text)
    kind = _KINDS.get(found[1]) if found else None
    if found is None or kind is None:
        raise SbpError(f"{text!r} is no step of a route; there are {', '.join(_KINDS)}")
    words = re.split(r"(?:^|, )(\w+)=", found[2])[1:]
    fields = {f.name: _READ[str(f.type)] for f in dataclasses.fields(kind)}
    if words[::2] != list(fields):
        raise SbpError(f"{text!r}: {kind.name} takes {', '.join(fields)}")
    try:
        return kind(**{name: read(word) for (name, read), word in zip(fields.items(), words[1::2], strict=True)})
    except WeftError:
        raise
    except ValueError:
        raise SbpError(f"{text!r}: the axis and the dimensions are numbers") from None
