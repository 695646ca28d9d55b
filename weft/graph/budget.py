"""A graph's memory budget: compile again with a smaller one until the plans of all ranks fit."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any, Final, cast

import torch
from msgspec import json
from msgspec.structs import replace

from weft.compiler import faster, passes
from weft.compiler.lower import Lowered, lower
from weft.compiler.options import Options
from weft.compiler.passes import memory_budget, slices
from weft.core.errors import CompileError
from weft.core.rank import current
from weft.graph import draws
from weft.job.job import Job
from weft.plan.usage import show, usage
from weft.transport import transport_of
from weft.transport.check import decoded

STEPS: Final = 16  # tries with smaller and smaller budgets
SHARES: Final = (0.16, 0.15, 0.14)  # the same with slices: shares of what would be held beside parameters


def compiled(job: Job, options: Options, watch: Callable[[str, Job], Any] | None) -> Lowered:
    """The job after the passes, lowered to this rank's plan."""
    budget = memory_budget.budget_of(options)
    if not budget:
        return _lowered(job, options, watch)
    least = variables = 0
    for tried in _tries(job, options, budget):
        found = _lowered(_copy(job), tried, watch)
        held = _most(found)
        if held <= budget:
            return found
        least, variables = min(least or held, held), usage(found.plan).variables
    raise CompileError(
        f"graph {job.name}: a budget of {show(budget)} can't be met: with all that may be computed "
        f"again{' and in slices' * slices.applies(job)}, a rank still holds {show(least)}, {show(variables)} of it for "
        f"parameters and states. The least that set_memory_budget() can be given here is {least}"
    )


def _tries(job: Job, options: Options, budget: int) -> Iterator[Options]:
    """What to try: no budget, since an ample one changes nothing; the budget; a little less; then a fixed sequence, so
    that the least doesn't depend on the budget asked for. The same with slices, if recompute alone doesn't do."""
    whole, kept = memory_budget.estimate(job), memory_budget.Model(job).kept
    fixed = (max(whole * n // STEPS, 1) for n in range(STEPS - 1, -1, -1))
    for asked in (0, budget, budget * 97 // 100, budget * 94 // 100, *(n for n in fixed if n < budget)):
        yield replace(options, memory_budget=asked)
    if slices.applies(job):
        fixed = (kept + int((whole - kept) * share) for share in SHARES)
        for asked in (budget, (kept + 15 * budget) // 16, *fixed):
            yield replace(options, memory_budget=1, slices_budget=asked)


def _lowered(job: Job, options: Options, watch: Callable[[str, Job], Any] | None) -> Lowered:
    passes.apply(job, options, watch)
    rank = current()
    draws.check(job, rank.world_size, options)
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
    return [cast(Any, decoded(t.numpy().tobytes(), dict[str, bool], "what a rank votes for")) for t in said]


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
