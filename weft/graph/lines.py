"""Lines of graphs: a pool of connections to the other ranks. A graph leases one, and returns it when it has ended.

Groups, links and channels stay open as long as their rank, so a program that compiles many graphs must reuse them.
Ranks release a graph at different times; when they compile the next graph together, they exchange which lines are free,
and lease the first that is free on all.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Final

import torch

from weft.core.rank import Rank, current
from weft.transport import Channel, Line, transport_of
from weft.transport.line import GRAPHS

FREE_LINES: Final = 128  # bytes of the bit set of a rank's free lines; further lines aren't reused


class Ring:
    """A channel of a line. `total` counts this end's posts, or acknowledgements, over all its leases."""

    __slots__ = ("channel", "form", "total", "taken")

    def __init__(self, channel: Channel, form: tuple[int, int]) -> None:
        self.channel, self.form = channel, form
        self.total, self.taken = 0, True


class Lent(Channel):
    """A reused channel: its counts start at 0, at the slot where the earlier lease ended."""

    def __init__(self, channel: Channel, base: int) -> None:
        self.shape, self.dtype, self.copies = channel.shape, channel.dtype, channel.copies
        self._channel, self._base = channel, base

    def buffer(self, slot: int) -> torch.Tensor:
        return self._channel.buffer((self._base + slot) % self.copies)

    def post(self) -> None:
        self._channel.post()

    def arrived(self) -> int:
        return self._channel.arrived() - self._base

    def acknowledge(self) -> None:
        self._channel.acknowledge()

    def acknowledged(self) -> int:
        return max(self._channel.acknowledged() - self._base, 0)  # the last ones of the earlier lease may be in flight

    def rings(self, bell: Callable[[], None]) -> bool:
        return self._channel.rings(bell)


class GraphLine:
    """A line, leased to one graph at a time. Both ends of a channel open it, in the same order among their channels."""

    def __init__(self, name: str) -> None:
        self.transport = transport_of()
        self.line = Line(self.transport, name)
        self.free = False
        self.rings: dict[tuple[int, int], list[Ring]] = {}
        self.lent: list[Ring] = []  # to the current graph, in the order of its requests

    def channel(self, src: int, dst: int, size: int, copies: int) -> Channel:
        """A channel with registers of `size` bytes, rounded up so that it fits many graphs."""
        form, known = (roomy(size), copies), self.rings.setdefault((src, dst), [])
        ring = next((r for r in known if r.form == form and not r.taken), None)
        if ring is None:
            key = f"{self.line.name}/{len(known)}"
            ring = Ring(self.transport.channel(key, src, dst, (form[0],), torch.uint8, copies), form)
            known.append(ring)
        ring.taken = True
        self.lent.append(ring)
        return Lent(ring.channel, ring.total) if ring.total else ring.channel

    def release(self, counts: Iterable[int]) -> None:
        """End the lease, after so many posts or acknowledgements on each of its channels."""
        for ring, count in zip(self.lent, counts, strict=True):
            ring.total += count
            ring.taken = False
        self.lent = []
        self.free = True

    def renew(self) -> None:
        """Begin a new lease, on all ranks: discard what the earlier graph sent ahead and nobody read."""
        self.free = False
        me, totals = self.transport.rank, {}
        for pair, rings in sorted(self.rings.items()):
            mine = [r.total for r in rings] if pair[0] == me else [0] * len(rings)
            totals[pair] = torch.tensor(mine, dtype=torch.int64)
        self.line.exchange(
            [(dst, t) for (src, dst), t in totals.items() if src == me],
            [(src, t) for (src, dst), t in totals.items() if dst == me],
        )
        for pair, rings in self.rings.items():
            for ring, sent in zip(rings, totals[pair].tolist(), strict=True):
                self._let_go(ring, sent if pair[1] == me else ring.total, pair[0])

    def _let_go(self, ring: Ring, sent: int, src: int) -> None:
        channel = ring.channel
        while ring.total < sent:
            self.transport.wait_until(lambda: channel.arrived() > ring.total, "what an earlier graph sent", (src,))
            channel.acknowledge()
            ring.total += 1


class Lines:
    """One rank's pool of lines. Every rank makes the same ones, as every rank compiles the same graphs; but for those
    of local tensors, whose lines are a rank's own."""

    def __init__(self, rank: Rank, name: str = GRAPHS) -> None:
        self.name = name
        self.made: list[GraphLine] = []

    def free(self) -> int:
        """The lines that are free on this rank, as bits."""
        return sum(1 << i for i, line in enumerate(self.made[: 8 * FREE_LINES]) if line.free)

    def take(self, free: int) -> GraphLine:
        """Lease the first line that is free on all ranks, or a new one."""
        if free:
            line = self.made[(free & -free).bit_length() - 1]
            line.renew()
        else:
            line = GraphLine(f"{self.name}{len(self.made)}")
            self.made.append(line)
        return line


def lines() -> Lines:
    return current().resource("graph lines", Lines)


def own_line() -> GraphLine:
    """A line for a graph without communication."""
    pool = current().resource("local graph lines", functools.partial(Lines, name="local graph"))
    return pool.take(pool.free())


def roomy(size: int) -> int:
    """The next size of three significant bits, at least a cache line."""
    step = 1 << max(size.bit_length() - 3, 6)
    return -(-max(size, 1) // step) * step
