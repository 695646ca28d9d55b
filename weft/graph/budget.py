"""A graph's memory budget: compile again, a few times at most, until the plans of all ranks fit."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any, Final, cast

import torch
from msgspec import json
from msgspec.structs import replace

from weft.compiler import faster, inductor, passes
from weft.compiler.lower import Lowered, lower
from weft.compiler.options import Options
from weft.compiler.passes import memory_budget, slices
from weft.core.amount import amount
from weft.core.errors import CompileError
from weft.core.rank import current
from weft.graph import draws
from weft.job.job import Job
from weft.plan.usage import usage
from weft.transport import transport_of
from weft.transport.check import decoded

LOWER: Final = 3  # smaller budgets to try, to name the least
CORRECTIONS: Final = 3  # tries with recompute alone
LESS: Final = (0, 1 / 32, 1 / 16)  # tries with slices: by how much of a step's memory less than the budget is asked
# With slices, of what would be held beside parameters: what may be reached, and where more slices take more.
SHARES: Final = (0.16, 0.14, 0.5)


def compiled(job: Job, options: Options, watch: Callable[[str, Job], Any] | None) -> Lowered:
    """The job after the passes, lowered to this rank's plan."""
    budget = memory_budget.budget_of(options)
    if not budget:
        return _lowered(job, options, watch)
    search = _Search(job, options, watch)
    found = search.fits(budget)
    if found is not None:
        return found
    least, variables = search.least(), search.variables
    raise CompileError(
        f"graph {job.name}: a budget of {amount(budget)} can't be met: with values computed "
        f"again{' and in slices' * slices.applies(job)}, a rank still holds {amount(least)}, {amount(variables)} of it "
        f"for parameters and states. set_memory_budget({least}) can be met here; what a little less gives, only a try "
        "shows"
    )


class _Search:
    """Tries of one job, and what each held."""

    def __init__(self, job: Job, options: Options, watch: Callable[[str, Job], Any] | None) -> None:
        self.job, self.options, self.watch = job, options, watch
        self.known: dict[Options, tuple[int, int]] = {}  # what was estimated, and held
        self.variables = 0

    def fits(self, budget: int) -> Lowered | None:
        """The first try that is within a budget."""
        history: list[tuple[int, int]] = []
        for tried in _tries(self.job, self.options, budget, history):
            known = self.known.get(tried)
            if known is None or known[1] <= budget:
                found = _lowered(_copy(self.job), tried, self.watch)
                known = self.known[tried] = found.job.held, _most(found)
                if known[1] <= budget:
                    return found
                self.variables = usage(found.plan).variables
            history.append(known)
        return None

    def least(self) -> int:
        """The least budget that is known to be met: what a try holds that is made for any budget, or less."""
        always = (replace(self.options, memory_budget=0), *_fixed(self.job, self.options))
        least = min(self.known[tried][1] for tried in always)
        for _ in range(LOWER):
            lowest = min(held for _, held in self.known.values())
            goal = lowest if lowest < least else least - least // 32
            if self.fits(goal) is None:
                break
            least = goal
        return least


def _tries(job: Job, options: Options, budget: int, history: list[tuple[int, int]]) -> Iterator[Options]:
    """What to try, given what each try was estimated to hold, and holds: no budget, since an ample one changes nothing;
    the budget; while the estimate is too low, less by that; and if recompute alone doesn't do, slices."""
    yield replace(options, memory_budget=0)
    asked = budget
    for _ in range(CORRECTIONS):
        yield replace(options, memory_budget=asked)
        estimated, held = history[-1]
        if estimated > asked:  # this is all that recompute can do
            break
        asked = max(estimated - (held - budget), 1)
    if slices.applies(job):
        kept, lowest = memory_budget.Model(job).kept, min(_shares(job))
        for asked in (budget - int((budget - kept) * part) for part in LESS):
            if asked > lowest:
                yield replace(options, memory_budget=1, slices_budget=asked)
                if history[-1][0] > asked:  # this is all that slices can do
                    break
    yield from _fixed(job, options)


def _fixed(job: Job, options: Options) -> list[Options]:
    """The last tries. They don't depend on the budget, so that what they hold can be asked for."""
    shares = _shares(job) if slices.applies(job) else []
    return [replace(options, memory_budget=1, slices_budget=asked) for asked in (*shares, 0)]


def _shares(job: Job) -> list[int]:
    """What slices are always tried to reach."""
    whole, kept = memory_budget.estimate(job), memory_budget.Model(job).kept
    return [kept + int((whole - kept) * share) for share in SHARES]


def _lowered(job: Job, options: Options, watch: Callable[[str, Job], Any] | None) -> Lowered:
    passes.apply(job, options, watch)
    rank = current()
    draws.check(job, rank.world_size, options)
    found = lower(job, rank.index, rank.world_size, options)
    while rank.world_size > 1 and inductor.asked(options) and faster.outvoted(_all_gathered(faster.votes())):
        found = lower(job, rank.index, rank.world_size, options)
    return found


def _all_gathered(mine: dict[str, bool]) -> list[dict[str, bool]]:
    """Every rank's votes, on every rank."""
    said = transport_of().everyone().all_gather_bytes(json.encode(mine))
    return [cast(Any, decoded(text, dict[str, bool], "what a rank votes for")) for text in said]


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
        transport_of().everyone().all_reduce(held, "max")
    return int(held.item())
