"""When memory was overwritten, on the clock of recorded calls, so that views can check whether they are current.

A local view shares memory. A global one may be of a boxed copy, and is made again if its base was overwritten
since. All ranks must agree, so every op, launch and assignment marks what it overwrites.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable

from weft.tensor.blob import Blob
from weft.tensor.counters import counters

next_sequence = itertools.count(1).__next__  # 0: never written


def mark(blobs: Iterable[Blob | None]) -> None:
    """These parts of global tensors are overwritten now."""
    counters.overwritten = now = next_sequence()
    for blob in blobs:
        if blob is not None:
            blob.written = now
