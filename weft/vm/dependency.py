"""The dependencies between instructions: a pure data structure over their operands. No threads, no I/O, no locks.

A blob's access record holds its pending writers and the pending readers since. From it follow the edges: a reader waits
for the writers (read after write), a writer for the writers and the readers (write after write, write after read).
Threads that share a `Dependencies` hold one lock around each call.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Collection, Iterable, Sequence

import torch

from weft.tensor.blob import Alias, Blob
from weft.vm.instruction import Instruction


class Access:
    """An access record: the pending writers and readers of one piece of memory.

    It has more than one writer only if these keep their own order (one lane).
    """

    __slots__ = ("writers", "readers", "failed", "firsts", "__weakref__")

    def __init__(self, writers: tuple[Instruction, ...] = (), readers: tuple[Instruction, ...] = ()) -> None:
        self.writers, self.readers = writers, readers
        self.failed: Instruction | None = None  # the failure that left the memory without a value
        self.firsts: list[weakref.ref[Blob]] | None = None  # blobs of shared memory, but for its aliases

    def blobs(self) -> list[Blob]:
        """All blobs of shared memory."""
        firsts = [blob for ref in self.firsts or () if (blob := ref()) is not None]
        return [*firsts, *weakref.getweakrefs(self)]


def shared(base: Blob) -> Access:
    """The access record of memory that gets an alias."""
    access = base.access
    if access is None:
        access = base.access = Access()
    if access.firsts is None:
        access.firsts = [weakref.ref(base)]
    return access


def alias(base: Blob, data: torch.Tensor | None) -> Alias:
    """A blob that shares memory with `base`, such as a view: a write to one of them is a write to all."""
    access = shared(base)
    view = Alias(access)
    view.data, view.access = data, access
    view.now = None if base.now is None else data
    return view


def join(blobs: Collection[Blob]) -> None:
    """Let blobs share one record, so that one of them represents all. Nothing may be pending on them."""
    joined = Access()
    found: dict[Blob, None] = {}
    for blob in blobs:
        assert not pending(blob), "join: something is pending on a blob"
        found.update(dict.fromkeys(shared(blob).blobs()))
    joined.firsts = [weakref.ref(blob) for blob in found]
    for blob in found:
        blob.access = joined


def pending(blob: Blob) -> bool:
    """Whether a read or write of its memory is pending."""
    access = blob.access
    return access is not None and bool(access.writers or access.readers)


def writable(blob: Blob) -> bool:
    """Whether the memory may be written now: nothing pending writes or reads it. `now` implies only the former."""
    access = blob.access
    return access is None or not (access.writers or access.readers or access.failed is not None)


def untouched(inputs: Iterable[Blob], reads: Iterable[Blob], writes: Iterable[Blob]) -> bool:
    """Whether work that reads and writes these may run now, without a record, as an eager op does."""
    for blob in (*inputs, *reads):
        if blob.now is None:
            return False
    return all(map(writable, writes))


def failure(instruction: Instruction) -> Instruction | None:
    """The failed instruction that left this one's operands without values; operands that it replaces don't count."""
    for blob in itertools.chain(instruction.const, instruction.mut):
        access = blob.access
        if access is not None and access.failed is not None:
            return access.failed
    return None


def heal(blob: Blob) -> None:
    """Clear the failure of a memory that is about to get a new value."""
    access = blob.access
    if access is not None:
        access.failed = None
        _settle(blob, access)


class Dependencies:
    """The pending instructions of one rank."""

    def __init__(self) -> None:
        self.pending: dict[Instruction, None] = {}  # in the order of the program

    def conflicts(self, instruction: Instruction) -> set[Instruction]:
        """The pending instructions that must be done before this one may run."""
        lane = instruction.lane
        found: set[Instruction] = set()
        for blob in instruction.const:
            access = blob.access
            if access is not None and access.writers:
                found.update(w for w in access.writers if lane is None or w.lane != lane)
        for blob in _outputs(instruction):
            access = blob.access
            if access is not None and (access.writers or access.readers):
                found.update(i for i in access.writers + access.readers if lane is None or i.lane != lane)
        return found

    def register(self, instruction: Instruction) -> None:
        """Record its accesses, so that later instructions wait for it."""
        self.pending[instruction] = None
        for blob in instruction.const:
            access = blob.access
            if access is None:
                blob.access = Access((), (instruction,))
            elif instruction not in access.readers:
                access.readers += (instruction,)
        for blob in _outputs(instruction):
            if blob.access is None:
                blob.access, blob.now = Access((instruction,)), None
            else:
                _write(blob, blob.access, instruction)

    def submit(self, instruction: Instruction) -> set[Instruction]:
        """Register it, and return what it must wait for."""
        unmet = self.conflicts(instruction)
        self.register(instruction)
        if unmet:
            for other in unmet:
                other.dependants += (instruction,)
            instruction.unmet = unmet
        return unmet

    def done(self, instruction: Instruction, failed: Instruction | None = None) -> Sequence[Instruction]:
        """Release it, after it has run, or failed because of `failed`; returns the instructions that are ready now. To
        do it twice does no harm: the caller removes it from `pending`."""
        for blob in instruction.const:
            access = blob.access
            if access is not None:
                readers = access.readers
                alone = len(readers) == 1 and readers[0] is instruction
                access.readers = () if alone else _without(readers, instruction)
                if not access.readers and access.firsts is None and not access.writers and access.failed is None:
                    blob.access = None
        for blob in instruction.mut:
            _written(blob, instruction, failed, heals=False)
        for blob in instruction.mut2:
            _written(blob, instruction, failed, heals=True)
        if not instruction.dependants:
            return ()
        ready: list[Instruction] = []
        for other in instruction.dependants:
            assert isinstance(other.unmet, set)
            other.unmet.discard(instruction)
            if not other.unmet:
                ready.append(other)
        return ready


def _outputs(instruction: Instruction) -> Sequence[Blob]:
    return (*instruction.mut, *instruction.mut2) if instruction.mut2 else instruction.mut


def _write(blob: Blob, access: Access, instruction: Instruction) -> None:
    lane = instruction.lane
    # It waits for all others, so waiting for it implies waiting for them; except for those of its own lane.
    if lane is None:
        access.writers, access.readers = (instruction,), ()
    else:
        access.writers = (*(w for w in access.writers if w.lane == lane and w is not instruction), instruction)
        access.readers = tuple(r for r in access.readers if r.lane == lane)
    if access.firsts is None:
        blob.now = None
    else:
        _each(access, ready=False)


def _without(held: tuple[Instruction, ...], instruction: Instruction) -> tuple[Instruction, ...]:
    return tuple(i for i in held if i is not instruction)


def _each(access: Access, ready: bool) -> None:
    for blob in access.blobs():
        blob.now = blob.data if ready else None


def _written(blob: Blob, instruction: Instruction, failed: Instruction | None, heals: bool) -> None:
    access = blob.access
    if access is None:
        return
    writers = access.writers
    access.writers = () if len(writers) == 1 and writers[0] is instruction else _without(writers, instruction)
    if failed is not None:
        access.failed = failed
    elif heals:
        access.failed = None
    _settle(blob, access)


def _settle(blob: Blob, access: Access) -> None:
    """After a writer: the value is ready once nothing pending writes it. An empty record is dropped."""
    if access.writers or access.failed is not None:
        return
    if access.firsts is not None:
        _each(access, ready=True)
        return
    blob.now = blob.data
    if not access.readers:
        blob.access = None
