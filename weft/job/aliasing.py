"""Aliasing during a trace: which tensors share memory, so that a write into one of them is seen by all.

A symbol is never written. A write makes a traced tensor, and those detached from it, stand for another symbol. Tensors
that were detached from a captured one before the trace are found by their blob. Tensors that had memory when the trace
began get it back when it ends.
"""

from __future__ import annotations

import weakref
from typing import Any, Final

import numpy as np
import torch

from weft.job.value import Value
from weft.tensor.blob import Alias, Blob, blob_of
from weft.tensor.tensor import ABSENT, Tensor, View

MOST_WORK: Final = 1_000_000  # candidates to search: with strides the question is hard in general


class Memory:
    """Tensors that share memory. `symbol` is its current value, if it was captured and the program wrote there."""

    def __init__(self) -> None:
        self.absent = Blob(None)  # a symbol has no data, though its tensor had some
        self.symbol: Value | None = None
        self._tensors: list[weakref.ref[Tensor]] = []

    def add(self, t: Tensor) -> None:
        if not any(r() is t for r in self._tensors):
            self._tensors.append(weakref.ref(t))

    def leave(self, t: Tensor) -> None:
        self._tensors = [r for r in self._tensors if r() is not t]

    def tensors(self) -> list[Tensor]:
        return [t for t in [r() for r in self._tensors] if t is not None]


def _counted(blob: Any) -> Blob:
    """The blob of which this is another one over the same elements, `x.data`; or itself."""
    firsts = (r() for r in blob.access.firsts or ())
    region = _region(blob.data)
    return next((first for first in firsts if first is not None and _region(first.data) == region), blob)


def _region(data: Any) -> Any:
    return data if data is None else (data.data_ptr(), data.dtype, data.shape, data.stride())


class Memories:
    """The memories of the program's tensors in one trace."""

    def __init__(self) -> None:
        self._of: dict[int, tuple[Blob, Memory]] = {}  # by id of a blob, which is kept alive
        self._before: dict[int, tuple[Tensor, dict[str, Any]]] = {}  # tensors that were eager, and what they were
        self._made: dict[int, Blob] = {}  # by id: of the tensors with data that the program makes in each launch anew

    def of(self, t: Tensor) -> Memory:
        """The memory of a tensor; a symbol without one gets a blob to identify it."""
        blob = blob_of(t)
        known = self._of.get(id(blob))
        if known is not None:
            return known[1]
        memory = Memory()
        self._of[id(memory.absent)] = memory.absent, memory
        if blob is ABSENT:
            t.blob = memory.absent
        else:
            self._of[id(blob)] = blob, memory
        return memory

    def share(self, t: Tensor, twin: Tensor) -> None:
        """Let two tensors share memory from now on."""
        memory = self.of(t)
        memory.add(t)
        known = self._of.get(id(blob_of(twin)))
        if known is None:
            if twin.value is not None:
                twin.blob = memory.absent
        elif known[1] is not memory:
            for blob in (known[0], known[1].absent):
                self._of[id(blob)] = blob, memory
            for each in known[1].tensors():
                memory.add(each)
        memory.add(twin)

    def first(self, t: Tensor) -> Tensor:
        """The tensor from which the others were detached, as far as known."""
        known = self._of.get(id(blob_of(t)))
        return t if known is None else next(iter(known[1].tensors()), t)

    def is_written(self, t: Tensor) -> bool:
        """Whether the program has written into a traced tensor's memory, or into what it is a view of."""
        return self.of(View(*t._view_of).base if t._view_of is not None else t).symbol is not None

    def alone(self, t: Tensor) -> bool:
        return all(each is t for each in self.of(t).tensors())

    def made(self, t: Tensor) -> None:
        """The program has made a tensor of data, with which each launch begins, whatever is written into it later."""
        self._made[id(blob_of(t))] = blob_of(t)

    def is_made(self, t: Tensor) -> bool:
        return id(blob_of(t)) in self._made

    def stands_over(self, t: Tensor) -> bool:
        """Whether a tensor has memory from before the trace, even if it is a symbol now."""
        if t.value is None or id(t) not in self._before:
            return t.value is None
        before = self._before[id(t)][1]
        return id(before["blob"]) not in self._made and id(before.get("shard")) not in self._made

    def data(self, t: Tensor) -> Any:
        """The local memory of a tensor, or that which it had when the trace began."""
        if id(t) not in self._before:
            return t._meta
        before = self._before[id(t)][1]
        return (before["blob"] if before.get("shard") is None else before["shard"]).data

    def exchange(self, t: Tensor, other: Tensor) -> None:
        """Let a symbol's tensor share memory with another tensor, and no longer with its former aliases."""
        self.of(t).leave(t)
        t.blob, t.spec, t.shard, t.value = other.blob, other.spec, other.shard, other.value
        self.share(other, t)

    def write(self, t: Tensor, symbol: Value) -> None:
        """Let a tensor, and all that share its memory, stand for a symbol. Views read their bases."""
        if t._view_of is not None:
            self.become(t, symbol)
            return
        memory = self.of(t)
        memory.add(t)
        memory.symbol = symbol
        for each in memory.tensors():
            self.become(each, symbol)

    def follow(self, t: Tensor) -> None:
        """Let an eager tensor stand for the symbol that was written into its memory by an alias, if any."""
        if t.value is not None or t._view_of is not None:
            return
        if type(t.blob) is Alias:
            t.blob = _counted(t.blob)
        known = self._of.get(id(blob_of(t)))
        if known is not None and known[1].symbol is not None:
            known[1].add(t)
            self.become(t, known[1].symbol)

    def become(self, t: Tensor, symbol: Value) -> None:
        self.borrow(t)
        if t.value is None and t.spec is None:
            t.blob = self.of(t).absent
        t.value, t.spec = symbol, symbol.spec

    def borrow(self, t: Tensor) -> None:
        """Save the state of a tensor that has memory, to be restored when the trace ends."""
        if t.value is None:
            self._before.setdefault(id(t), (t, dict(t.__dict__)))

    def restore(self) -> None:
        for t, before in self._before.values():
            grad = t._grad  # restored by the builder
            t.__dict__.clear()
            t.__dict__.update(before)
            if grad is not t._grad:
                t._grad = grad
        self._before.clear()
        self._of.clear()


class _Place:
    """A tensor's addresses as an array interface, for numpy to compare; the memory isn't read."""

    def __init__(self, data: torch.Tensor) -> None:
        size = data.element_size()
        self.__array_interface__: dict[str, Any] = {
            "version": 3, "typestr": f"|V{size}", "shape": tuple(data.shape), "data": (data.data_ptr(), True),
            "strides": tuple(s * size for s in data.stride()),
        }  # fmt: skip

    def array(self) -> np.ndarray:
        return np.asarray(self)


def overlap(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Whether two tensors of one device share an element, or the search would take too long."""
    try:
        return np.shares_memory(_Place(a).array(), _Place(b).array(), max_work=MOST_WORK)  # type: ignore[arg-type]
    except np.exceptions.TooHardError:
        return True
