"""A blob: the memory behind a tensor, and the record of its pending readers and writers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from weakref import ref

import torch


class Blob:
    """`data` is the memory, as a torch tensor. `now` is the same if it can be read at once, else None.

    That is so while a write is pending, and of meta tensors always: ops on those take the path with checks, since some
    of torch's kernels would compute with any memory in their place.

    `access` is the virtual machine's record of pending readers and the last writer (`vm/dependency.py`), None while
    nothing is pending. Tensors that share memory (views, `detach`) share the record, and so `now` of each of them.
    `written` is the time at which a global tensor's shard was last overwritten; others have none.
    """

    __slots__ = ("now", "data", "access", "written", "__weakref__")
    now: torch.Tensor | None
    data: torch.Tensor | None
    access: Any
    written: int

    def __init__(self, data: torch.Tensor | None) -> None:
        self.data = data
        self.now = None if data is None or data.is_meta else data
        self.access = None


if TYPE_CHECKING:

    class Alias(Blob):
        def __init__(self, access: Any) -> None: ...

else:

    class Alias(ref):
        """The blob of memory that others look at too, such as a view's. It refers weakly to the record that they share,
        so that the record knows all that live (`weakref.getweakrefs`): no list of them has to be kept."""

        __slots__ = Blob.__slots__
        __eq__, __hash__ = object.__eq__, object.__hash__  # not those of references


def blob_of(t: Any) -> Blob:
    """The memory of a tensor; of a global one, its shard here."""
    return t.blob if t.shard is None else t.shard
