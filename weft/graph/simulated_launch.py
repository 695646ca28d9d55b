"""Simulate a launch of a compiled graph on all ranks, with a virtual clock."""

from __future__ import annotations

from collections.abc import Mapping

from weft.compiler.fold import fold
from weft.compiler.lower import Lowered, lower
from weft.simulator import schedule
from weft.simulator.simulate import simulate


def imagine(lowered: Lowered, durations: Mapping[str, float] | None = None) -> schedule.Schedule:
    """The schedule of all ranks in a launch. `durations` are times of acts by their tasks' names; by default forward,
    gradients of inputs and gradients of weights take one unit each. Ranks with the same chains count as one."""
    job, world = lowered.job, lowered.plan.world_size
    places = list(dict.fromkeys(v.spec.placement for n in job.nodes for v in n.outputs if v.spec is not None))
    alike: dict[tuple[bool, ...], list[int]] = {}
    for rank in range(world):
        alike.setdefault(tuple(rank in p for p in places), []).append(rank)
    parts = [lower(job, ranks[0], world, lowered.options) for ranks in alike.values()]
    plans = fold([part.plan for part in parts])
    roles = lowered.roles
    took = durations if durations is not None else {name: float(len(kinds)) for name, kinds in roles.items()}
    lanes = {t.name: plan.rank for plan in plans for t in plan.tasks if t.kind == "compute"}
    names: dict[int, str] = {plan.rank: "" for plan in plans}
    for part, ranks in zip(parts, alike.values(), strict=True):
        lane = next((lanes[t.name] for t in part.plan.tasks if t.name in lanes), None)
        if lane is not None:
            names[lane] += ("," if names[lane] else "rank ") + ",".join(map(str, ranks))
    timeline = simulate(plans, lambda t, act: took.get(t.name, 0.0))
    return schedule.of(timeline, {n: name for n, name in names.items() if name}, roles, job.name)
