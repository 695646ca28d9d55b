"""The end of a program some of whose work failed without anyone asking for it: it fails."""

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
    """Do it behind the program: an error is as one that the program ends with. It is printed, other ranks are told, and
    the exit code is 1."""
    try:
        act()
    except Exception as error:
        sys.last_value = error  # type: ignore[assignment]
        sys.excepthook(type(error), error, error.__traceback__)
        sys.stderr = _Last(sys.stderr)  # type: ignore[assignment]


class _Last:
    """A stream whose last flush, which is the interpreter's, behind all that is registered for the end, ends the
    process: no function that is called there may choose an exit code and let those after it run."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def flush(self) -> None:
        self._stream.flush()
        if not atexit._ncallbacks():
            os._exit(1)
