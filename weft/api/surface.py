"""The table of public names, `surface.txt`: where a name appears, which file defines it, and where it comes from.

Weft exports what the table says, whatever torch is installed. `python -m tools.surface` regenerates it after a
name was added, and lists torch's names that have no row yet.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

FILE: Final = Path(__file__).with_suffix(".txt")
NOWHERE: Final = "-"  # the file of a name of torch's that isn't implemented


class Row(NamedTuple):
    name: str
    places: tuple[str, ...]
    home: str
    whose: str


def rows() -> Iterator[Row]:
    for line in FILE.read_text().splitlines():
        if line and not line.startswith("#"):
            name, places, home, whose = line.split()
            yield Row(name, tuple(places.split(",")), home, whose)


ROWS: Final = tuple(rows())


def _public() -> dict[str, frozenset[str]]:
    found = defaultdict(set)
    for row in ROWS:
        if row.home != NOWHERE:
            for place in row.places:
                found[place].add(row.name)
    return {place: frozenset(names) for place, names in found.items()}


PUBLIC: Final = _public()  # by place: flow, tensor, neural (nn.functional), and the modules by their paths


def by_file(place: str, package: str) -> dict[str, list[str]]:
    """The names of a place that files of a package define, by the file's path in the package."""
    found = defaultdict(list)
    for row in ROWS:
        if place in row.places and row.home.startswith(f"{package}."):
            found[row.home.removeprefix(f"{package}.")].append(row.name)
    return dict(found)
