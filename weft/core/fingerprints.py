"""Fingerprints: numbers that must be equal on all ranks of a program. A rank registers them, collectives compare them.

State that must stay in step without being sent, such as that of the random numbers which ranks draw in common, is
registered here as a number. The program's next collective carries one hash of them all, and ranks that differ get an
error that names the entry.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple
from zlib import crc32

from weft.core.rank import Rank, current

WORD = (1 << 61) - 1
SHOWN = 3  # an error shows the latest items folded into a number


class Entry(NamedTuple):
    number: int | Callable[[], int]
    shown: str | Callable[[], str] | tuple[str, ...]
    ranks: frozenset[int] | None

    def now(self) -> int:
        return self.number() if callable(self.number) else self.number

    def __str__(self) -> str:
        if isinstance(self.shown, tuple):
            return ", then ".join(self.shown)
        return (self.shown() if callable(self.shown) else self.shown) or str(self.now())


Behind = list[tuple[str, Entry, int]]


class Fingerprints:
    """A rank's fingerprints, by name."""

    def __init__(self, rank: Rank | None = None) -> None:
        self.entries: dict[str, Entry] = {}
        self.names = 0  # counts added and removed entries
        self.version = 0  # counts changes of numbers; functions are called each time
        self.asked = False  # whether any entry is a function

    def put(
        self, name: str, number: int | Callable[[], int], shown: str | Callable[[], str] = "",
        ranks: Iterable[int] | None = None,
    ) -> None:  # fmt: skip
        """Compare a number, or a pure function's result, from now on among `ranks` (None: everyone). `shown` describes
        it in an error."""
        before = self.entries.get(name)
        self._keep(name, before, Entry(number, shown, None if ranks is None else frozenset(ranks)))

    def fold(self, name: str, number: int, shown: str, ranks: frozenset[int] | None = None) -> None:
        """Compare, from now on, the sequence of all numbers folded into the entry."""
        before = self.entries.get(name)
        if before is None:
            self._keep(name, None, Entry(hash((0, number)) & WORD, (shown,), ranks))
            return
        row = before.shown if isinstance(before.shown, tuple) else ()
        self.entries[name] = Entry(hash((before.number, number)) & WORD, (*row[1 - SHOWN :], shown), ranks)
        self.version += 1

    def drop(self, name: str) -> None:
        if self.entries.pop(name, None) is not None:
            self._changed()

    def among(self, ranks: Iterable[int]) -> list[str]:
        """The names of the entries that all of these ranks share."""
        wanted = set(ranks)
        return sorted(n for n, e in list(self.entries.items()) if e.ranks is None or wanted <= e.ranks)

    def _keep(self, name: str, before: Entry | None, entry: Entry) -> None:
        if before is None or before.ranks != entry.ranks or callable(before.number) != callable(entry.number):
            self.entries[name] = entry
            self._changed()
        elif before.number != entry.number:
            self.entries[name] = entry
            self.version += 1

    def _changed(self) -> None:
        self.names += 1
        self.version += 1
        self.asked = any(callable(e.number) for e in self.entries.values())


class Words:
    """The common fingerprint of a group's members, as the one word that their collectives carry. `kept` is None where
    calls aren't in program order."""

    def __init__(self, ranks: tuple[int, ...], kept: Fingerprints | None) -> None:
        self.ranks, self.kept = ranks, kept
        self._names, self._version = -1, -1
        self._common: list[str] = []
        self._entries: list[Entry] = []
        self._numbers: list[int] = []
        self._base = 0  # hash of the names
        self._word = 0

    def now(self) -> int:
        kept = self.kept
        if kept is None or (kept.version == self._version and not kept.asked):
            return self._word
        if kept.names != self._names:
            self._names, self._common = kept.names, kept.among(self.ranks)
            self._base = crc32("\n".join(self._common).encode())
        self._version = kept.version
        entries = kept.entries
        self._entries = [entries[n] for n in self._common]
        # Python's hash of numbers is the same in every process
        self._numbers = numbers = [e.now() for e in self._entries]
        self._word = hash((self._base, *numbers)) & WORD if numbers else 0
        return self._word

    def behind(self) -> Behind:
        """The entries behind the latest word, with the numbers that they had."""
        return list(zip(self._common, self._entries, self._numbers, strict=True))


def of(rank: Rank | None = None) -> Fingerprints:
    return (rank or current()).resource("fingerprints", Fingerprints)
