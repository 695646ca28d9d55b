"""Measure pairs alternately, so that both see the same machine; the minimum of several repeats counts."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

VERDICTS = {True: "yes", False: "**no**", None: ""}


class Row(NamedTuple):
    """One line of the table: seconds (or bytes) of the reference and of Weft, and how their ratio is bounded.

    `limit` bounds ours / reference from above, `least` bounds reference / ours from below; with neither, `most` bounds
    our seconds alone.
    """

    case: str
    reference: str
    theirs: float | None
    ours: float
    limit: float | None = None
    least: float | None = None
    most: float | None = None
    unit: str = "seconds"

    @property
    def ratio(self) -> float | None:
        if self.theirs is None:
            return None
        return self.theirs / self.ours if self.least is not None else self.ours / self.theirs

    @property
    def holds(self) -> bool | None:
        """Whether the bound is kept; None where there is none."""
        ratio = self.ratio
        if self.limit is not None:
            return ratio is not None and ratio <= self.limit
        if self.least is not None:
            return ratio is not None and ratio >= self.least
        return None if self.most is None else self.ours <= self.most

    def texts(self) -> tuple[str, str, str, str, str, str]:
        """Case, reference, ours, ratio, bound and verdict, to print."""
        theirs = self.reference if self.theirs is None else f"{self.reference} {shown(self.theirs, self.unit)}"
        ratio = "" if self.ratio is None else f"{self.ratio:.2f}x"
        bound = ""
        if self.limit is not None:
            bound = f"<= {self.limit:g}x"
        elif self.least is not None:
            bound = f">= {self.least:g}x"
        elif self.most is not None:
            bound = f"<= {shown(self.most, self.unit)}"
        return self.case, theirs, shown(self.ours, self.unit), ratio, bound, VERDICTS[self.holds]


def marked_down(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """A table in the lines of a page."""
    return ["| " + " | ".join(head) + " |", "|" + "---|" * len(head), *("| " + " | ".join(row) + " |" for row in rows)]


def shown(seconds: float, unit: str = "seconds") -> str:
    if unit == "bytes":
        return f"{seconds / 1e6:.2f} MB"
    if seconds < 1e-3:
        return f"{seconds * 1e6:.2f} us"
    return f"{seconds * 1e3:.2f} ms" if seconds < 1 else f"{seconds:.2f} s"


SAMPLES = 20  # of n calls: on a busy machine only a short sample may run undisturbed


def least(
    calls: Sequence[Callable[[], Any]], n: int, repeats: int = 9, before: Callable[[], Any] | None = None
) -> list[float]:
    """The minimum seconds per call of each: alternating samples of n calls, `repeats` times."""
    for call in calls:
        for _ in range(min(n, 20)):
            call()
    size = max(1, n // SAMPLES)  # the same on every rank
    best = [float("inf")] * len(calls)
    for _ in range(repeats * n // size):
        for i, call in enumerate(calls):
            if before is not None:
                before()
            start = time.perf_counter()
            for _ in range(size):
                call()
            best[i] = min(best[i], (time.perf_counter() - start) / size)
    return best
