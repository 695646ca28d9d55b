"""Place registers that are never needed at the same time in the same memory."""

from __future__ import annotations

import itertools
from bisect import insort
from collections import Counter

from msgspec.structs import replace

from weft.compiler.arena import aligned
from weft.plan.lifetimes import Lifetimes, clashes, together
from weft.plan.plan import Plan


def shared(plan: Plan) -> Plan:
    """The plan with such registers placed: the largest first, each where it fits."""
    inner = {t.id for t in plan.tasks if t.kind in ("compute", "collective")}
    found = [r for r in plan.registers if {r.producer, *r.consumers} <= inner]
    used = Counter[str]()
    for r in found:
        used[r.device] += r.bytes
    found = [r for r in found if r.device == max(used, key=used.__getitem__)]  # one piece of memory is on one device
    if len(found) < 2:
        return plan
    lifetimes = Lifetimes(plan)
    free = {r.id: r for r in found if lifetimes.shareable(r)}
    under = {b.id: a for b in free.values() if (a := free.get(lifetimes.overwritten(b))) and lifetimes.in_place(a, b)}
    lower = {a.id for a in under.values()}
    under = {id: a for id, a in under.items() if id not in lower}  # of several in a row, the last two
    lower = {a.id for a in under.values()}
    blocks = [(-r.bytes, r.id, n) for r in free.values() if r.id not in lower for n in range(r.copies)]
    held = {(id, n): lifetimes.held(free[id], n, under.get(id)) for _, id, n in blocks}
    if not held:
        return plan
    every, keys = together([*held.values()]), [key for key, h in held.items() for _ in h.begins]
    placed: list[tuple[int, int, int, int]] = []  # begin, end, register, copy: sorted
    for size, id, n in sorted(blocks):
        at, clashing = 0, set(itertools.compress(keys, clashes(held[id, n], every)))
        for begin, end, other, copy in placed:
            if begin < at - size and at < end and (other, copy) in clashing:
                at = end
        insort(placed, (at, at + aligned(-size), id, n))
    if not under and sum(end - begin for begin, end, *_ in placed) == max((end for _, end, *_ in placed), default=0):
        return plan
    offsets = {(id, n): begin for begin, _, id, n in placed}
    offsets |= {(a.id, n): offsets[id, n] for id, a in under.items() for n in range(a.copies)}
    return replace(plan, registers=tuple(
        replace(r, offsets=tuple(offsets[r.id, n] for n in range(r.copies))) if r.id in free else r
        for r in plan.registers
    ))  # fmt: skip
