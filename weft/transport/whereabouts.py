"""Report the line of code where a rank's program is, for ranks that wait for it. A thread samples it, as the program
itself may be in a kernel, or asleep."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final

from weft.core.program_line import line_of_thread

BEAT: Final = 0.5  # seconds


def whereabouts() -> str:
    """The current line of the program of this process."""
    return line_of_thread(threading.main_thread().ident or 0)


class Whereabouts:
    """Samples it at every beat, and calls `tell` with each change."""

    def __init__(self, rank: int, tell: Callable[[str], None]) -> None:
        self._tell, self._stop = tell, threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"weft-whereabouts-{rank}", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        said = ""
        while not self._stop.wait(BEAT):
            at = whereabouts()
            if at != said:
                self._tell(at)
                said = at

    def close(self) -> None:
        self._stop.set()
        if self._thread is not threading.current_thread():
            self._thread.join(2 * BEAT)
