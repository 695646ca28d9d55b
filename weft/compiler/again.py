"""Lower chains again when the strides of their variables have changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from msgspec import structs

from weft.compiler.calls.program import lower_chain
from weft.compiler.layout import Strides, strides_of
from weft.compiler.lower import Lowered
from weft.core.errors import CompileError
from weft.plan.calls import Step
from weft.plan.verify import verify


def lower_again(lowered: Lowered) -> list[int]:
    """Lower the chains again that read variables whose strides have changed; return the ids of their tasks."""
    strides = strides_of(lowered.job)
    if not lowered.chains:
        _refuse(lowered, {v.name: s for v, s in strides.items()})
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


def _refuse(lowered: Lowered, strides: Mapping[str, Strides | None]) -> None:
    """Raise: a loaded plan has no job to lower again."""
    for r in (r for t in lowered.plan.tasks for c in t.step.calls if c.op == "variable" for r in c.results):
        if strides[r.name] != r.strides:
            raise CompileError(
                f"graph {lowered.plan.name} was loaded, and its plan reads {r.name} by strides "
                f"{r.strides or 'of its shape'}: memory with {strides[r.name] or 'such'} can't take its place. "
                "Write into it instead (copy_)"
            )
