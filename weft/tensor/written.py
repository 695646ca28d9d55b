"""When memory was overwritten, in the sequence in which calls are recorded: what a view is compared with.

A local view looks at the memory itself. A global one may look at what was boxed for it, and is made anew if its base
was overwritten since. Every rank must find the same, so what each op, launch and assignment overwrites is marked.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable

from weft.tensor.blob import Blob
from weft.tensor.counters import counters

next_sequence = itertools.count().__next__


def mark(blobs: Iterable[Blob | None]) -> None:
    """These parts of global tensors are overwritten now."""
    counters.overwritten = now = next_sequence()
    for blob in blobs:
        if blob is not None:
            blob.written = now
