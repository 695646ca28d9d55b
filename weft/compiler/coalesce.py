"""Run an update of many small tensors over few long ones.

An op declared `element_by_element` is elementwise over its lists, so adjacent tensors may be passed as one. The
gradients are allocated adjacently (`rows.gradients`), the parameters and states are moved into the same order, once,
when the chains are bound (`gather`), and the call is written for the coalesced tensors (`coalesced`).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence

import torch

from weft.compiler.arena import aligned
from weft.compiler.calls.rows import MOST, lists_of
from weft.plan.calls import Call, Place

SOLE_USERS = 2  # references to an unshared storage: its tensor's, and the object's that counts them

_users: Callable[[int], int] | None = getattr(torch._C, "_storage_Use_Count", None)


def _key(place: Place) -> tuple[int, int] | None:
    """A value's memory (a register or the chain's arena) and offset in it; None if it isn't planned."""
    if place.kind == "register":
        return place.register + 1, place.offset
    return (0, place.offset) if place.kind == "arena" else None


def gather(call: Call, memory: Mapping[str, torch.Tensor], places: Mapping[str, Place]) -> None:
    """Move the variables of an update into adjacent memory, in the order of its other operands.

    The tensor objects stay the same. A tensor whose memory is shared (by a view, an array, a bound chain) isn't moved.
    """
    lists = [[v.name for v in values] for values in lists_of(call)]
    mine = [values for values in lists if all(v in memory for v in values)]
    others = [values for values in lists if not any(v in memory for v in values)]
    if not mine or _users is None or len(mine) + len(others) < len(lists):
        return
    where = [[_key(places[values[i]]) for values in others] for i in range(len(lists[0]))]
    order = [i for i in range(len(where)) if all(p is not None for p in where[i])]
    order.sort(key=where.__getitem__)
    rows = [[memory[values[i]] for values in mine] for i in order]
    rows = [row for row in rows if all(map(_movable, row))]
    if len(rows) < 2 or len({t for row in rows for t in map(id, row)}) < len(rows) * len(mine):
        return
    for column in zip(*rows, strict=True):
        _move(column)


def _movable(t: torch.Tensor) -> bool:
    storage = t.untyped_storage()
    assert _users is not None
    whole = t.is_contiguous() and 0 < t.nbytes <= MOST and storage.nbytes() == t.nbytes
    return whole and _users(storage._cdata) == SOLE_USERS


def _move(tensors: Sequence[torch.Tensor]) -> None:
    first = tensors[0]
    if any(t.dtype is not first.dtype or t.device != first.device for t in tensors):
        return
    sizes = [aligned(t.nbytes) for t in tensors]
    width = first.element_size()
    row = torch.zeros(sum(sizes) // width, dtype=first.dtype, device=first.device)
    starts = [at // width for at in itertools.accumulate(sizes[:-1], initial=0)]
    homes = [row.as_strided(t.shape, t.stride(), at) for t, at in zip(tensors, starts, strict=True)]
    torch._foreach_copy_(homes, list(tensors))
    for t, home in zip(tensors, homes, strict=True):
        t.set_(home)  # pyright: ignore[reportArgumentType]  # a tensor, too


def coalesced(lists: Sequence[Sequence[torch.Tensor]]) -> list[list[torch.Tensor]] | None:
    """The same elements in fewer, longer tensors; None if no two are adjacent in every list."""
    if len(lists[0]) < 2 or not all(t.is_contiguous() for tensors in lists for t in tensors):
        return None
    rows = sorted(zip(*lists, strict=True), key=lambda row: row[0].data_ptr())
    runs = [[rows[0]]]
    for row in rows[1:]:
        if all(map(_adjoin, runs[-1][-1], row)):
            runs[-1].append(row)
        else:
            runs.append([row])
    if len(runs) == len(rows):
        return None
    return [[_one([row[i] for row in run]) for run in runs] for i in range(len(lists))]


def _adjoin(a: torch.Tensor, b: torch.Tensor) -> bool:
    same = a.dtype is b.dtype and a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr()
    return same and a.data_ptr() + a.nbytes == b.data_ptr()


def _one(run: Sequence[torch.Tensor]) -> torch.Tensor:
    if len(run) == 1:
        return run[0]
    return run[0].as_strided((sum(math.prod(t.shape) for t in run),), (1,))
