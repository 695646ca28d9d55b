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
    placed: list[tuple[int, int, int, Register]] = []  # begin, end, id: sorted
    for r in sorted(filter(lifetimes.shareable, found), key=lambda r: (-r.bytes, r.id)):
        at = 0
        for begin, end, _, other in placed:
            if begin < at + r.bytes and at < end and not lifetimes.apart(r, other):
                at = end
        insort(placed, (at, at + aligned(r.bytes), r.id, r))
    if sum(end - begin for begin, end, *_ in placed) == max((end for _, end, *_ in placed), default=0):
        return plan
    offsets = {id: begin for begin, _, id, _ in placed}
    return replace(plan, registers=tuple(replace(r, offset=offsets.get(r.id)) for r in plan.registers))
