"""Deadlock detection: find ranks that wait for each other in a cycle.

A rank that has waited a second writes its wait to the store, and reads the others'. A wait needs something of other
ranks, by key and count: that they make a group's call, or send or receive a message. It also promises the counts that
its rank has reached so far. If a rank needs what another, which waits itself, doesn't promise, and so on back to the
first, then none of them ever goes on.

Each line is watched separately, as it may belong to another thread: if two ranks wait for each other on different
lines, as when two graphs are launched in different orders, both report it, and go on waiting.

Counts only grow and a wait's promises don't change while it lasts, so the conclusion holds although what others wrote
may be old: the first rank knows its own wait and counts, so the last still waits, and so on around the cycle.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from weft.core.errors import RankError
from weft.core.log import logger
from weft.core.program_line import line as program_line
from weft.transport.check import PROGRAM, decoded

STUCK = 1.0  # seconds of waiting after which a rank publishes it
LOOK = 0.25  # seconds between reads of the others' waits

_numbers = itertools.count(1)


class Need(msgspec.Struct, array_like=True, frozen=True):
    rank: int
    key: str
    count: int


class Wait(msgspec.Struct):
    """A published wait. Once a cycle is found: the waits in it, and the error."""

    number: int
    what: str
    needs: list[Need]
    promises: dict[str, int]
    circle: dict[str, int] = {}
    why: str = ""


Waiting = Callable[[], tuple[str, str, Iterable[Need], Mapping[str, int]]]  # line, what, needs, promises


def say(words: str) -> None:
    """Print to stderr what this rank is waiting for."""
    logger("transport").warning(words)


def circle(first: int, waits: Callable[[int], Wait | None]) -> list[int]:
    """The ranks of a cycle of waits from this rank on; empty if there is none."""
    came_from = {first: first}
    todo = [first]
    for rank in todo:
        wait = waits(rank)
        for need in wait.needs if wait is not None else ():
            other = waits(need.rank)
            if other is None or other.promises.get(need.key, 0) >= need.count:
                continue
            if need.rank == first:
                way = [rank]
                while way[-1] != first:
                    way.append(came_from[way[-1]])
                return way[::-1]
            if need.rank not in came_from:
                came_from[need.rank] = rank
                todo.append(need.rank)
    return []


class Watcher:
    """Watches one long wait of this rank."""

    def __init__(self, transport: Any, waiting: Waiting | None) -> None:
        self._transport, self._waiting = transport, waiting
        self._number = next(_numbers)
        self._next = time.monotonic() + transport.stuck_after
        self._at: str | None = None
        self._node, self._said = "", b""
        self.found = False  # a cycle, which the others still have to read

    def look(self) -> None:
        """Raise if this rank waits in a cycle. May be called often."""
        now = time.monotonic()
        if self._waiting is None or now < self._next:
            return
        self._next = now + min(LOOK, self._transport.stuck_after)
        line, what, needs, promises = self._waiting()
        self._node = "" if line in PROGRAM else line
        if self._at is None:  # this thread is the one that waits
            at = program_line()
            self._at = "" if at is None else f" at {at}"
        mine = Wait(self._number, what + self._at, list(needs), dict(promises))
        self._say(mine)
        me, read = self._transport.rank, dict[int, Wait | None]({self._transport.rank: mine})

        def wait_of(rank: int) -> Wait | None:
            if rank not in read:
                read[rank] = self._read(rank, self._node)
            return read[rank]

        for need in mine.needs:
            other = wait_of(need.rank)
            if other is not None and other.circle.get(str(me)) == self._number:
                self._raise(mine, other.circle, other.why)
        found = circle(me, wait_of)
        if found:
            texts = [f"rank {r} is in {_of(wait_of(r)).what}" for r in found]
            why = (
                f"the ranks diverged, and wait for each other: {', '.join(texts[:-1])} and {texts[-1]}. Every rank "
                "must make the same calls in the same order, and a message needs one who sends it and one who receives "
                "it, in one dtype and size"
            )
            self._raise(mine, {str(r): _of(wait_of(r)).number for r in found}, why)

    def elsewhere(self) -> str:
        """A report, as text, if a rank for which this one waits is waiting for it on another line. Other threads may
        resolve that, so it isn't raised as a deadlock."""
        if self._waiting is None:
            return ""
        line, _, needs, _ = self._waiting()
        for rank in dict.fromkeys(need.rank for need in needs):
            for node in sorted({"", *self._transport.lines} - {"" if line in PROGRAM else line}):
                wait = self._read(rank, node)
                if wait is not None and any(need.rank == self._transport.rank for need in wait.needs):
                    return (
                        f"rank {rank} is in {wait.what} of {_place(node)} meanwhile, and there waits for rank "
                        f"{self._transport.rank}, which is in {_place(line)}. Every rank must launch graphs, and make "
                        "calls beside them, in the same order"
                    )
        return ""

    def _raise(self, mine: Wait, circle: dict[str, int], why: str) -> None:
        self.found = True
        self._say(msgspec.structs.replace(mine, circle=circle, why=why))
        raise RankError(why)

    def over(self) -> None:
        """The wait has ended, or was given up."""
        if self._said:
            self._transport.put(self._key(self._transport.rank, self._node), b"")

    def _key(self, rank: int, node: str) -> str:
        return f"waits/{rank}/{node}"

    def _say(self, wait: Wait) -> None:
        data = msgspec.json.encode(wait)
        if data != self._said:
            self._said = data
            self._transport.put(self._key(self._transport.rank, self._node), data)

    def _read(self, rank: int, node: str) -> Wait | None:
        data = self._transport.peek(self._key(rank, node))
        if not data:
            return None
        return decoded(data, Wait, f"what rank {rank} says that it waits for")  # type: ignore[return-value]


def waits_of(transport: Any, ranks: Iterable[int]) -> str:
    """What other ranks wait for, as far as they have published it, or the lines of code where they are, as text."""
    found = []
    for rank in (r for r in ranks if r != transport.rank):
        if data := transport.peek(f"waits/{rank}/"):
            found.append(f"rank {rank} waits for {decoded(data, Wait, f'what rank {rank} says').what}")  # type: ignore
        elif at := transport.whereabouts(rank):
            found.append(f"rank {rank} is at {at}")
    return "".join(f"; {text}" for text in found)


def _place(line: str) -> str:
    return "the program's own calls" if line in PROGRAM else f"line {line!r}"


def _of(wait: Wait | None) -> Wait:
    assert wait is not None
    return wait
