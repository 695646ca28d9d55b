"""PyTorch's words for sbp: `Shard(dim)` is a split, `Replicate()` broadcast, `Partial()` a partial sum."""

from __future__ import annotations

from dataclasses import dataclass

from weft.core.errors import ArgumentError
from weft.core.sbp import Sbp, broadcast, partials, split


class Placement:
    """How a tensor lies on one axis of a mesh."""

    def is_shard(self, dim: int | None = None) -> bool:
        return isinstance(self, Shard) and dim in (None, self.dim)

    def is_replicate(self) -> bool:
        return isinstance(self, Replicate)

    def is_partial(self, reduce_op: str | None = None) -> bool:
        return isinstance(self, Partial) and reduce_op in (None, self.reduce_op)


@dataclass(frozen=True)
class Shard(Placement):
    dim: int


@dataclass(frozen=True)
class Replicate(Placement):
    pass


@dataclass(frozen=True)
class Partial(Placement):
    reduce_op: str = "sum"


def sbp_of(placement: Placement, ndim: int) -> Sbp:
    """The sbp of a placement of a tensor with `ndim` dimensions."""
    if isinstance(placement, Shard):
        return split(placement.dim % max(ndim, 1))
    if isinstance(placement, Replicate):
        return broadcast
    if isinstance(placement, Partial) and placement.reduce_op in partials:
        return partials[placement.reduce_op]
    raise ArgumentError(
        f"{placement!r} is none of {__package__}: they are Shard(dim), Replicate(), and Partial() of sum, max or min"
    )


def placement_of(sbp: Sbp) -> Placement:
    return Shard(sbp.dim) if sbp.is_split else Replicate() if sbp.is_broadcast else Partial(sbp.reduce)
