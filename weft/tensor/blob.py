"""A blob: the memory behind a tensor, and who is about to touch it."""

from __future__ import annotations

from typing import Any

import torch


class Blob:
    """`data` is the memory, as a torch tensor. `now` is the same while nothing pending writes it, else None.

    `access` is the virtual machine's record of pending readers and the last writer (`vm/dependency.py`), None while
    nothing is pending. Tensors that share memory (views, `detach`) share the record, and so `now` of each of them.
    `written` tells when a global tensor's part was last overwritten; others have none.
    """

    __slots__ = ("now", "data", "access", "written", "__weakref__")
    now: torch.Tensor | None
    data: torch.Tensor | None
    access: Any
    written: int

    def __init__(self, data: torch.Tensor | None) -> None:
        self.now = self.data = data
        self.access = None


def blob_of(t: Any) -> Blob:
    """The memory of a tensor: of a global one, its part here."""
    return t.blob if t.shard is None else t.shard
