"""Logging, by Python's `logging`, under the name "weft":

    WARNING  delays: a wait that takes long, and why
    INFO     rare events: a world that meets, a graph that is compiled, a checkpoint that is written or read
    DEBUG    internals: a compiled graph's passes

If the program sets up no logging, lines of level WARNING and above, or of the level in `WEFT_LOG`, go to stderr.
A record has its rank's number: `logging.Formatter("[rank %(rank)s] %(message)s")`.
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
LABELLED: Final = "WEFT_LABELLED"  # set if the launcher labels each line with the rank


def logger(part: str) -> logging.Logger:
    """The logger of one part of Weft: `logger("graph")` is named weft.graph."""
    found = ROOT.getChild(part)
    if not found.filters:
        found.addFilter(Ranked())
    return found


class Ranked(logging.Filter):
    """Adds the rank's number to a record: the thread's, or the launcher's."""

    def filter(self, record: logging.LogRecord) -> bool:
        rank = entered()
        index, size = (os.environ.get(v) for v in VARIABLES[:2]) if rank is None else (rank.index, rank.world_size)
        record.rank = index or 0
        record.label = f"[rank {index}] " if size not in (None, 1, "1") and LABELLED not in os.environ else ""
        return True


class Last(logging.StreamHandler[Any]):
    """Writes to the current stderr, unless the program has a handler of its own."""

    def __init__(self) -> None:
        logging.Handler.__init__(self)
        self.addFilter(Ranked())  # of a program's own lines, too, by getLogger("weft")
        self.setFormatter(logging.Formatter("%(label)s%(name)s: %(message)s"))

    @property
    def stream(self) -> TextIO:
        return sys.stderr

    def filter(self, record: logging.LogRecord) -> Any:
        return False if logging.root.handlers else super().filter(record)


def begin() -> None:
    """Set up logging, once, when Weft is imported."""
    ROOT.addHandler(Last())
    asked = os.environ.get("WEFT_LOG", "").upper()
    if asked:
        if asked not in LEVELS:
            raise ArgumentError(f"WEFT_LOG takes {', '.join(LEVELS).lower()}; got {os.environ['WEFT_LOG']!r}")
        ROOT.setLevel(asked)
