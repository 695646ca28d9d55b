"""Exit: a program fails if some of its work failed without anyone reading the error."""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Callable
from typing import Any


def failed() -> BaseException | None:
    """The error that the program ends with, if it does."""
    return getattr(sys, "last_value", None)


def last(act: Callable[[], None]) -> None:
    """Run `act` at exit. Its error is treated as the program's: it is printed, reported to other ranks, and the exit
    code is 1."""
    try:
        act()
    except Exception as error:
        sys.last_value = error
        sys.excepthook(type(error), error, error.__traceback__)
        sys.stderr = _Last(sys.stderr)


class _Last:
    """Wraps stderr. Its last flush, by the interpreter after all atexit functions, ends the process: atexit functions
    can't set the exit code."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def flush(self) -> None:
        self._stream.flush()
        if not atexit._ncallbacks():
            os._exit(1)
