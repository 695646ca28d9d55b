"""What Weft says beside errors and warnings, by Python's `logging`, under the name "weft":

    WARNING  what holds up: a wait that takes long, and why
    INFO     what happens once: a world that meets, a graph that is compiled, a checkpoint that is written or read
    DEBUG    what is inside: a compiled graph's passes

As long as the program sets up no logging of its own, lines go to stderr, warnings and errors alone, or from the level
on that `WEFT_LOG` names. A record has the number of its rank: `logging.Formatter("[rank %(rank)s] %(message)s")`.
"""

from __future__ import annotations

import logging
import os
import sys
from typing import Any, Final, TextIO

from weft.core.errors import ArgumentError
from weft.core.rank import VARIABLES, entered

ROOT: Final = logging.getLogger(__name__.partition(".")[0])
LEVELS: Final = ("DEBUG", "INFO", "WARNING", "ERROR")
LABELLED: Final = "WEFT_LABELLED"  # set where the launcher puts the rank before each line anyhow


def logger(part: str) -> logging.Logger:
    """Of one part of Weft: `logger("graph")` is named weft.graph."""
    found = ROOT.getChild(part)
    if not found.filters:
        found.addFilter(Ranked())
    return found


class Ranked(logging.Filter):
    """Gives a record the number of its rank: the thread's, or what the launcher's variables say."""

    def filter(self, record: logging.LogRecord) -> bool:
        rank = entered()
        index, size = (os.environ.get(v) for v in VARIABLES[:2]) if rank is None else (rank.index, rank.world_size)
        record.rank = index or 0  # type: ignore[attr-defined]
        record.label = f"[rank {index}] " if size not in (None, 1, "1") and LABELLED not in os.environ else ""
        return True


class Last(logging.StreamHandler[Any]):
    """Writes to stderr, whatever that is at the time, where no handler of the program's does."""

    def __init__(self) -> None:
        logging.Handler.__init__(self)
        self.setFormatter(logging.Formatter("%(label)s%(name)s: %(message)s"))

    @property
    def stream(self) -> TextIO:  # type: ignore[override]
        return sys.stderr

    def filter(self, record: logging.LogRecord) -> Any:
        return False if logging.root.handlers else super().filter(record)


def begin() -> None:
    """Once, when Weft is imported."""
    ROOT.addHandler(Last())
    asked = os.environ.get("WEFT_LOG", "").upper()
    if asked:
        if asked not in LEVELS:
            raise ArgumentError(f"WEFT_LOG is {', '.join(LEVELS).lower()}; got {os.environ['WEFT_LOG']!r}")
        ROOT.setLevel(asked)
