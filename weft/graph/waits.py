"""Report long waits for a launch to the other ranks, and detect their failures."""

from __future__ import annotations

from collections.abc import Callable

from weft.core.errors import DeadlineError
from weft.transport.base import Transport
from weft.transport.stuck import Need, Watcher, waits_of


class Waits:
    """The waits of one graph, one after another. `what` names the launch.

    They are on a separate line, and prove no deadlock, since others may launch yet.
    """

    def __init__(self, transport: Transport, line: str, what: Callable[[], str]) -> None:
        self._transport, self._line, self._what = transport, f"{line}/launches", what
        self._needed: tuple[int, ...] = ()
        self._watcher: Watcher | None = None
        transport.lines.add(self._line)

    def look(self, needed: tuple[int, ...]) -> None:
        """Raise if a rank has failed, or if a needed one has ended; after a while, report the wait to the others."""
        self._transport.look_around(needed)
        self._needed = needed
        if needed:
            if self._watcher is None:
                self._watcher = Watcher(self._transport, self._waiting)
            self._watcher.look()

    def _waiting(self) -> tuple[str, str, list[Need], dict[str, int]]:
        return self._line, self._what(), [Need(rank, "", 0) for rank in self._needed], {}

    def over(self, error: BaseException | None = None) -> None:
        """End a wait; an error of its deadline gets a note of where the needed ranks are."""
        watcher, self._watcher = self._watcher, None
        if isinstance(error, DeadlineError):
            elsewhere = "" if watcher is None else watcher.elsewhere()
            others = elsewhere or waits_of(self._transport, self._needed or range(self._transport.world_size))
            if others and others not in str(error):
                error.add_note(others.removeprefix("; "))
        if watcher is not None:
            watcher.over()
