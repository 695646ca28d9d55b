"""Lowering of chains anew, when variables come to lie otherwise in memory than the plan says."""

from __future__ import annotations

from dataclasses import replace

from msgspec import structs

from weft.compiler.lower import Lowered, strides_of
from weft.compiler.program import lower_chain
from weft.plan.call import Step
from weft.plan.verify import verify


def lower_again(lowered: Lowered) -> list[int]:
    """Lower anew the chains that read variables which lie otherwise by now; the ids of their tasks."""
    strides = strides_of(lowered.job)
    steps: dict[int, Step] = {}
    for id, chain in lowered.chains.items():
        now = {v: strides.get(v, was) for v, was in chain.variables.items()}
        if now != chain.variables:
            lowered.chains[id] = replace(chain, variables=now)
            step = lower_chain(lowered.chains[id])
            if step != lowered.plan.task(id).step:
                steps[id] = step
    if steps:
        tasks = tuple(structs.replace(t, step=steps.get(t.id, t.step)) for t in lowered.plan.tasks)
        lowered.plan = structs.replace(lowered.plan, tasks=tasks)
        verify(lowered.plan)
    return list(steps)
