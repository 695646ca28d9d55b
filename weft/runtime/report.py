"""Describe what actors wait for, as text: which registers, and whose."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from weft.plan.ids import rank_of
from weft.plan.plan import Plan
from weft.runtime.actor import ACTING, DONE, DRAINING, Actor


def needed(actors: Iterable[Actor], launches: int) -> tuple[int, ...]:
    """The other ranks whose data or acknowledgements so many launches still need. Call it while no actor acts."""
    found: set[int] = set()
    own: set[int] = set()
    for actor in actors:
        own.add(actor.task.rank)
        if actor.acts < launches * actor.task.acts:
            for r, what in actor.waits_for():
                found.update([rank_of(r.producer)] if what == "data" else map(rank_of, r.consumers))
    return tuple(sorted(found - own))


def lines(actor: Actor, seconds: float, plan: Plan) -> Iterator[str]:
    """`seconds`: since it last acted."""
    names = {t.id: t.name for t in plan.tasks}
    head = f"  {actor.task.name} ({actor.acts} acts, {seconds:.1f} s)"
    if actor.state in (ACTING, DRAINING, DONE):
        moves = [c for c in actor.task.step.calls if c.op.startswith("box.")]
        yield f"{head} is {actor.state}" + (f": {moves[0].brief}" if actor.state == ACTING and len(moves) == 1 else "")
        return
    waits = actor.waits_for()
    for r, what in waits:
        if what == "data":
            yield f"{head} waits for {r.name} from {names.get(r.producer) or f'rank {rank_of(r.producer)}'}"
        else:
            readers = ", ".join(names.get(c) or f"rank {rank_of(c)}" for c in r.consumers)
            yield f"{head} waits for a free copy of {r.name}, read by {readers}"
    if not waits:
        yield f"{head} waits for {'a launch' if not actor.task.consumes else 'its thread'}"
