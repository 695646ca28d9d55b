"""Which ranks share a host; and, for tests and measurements on one machine, simulated hosts and links.

`WEFT_HOSTS=2` splits the ranks into so many hosts of equal size, `WEFT_HOSTS=0,0,1,1` names the host of each. Between
them Weft does what it does between real hosts. `WEFT_LINK=100e6` or `WEFT_LINK=100e6,0.0005` simulates a link of so
many bytes per second and seconds of latency: data is really sent, and receivers wait until it would have arrived. That
takes no CPU time.
"""

from __future__ import annotations

import os
import threading
import time
from typing import Final

from weft.core.errors import ArgumentError, RankError

HOSTS: Final = "WEFT_HOSTS"
LINK: Final = "WEFT_LINK"
LONGEST: Final = 3600.0  # seconds of latency


def world_of(n: object) -> int:
    if isinstance(n, int) and n >= 1 and n is not True:
        return n
    raise ArgumentError(f"a world has one rank or more; got {n!r}")


def imagined(world_size: int) -> tuple[int, ...] | None:
    """The simulated host of each rank; None without WEFT_HOSTS, or with only one rank."""
    given = os.environ.get(HOSTS, "").strip()
    if not given or world_size == 1:
        return None
    words = given.split(",")
    if all(word.strip().isdecimal() for word in words):
        if len(words) == 1 and 0 < int(given) <= world_size and not world_size % int(given):
            return tuple(rank * int(given) // world_size for rank in range(world_size))
        if len(words) == world_size:
            return tuple(map(int, words))
    raise RankError(
        f"{HOSTS} splits the ranks of one machine into imagined hosts: a number that divides the {world_size} ranks, "
        f"or the host of each, {','.join(str(i * 2 // world_size) for i in range(world_size))} say; got {given!r}"
    )


class SlowLink:
    """A simulated link from a rank to other hosts. Transfers go one after another."""

    def __init__(self, speed: float, latency: float = 0.0) -> None:
        self.speed, self.latency = speed, latency  # bytes per second, seconds
        self._free = 0.0
        self._lock = threading.Lock()

    def arrival(self, size: float) -> float:
        """The arrival time of so many bytes that are sent now, on the monotonic clock."""
        with self._lock:
            self._free = max(self._free, time.monotonic()) + size / self.speed
            return self._free + self.latency

    def carry(self, size: float) -> None:
        """Wait until so many bytes would have arrived."""
        until(self.arrival(size))


def until(moment: float) -> None:
    while (left := moment - time.monotonic()) > 0:
        time.sleep(left)


def slow_link() -> SlowLink | None:
    """The simulated link of WEFT_LINK, if it is set."""
    given = os.environ.get(LINK, "").strip()
    if not given:
        return None
    try:
        speed, latency = ([float(word) for word in given.split(",")] + [0.0])[:2]
        if given.count(",") < 2 and speed > 0 and 0 <= latency < LONGEST:
            return SlowLink(speed, latency)
    except ValueError:
        pass
    raise RankError(f"{LINK} is bytes per second, and seconds of latency if any: 100e6,0.0005 say; got {given!r}")
