"""The profile as a table: counts and times by name."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from weft.core.errors import OptionError
from weft.vm.trace import Event, aligned

_ORDERS = ("total", "own", "mean", "calls", "name")
_SAME = {  # PyTorch's names; device time is counted as its op's
    "key": "name", "count": "calls", "input_shapes": "shapes",
    **{f"{where}_time_total": "total" for where in ("cpu", "cuda", "device")},
    **{f"self_{where}_time_total": "own" for where in ("cpu", "cuda", "device")},
    **{f"{where}_time": "mean" for where in ("cpu", "cuda", "device")},
}  # fmt: skip


@dataclass(frozen=True)
class Average:
    """All events of one name, and perhaps of operands of the same forms. Times are microseconds; `own` leaves out what
    ran inside, on the same row."""

    name: str
    kind: str
    calls: int
    total: float
    own: float
    shortest: float
    longest: float
    shapes: tuple[str, ...] = ()

    @property
    def mean(self) -> float:
        return self.total / self.calls

    def __getattr__(self, name: str) -> Any:
        """The same under PyTorch's names: `key`, `count`, `cpu_time_total`, ..."""
        if name not in _SAME:
            raise AttributeError(f"an average has no {name!r}; it has {', '.join((*_ORDERS, *_SAME))}")
        return getattr(self, _SAME[name])


class Averages(Sequence[Average]):
    """Sorted by total time; printing it prints the table."""

    def __init__(self, rows: Iterable[Average]) -> None:
        self._rows = sorted(rows, key=lambda r: -r.total)

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, index):
        return self._rows[index]

    def table(self, sort_by: str | None = "total", row_limit: int = 50) -> str:
        """The rows as text, sorted by total, own or mean time, calls or name, or PyTorch's "cpu_time_total" etc."""
        order = "total" if sort_by is None else _SAME.get(sort_by, sort_by)
        if order not in _ORDERS:
            raise OptionError(f"table(sort_by={sort_by!r}): sort by one of {', '.join((*_ORDERS, *_SAME))}")
        rows = sorted(self._rows, key=lambda r: getattr(r, order), reverse=order != "name")
        rows = rows if row_limit < 0 else rows[:row_limit]
        shapes = any(r.shapes for r in self._rows)
        cells: list[tuple[str, ...]] = [
            ("name", "kind", "calls", "total us", "own us", "mean us", "min us", "max us", *["operands"] * shapes)
        ]
        for r in rows:
            times = (f"{t:.1f}" for t in (r.total, r.own, r.mean, r.shortest, r.longest))
            cells.append((r.name, r.kind, str(r.calls), *times, *[", ".join(r.shapes)] * shapes))
        return aligned(cells, "llrrrrrr" + "l" * shapes)

    def __str__(self) -> str:
        return self.table() if self._rows else "nothing was recorded"

    __repr__ = __str__


def average(events: Sequence[Event], by_shape: bool = False) -> Averages:
    own = own_times(events)
    groups: dict[tuple[str, str, tuple[str, ...]], list[int]] = {}
    for i, e in enumerate(events):
        shapes = tuple(read[: read.find("]") + 1] for read in e.reads) if by_shape else ()
        groups.setdefault((e.name, e.kind, shapes), []).append(i)

    def one(name: str, kind: str, shapes: tuple[str, ...], members: list[int]) -> Average:
        times = [(events[i].end - events[i].start) / 1000 for i in members]
        mine = sum(own[i] for i in members) / 1000
        return Average(name, kind, len(members), sum(times), mine, min(times), max(times), shapes)

    return Averages(one(*key, members) for key, members in groups.items())


def own_times(events: Sequence[Event]) -> list[int]:
    """Self time of each event in nanoseconds: without that of events inside it, on its row."""
    own = [e.end - e.start for e in events]
    under_way: dict[tuple[str, str], list[int]] = {}
    for i in sorted(range(len(events)), key=lambda i: (events[i].start, -events[i].end)):
        e = events[i]
        if e.policy == "external":  # several overlap
            continue
        around = under_way.setdefault((e.stream, e.thread), [])
        while around and events[around[-1]].end <= e.start:
            around.pop()
        if around:
            own[around[-1]] -= e.end - e.start
        around.append(i)
    return own
