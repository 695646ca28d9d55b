"""Two-level collectives of groups that span hosts: slow links carry each byte once per host, not once per rank.

Each function is a generator of calls (see `execute`), with the same result as the flat collective. Reductions run
inside each host first, then between hosts; gathers in the opposite order.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import torch

from weft.core import shard
from weft.transport.reduction import function_of


class Call(NamedTuple):
    """One request: a collective of a group or an exchange (no group) by a transport; or local work."""

    method: str
    ranks: tuple[int, ...]
    args: tuple[Any, ...]

    @property
    def local(self) -> bool:
        return self.method in LOCAL


Calls = Generator[Call, None, torch.Tensor]
New = Callable[[Sequence[int], torch.dtype], torch.Tensor]  # contiguous memory, for as long as the step takes

LOCAL: Final[dict[str, Callable[..., Any]]] = {
    "copy": lambda into, t: into.copy_(t),
    "copy_each": torch._foreach_copy_,
    "fill": lambda into, value: into.fill_(value),
    "combine": lambda into, a, b, reduce: function_of(reduce, into.dtype)(a, b, out=into),
}


def copy(into: torch.Tensor, t: torch.Tensor) -> Call:
    return Call("copy", (), (into, t))


@dataclass(frozen=True)
class Levels:
    """A group as hosts times members: `hosts[h][i]` is the index in the group of host h's i-th member."""

    ranks: tuple[int, ...]
    hosts: tuple[tuple[int, ...], ...]

    @property
    def members(self) -> int:
        return len(self.hosts[0])

    def place(self, rank: int) -> tuple[int, int]:
        """The host of a rank (in the order of the group) and its index there."""
        index = self.ranks.index(rank)
        return next((h, host.index(index)) for h, host in enumerate(self.hosts) if index in host)

    def inside(self, rank: int) -> tuple[int, ...]:
        h, _ = self.place(rank)
        return tuple(self.ranks[i] for i in self.hosts[h])

    def between(self, rank: int) -> tuple[int, ...]:
        _, i = self.place(rank)
        return tuple(self.ranks[host[i]] for host in self.hosts)


def two_level(ranks: Sequence[int], hosts: Callable[[int], Hashable] | None) -> Levels | None:
    """The two levels of a group; None if one level is right: a single host, one rank per host, or hosts with different
    numbers of the group's ranks."""
    if hosts is None:
        return None
    by_host: dict[Hashable, list[int]] = {}
    for index, rank in enumerate(ranks):
        by_host.setdefault(hosts(rank), []).append(index)
    each = {len(members) for members in by_host.values()}
    if len(by_host) == 1 or len(each) > 1 or each == {1}:
        return None
    return Levels(tuple(ranks), tuple(map(tuple, by_host.values())))


def all_reduce(levels: Levels, rank: int, t: torch.Tensor, reduce: str, new: New) -> Generator[Call, None, None]:
    """In place: reduce-scatter inside each host, all-reduce between peers of all hosts, all-gather inside."""
    inside, between = levels.inside(rank), levels.between(rank)
    _, i = levels.place(rank)
    parts = list(t.view(-1).split(list(shard.sizes(t.numel(), levels.members))))
    own = new(parts[i].shape, t.dtype)
    yield Call("reduce_scatter", inside, (own, parts, reduce))
    yield Call("all_reduce", between, (own, reduce))
    yield Call("all_gather", inside, (parts, own))


def reduce_scatter(
    levels: Levels, rank: int, out: torch.Tensor, parts: Sequence[torch.Tensor], reduce: str, new: New
) -> Generator[Call, None, None]:
    """Reduce-scatter inside each host (a member gets its peers' parts), then between peers of all hosts."""
    _, i = levels.place(rank)
    packs = []
    for k in range(levels.members):
        mine = [parts[host[k]] for host in levels.hosts]
        packs.append(new((sum(p.numel() for p in mine),), out.dtype))
        for piece, p in zip(packs[-1].split([p.numel() for p in mine]), mine, strict=True):
            yield copy(piece.view(p.shape), p)
    own = new(packs[i].shape, out.dtype)
    yield Call("reduce_scatter", levels.inside(rank), (own, packs, reduce))
    pieces = own.split([parts[host[i]].numel() for host in levels.hosts])
    flat = new((out.numel(),), out.dtype)
    yield Call("reduce_scatter", levels.between(rank), (flat, list(pieces), reduce))
    yield copy(out, flat.view(out.shape))


def all_gather(
    levels: Levels, rank: int, outs: Sequence[torch.Tensor], t: torch.Tensor, new: New
) -> Generator[Call, None, None]:
    """All-gather between peers of all hosts, then inside each host."""
    _, i = levels.place(rank)
    sizes = [[outs[host[k]].numel() for host in levels.hosts] for k in range(levels.members)]
    packs = [new((sum(per_host),), t.dtype) for per_host in sizes]
    mine, peers = new((t.numel(),), t.dtype), new(packs[i].shape, t.dtype)
    yield copy(mine.view(t.shape), t)
    yield Call("all_gather", levels.between(rank), (list(peers.split(sizes[i])), mine))
    yield Call("all_gather", levels.inside(rank), (packs, peers))
    for pack, per_host, k in zip(packs, sizes, range(levels.members), strict=True):
        for piece, host in zip(pack.split(per_host), levels.hosts, strict=True):
            yield copy(outs[host[k]], piece.view(outs[host[k]].shape))
