"""Place registers that are never needed at the same time in the same memory."""

from __future__ import annotations

from msgspec.structs import replace

from weft.compiler.arena import aligned
from weft.plan.lifetimes import Lifetimes
from weft.plan.plan import Plan, Register


def shared(plan: Plan) -> Plan:
    """The plan with such registers placed: the largest first, each where it fits."""
    inner = {t.id for t in plan.tasks if t.kind in ("compute", "collective")}
    found = [r for r in plan.registers if {r.producer, *r.consumers} <= inner]
    lifetimes = Lifetimes(plan) if len(found) > 1 else None
    if lifetimes is None:
        return plan
    placed: list[tuple[int, int, Register]] = []  # begin, end
    for r in sorted(filter(lifetimes.shareable, found), key=lambda r: (-r.bytes, r.id)):
        at = 0
        for begin, end, other in sorted(placed, key=lambda p: p[:2]):
            if begin < at + r.bytes and at < end and not lifetimes.apart(r, other):
                at = end
        placed.append((at, at + aligned(r.bytes), r))
    if sum(end - begin for begin, end, _ in placed) == max((end for _, end, _ in placed), default=0):
        return plan
    offsets = {r.id: begin for begin, _, r in placed}
    return replace(plan, registers=tuple(replace(r, offset=offsets.get(r.id)) for r in plan.registers))
