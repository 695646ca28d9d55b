"""Updates of many small tensors, run over few long ones.

An op whose lists go `abreast` treats element after element, so neighbours in memory may as well be one tensor. Hence
its gradients are made side by side (`rows.beside`), the parameters and states are moved to lie in the same order, once,
when the chains are bound (`gather`), and the op's call is written for what then is one piece (`pieces`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import torch

from weft.compiler.arena import aligned
from weft.compiler.calls.rows import MOST
from weft.ops import OPS
from weft.plan.calls import Call, Place, Ref

ALONE = 2  # who knows of a storage that nobody shares: its tensor, and the object that asks

_users: Callable[[int], int] | None = getattr(torch._C, "_storage_Use_Count", None)


def lists_of(call: Call) -> list[tuple[Ref, ...]]:
    """The lists that a call goes through element by element, those without elements left out."""
    op = OPS.get(call.op)
    if op is None or not op.abreast:
        return []
    return [a for i, a in enumerate(call.args) if op.params[i].kind == "tensors" and a]


def _key(place: Place) -> tuple[int, int] | None:
    """Which memory a value lies in, a register's or the chain's own, and where in it; None where no plan says."""
    if place.kind == "register":
        return place.register + 1, place.offset
    return (0, place.offset) if place.kind == "arena" else None


def gather(call: Call, memory: Mapping[str, torch.Tensor], places: Mapping[str, Place]) -> None:
    """Move the variables that an update goes through into rows, in the order in which the other operands lie.

    The tensors stay the objects that they are. One whose memory somebody else looks at (a view, an array, a chain that
    is bound already) is left where it is.
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
    return whole and _users(storage._cdata) == ALONE


def _move(tensors: Sequence[torch.Tensor]) -> None:
    first = tensors[0]
    if any(t.dtype is not first.dtype or t.device != first.device for t in tensors):
        return
    sizes = [aligned(t.nbytes) for t in tensors]
    row = torch.zeros(sum(sizes) // first.element_size(), dtype=first.dtype, device=first.device)
    at = 0
    for t, size in zip(tensors, sizes, strict=True):
        home = row.as_strided(t.shape, t.stride(), at // first.element_size())
        home.copy_(t)
        t.set_(home.untyped_storage(), home.storage_offset(), home.shape, home.stride())
        at += size


def pieces(lists: Sequence[Sequence[torch.Tensor]]) -> list[list[torch.Tensor]] | None:
    """The same elements in fewer, longer tensors, or None where no two lie side by side in every list."""
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
