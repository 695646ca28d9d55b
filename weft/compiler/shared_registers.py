"""Place registers that are never needed at the same time in the same memory."""

from __future__ import annotations

from bisect import insort
from collections import Counter

from msgspec.structs import replace

from weft.compiler.arena import aligned
from weft.plan.lifetimes import Lifetimes
from weft.plan.plan import Plan, Register


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
    under = {
        b.id: a for b in free.values() if (a := free.get(lifetimes.over.get(b.id, -1))) and lifetimes.in_place(a, b)
    }
    lower = {a.id for a in under.values()}
    placed: list[tuple[int, int, int, list[Register]]] = []  # begin, end, id: sorted
    for r in sorted((r for r in free.values() if r.id not in lower), key=lambda r: (-r.bytes, r.id)):
        at, mine = 0, [r, under[r.id]] if r.id in under else [r]
        for begin, end, _, others in placed:
            if begin < at + r.bytes and at < end and not all(lifetimes.apart(a, b) for a in mine for b in others):
                at = end
        insort(placed, (at, at + aligned(r.bytes), r.id, mine))
    if not under and sum(end - begin for begin, end, *_ in placed) == max((end for _, end, *_ in placed), default=0):
        return plan
    offsets = {r.id: begin for begin, *_, mine in placed for r in mine}
    return replace(plan, registers=tuple(replace(r, offset=offsets.get(r.id)) for r in plan.registers))
