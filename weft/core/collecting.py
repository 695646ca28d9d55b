"""Python's collections of cycles put off, while much is made that stays."""

from __future__ import annotations

import contextlib
import gc
import threading
from collections.abc import Iterator

_lock = threading.Lock()
_within = 0  # how many threads ask for it now
_was = False  # whether there were collections before


@contextlib.contextmanager
def put_off() -> Iterator[None]:
    """Whoever makes hundreds of thousands of objects has them walked again and again, and nothing is freed by it."""
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
