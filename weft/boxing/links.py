"""Bandwidth and latency between ranks, for the cost model. They only rank routes: ratios matter, not digits.

The CPU's are measured on the reference machine (2 cores): over shared memory two processes all-reduce 1 KB in 13 us
and 4 MB in 0.23 ms; with Gloo over loopback, which stands for "between hosts", in 890 us and 2.1 ms; a copy within a
rank takes 1 us and runs at 20 GB/s. CUDA's are estimates: NVLink, a 200 Gb/s network, PCIe.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import NamedTuple

from weft.core.placement import Placement


class Link(NamedTuple):
    """Bandwidth in bytes/s (full duplex), and latency in seconds."""

    speed: float
    latency: float


INSIDE = {"cpu": Link(16e9, 13e-6), "cuda": Link(350e9, 12e-6)}
BETWEEN = {"cpu": Link(2e9, 400e-6), "cuda": Link(20e9, 30e-6)}
MEMORY = {"cpu": Link(20e9, 1e-6), "cuda": Link(1500e9, 4e-6)}  # a copy within one rank
DEVICE = Link(12e9, 10e-6)  # between host and device
COMPUTE = {"cpu": 3e10, "cuda": 2e14}  # multiplications a second, of one rank


class Hosts(NamedTuple):
    """A group's hosts: how many, and how many members on each (0 if they differ)."""

    number: int
    members: int


@dataclass(frozen=True, eq=False)
class Links:
    """The network. `hosts(rank)` names the host of a rank; without it all ranks share one."""

    hosts: Callable[[int], Hashable] | None = None
    inside: dict[str, Link] = field(default_factory=lambda: INSIDE)
    between: dict[str, Link] = field(default_factory=lambda: BETWEEN)

    @functools.cached_property
    def without_latency(self) -> Links:
        """The same network, where only the bytes count."""
        inside, between = ({k: Link(v.speed, 0.0) for k, v in links.items()} for links in (self.inside, self.between))
        return Links(self.hosts, inside, between)

    def of_axis(self, placement: Placement, axis: int) -> Hosts:
        """The hosts of the groups along an axis."""
        return Hosts(1, placement.shape[axis]) if self.hosts is None else _of_axis(self, placement, axis)

    def of_exchange(self, src: Placement, dst: Placement) -> Link:
        """The slowest link an exchange may use."""
        alone = self.hosts is None or _one_host(self, src, dst)
        return (self.inside if alone else self.between)[src.type]


ONE_HOST = Links()


@functools.lru_cache(maxsize=4096)
def _of_axis(links: Links, placement: Placement, axis: int) -> Hosts:
    assert links.hosts is not None
    worst = Hosts(1, placement.shape[axis])
    for coordinate in placement.coordinates():
        if coordinate[axis]:
            continue
        each: dict[Hashable, int] = {}
        for rank in placement.group(placement.at(coordinate), axis):
            host = links.hosts(rank)
            each[host] = each.get(host, 0) + 1
        found = Hosts(len(each), min(each.values()) if len(set(each.values())) == 1 else 0)
        if (found.number, -found.members) > (worst.number, -worst.members):
            worst = found
    return worst


@functools.lru_cache(maxsize=4096)
def _one_host(links: Links, src: Placement, dst: Placement) -> bool:
    assert links.hosts is not None
    return len({links.hosts(r) for r in (*src.members, *dst.members)}) == 1
