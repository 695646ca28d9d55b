"""Pausing Python's garbage collector while many long-lived objects are made."""

from __future__ import annotations

import contextlib
import gc
import threading
from collections.abc import Iterator

_lock = threading.Lock()
_within = 0  # how many threads pause it now
_was = False  # whether it was enabled before


@contextlib.contextmanager
def paused() -> Iterator[None]:
    """Pause the garbage collector: it would walk hundreds of thousands of new objects again and again, and free
    none."""
    global _within, _was
    with _lock:
        if not _within:
            _was = gc.isenabled()
            gc.disable()
        _within += 1
    try:
        yield
    finally:
        with _lock:
            _within -= 1
            if not _within and _was:
                gc.enable()
