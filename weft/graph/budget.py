"""A graph's memory budget: compile again with a smaller one until the plans of all ranks fit."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec
import torch
from msgspec import json

from weft.compiler import faster, passes
from weft.compiler.lower import Lowered, lower
from weft.compiler.options import Options
from weft.compiler.passes import memory_budget
from weft.core.errors import CompileError
from weft.core.rank import current
from weft.graph import draws
from weft.job.job import Job
from weft.plan.usage import show, usage
from weft.transport import transport_of

STEPS: Final = 16  # tries with smaller and smaller budgets


def compiled(job: Job, options: Options, watch: Callable[[str, Job], Any] | None) -> Lowered:
    """The job after the passes, lowered to this rank's plan."""
    budget = memory_budget.budget_of(options)
    if not budget:
        return _lowered(job, options, watch)
    least = variables = 0
    for asked in _asked(job, budget):
        found = _lowered(_copy(job), msgspec.structs.replace(options, memory_budget=asked), watch)
        held = _most(found)
        if held <= budget:
            return found
        least, variables = min(least or held, held), usage(found.plan).variables
    raise CompileError(
        f"graph {job.name}: a budget of {show(budget)} can't be met: with all that may be computed "
        f"again, a rank still holds {show(least)}, {show(variables)} of it for parameters and states. The least that "
        f"set_memory_budget() can be given here is {least}"
    )


def _asked(job: Job, budget: int) -> Iterator[int]:
    """The budgets to try: none, since an ample one changes nothing; the budget; a little less; then a fixed sequence,
    so that the least doesn't depend on the budget asked for."""
    yield 0
    whole = memory_budget.estimate(job)
    yield from (budget, budget * 97 // 100, budget * 94 // 100)
    for n in range(STEPS - 1, -1, -1):
        if whole * n // STEPS < budget:
            yield max(whole * n // STEPS, 1)


def _lowered(job: Job, options: Options, watch: Callable[[str, Job], Any] | None) -> Lowered:
    passes.apply(job, options, watch)
    rank = current()
    draws.check(job, rank.world_size)
    found = lower(job, rank.index, rank.world_size, options)
    if rank.world_size > 1 and faster.votes_on(options) and faster.outvoted(_all_gathered(faster.votes())):
        return lower(job, rank.index, rank.world_size, options)
    return found


def _all_gathered(mine: dict[str, bool]) -> list[dict[str, bool]]:
    """Every rank's votes, on every rank."""
    group, text = transport_of().group(tuple(range(current().world_size))), json.encode(mine)
    sizes = [torch.zeros(1, dtype=torch.int64) for _ in range(current().world_size)]
    group.all_gather(sizes, torch.tensor([len(text)]))
    said = [torch.empty(int(n), dtype=torch.uint8) for n in sizes]
    group.all_gather(said, torch.frombuffer(bytearray(text), dtype=torch.uint8))
    return [json.decode(t.numpy().tobytes(), type=dict[str, bool]) for t in said]


def _copy(job: Job) -> Job:
    """A copy of the job whose nodes passes may change; the values are shared."""
    twin, nodes = copy.copy(job), []
    for n in job.nodes:
        nodes.append(node := copy.copy(n))
        node.extra = dict(n.extra)
    twin.reasons = list(job.reasons)
    twin.rebuild(nodes)
    return twin


def _most(lowered: Lowered) -> int:
    """The maximum over all ranks, so that all of them decide alike."""
    used, rank = usage(lowered.plan), current()
    held = torch.tensor([used.total + used.variables])
    if rank.world_size > 1:
        transport_of().group(tuple(range(rank.world_size))).all_reduce(held, "max")
    return int(held.item())
