"""PyTorch's words for sbp: `Shard(dim)` is a split, `Replicate()` broadcast, `Partial()` a partial sum."""

from __future__ import annotations

from dataclasses import dataclass

from weft.core.errors import ArgumentError
from weft.core.sbp import Sbp, broadcast, partials, split


class Placement:
    """How a tensor lies on one axis of a mesh."""

    def sbp(self, ndim: int) -> Sbp:
        """The same of a tensor with `ndim` dimensions, in Weft's word."""
        raise NotImplementedError

    def is_shard(self, dim: int | None = None) -> bool:
        return isinstance(self, Shard) and dim in (None, self.dim)

    def is_replicate(self) -> bool:
        return isinstance(self, Replicate)

    def is_partial(self, reduce_op: str | None = None) -> bool:
        return isinstance(self, Partial) and reduce_op in (None, self.reduce_op)


@dataclass(frozen=True)
class Shard(Placement):
    dim: int

    def sbp(self, ndim: int) -> Sbp:
        if not -ndim <= self.dim < ndim:
            raise ArgumentError(f"{self!r} of a tensor with {ndim} dimensions, which has none of this number")
        return split(self.dim % ndim)

    def __str__(self) -> str:
        return f"S({self.dim})"


@dataclass(frozen=True)
class Replicate(Placement):
    def sbp(self, ndim: int) -> Sbp:
        return broadcast

    def __str__(self) -> str:
        return "R"


@dataclass(frozen=True, repr=False)
class Partial(Placement):
    reduce_op: str = "sum"

    def sbp(self, ndim: int) -> Sbp:
        if self.reduce_op not in partials:
            raise ArgumentError(f"{self!r} has no place in {__package__}: a Partial() is of sum, max or min")
        return partials[self.reduce_op]

    def __repr__(self) -> str:
        return f"Partial({self.reduce_op})"

    def __str__(self) -> str:
        return f"P({self.reduce_op})"


def placement_of(sbp: Sbp) -> Placement:
    return Shard(sbp.dim) if sbp.is_split else Replicate() if sbp.is_broadcast else Partial(sbp.reduce)
