"""The compiler's passes, in order. Each is one file with `run(job, options)`; adding one is that file and one line."""

from __future__ import annotations

import difflib
import operator
import time
from collections.abc import Callable
from typing import Any

from weft.compiler.options import Options
from weft.compiler.passes import (
    boxing,
    common_subexpressions,
    dead_code,
    early_updates,
    fuse_collectives,
    gather_parameters,
    layouts,
    memory_budget,
    recompute_activations,
    scatter_gradients,
    slices,
    sums_to_cat,
    zero_bubble,
)
from weft.job.job import Job, Pass
from weft.job.text import show

PASSES: tuple[tuple[str, Callable[[Job, Options], None]], ...] = (
    ("common_subexpressions", common_subexpressions.run),
    ("sums_to_cat", sums_to_cat.run),  # sums of parts become concatenations
    ("dead_code", dead_code.run),
    ("memory_budget", memory_budget.run),  # marks more nodes for recompute
    ("recompute", recompute_activations.run),  # activation checkpointing
    ("slices", slices.run),  # within a budget: nodes at the peak, part by part
    ("layouts", layouts.run),  # auto parallel
    ("boxing", boxing.run),  # movements become nodes, shared between readers
    ("scatter_gradients", scatter_gradients.run),  # ZeRO: where gradients are reduce-scattered
    ("gather_parameters", gather_parameters.run),  # ZeRO: where parameters are all-gathered
    ("fuse_collectives", fuse_collectives.run),
    ("early_updates", early_updates.run),  # update as soon as a gradient is there
    ("zero_bubble", zero_bubble.run),  # which part of backward is deferred
)


def apply(job: Job, options: Options, watch: Callable[[str, Job], Any] | None = None) -> None:
    """Run every pass; `watch` is called with the job after each. With `options.verify`, each must leave it well formed.

    The job records each pass's time and number of nodes.
    """
    if options.verify:
        job.verify()
    before = _parts(job)
    for name, run in PASSES:
        start = time.perf_counter()
        run(job, options)
        job.passes.append(Pass(name, time.perf_counter() - start, len(before) // 3, len(job.nodes)))
        after = _parts(job)
        if options.verify and not (len(before) == len(after) and all(map(operator.is_, before, after))):
            job.verify()
        before = after
        if watch is not None:
            watch(name, job)


def _parts(job: Job) -> list[Any]:
    """Everything that a pass may change of a job, by identity."""
    return [*job.nodes, *[n.args for n in job.nodes], *[n.outputs for n in job.nodes]]


def show_changes(job: Job) -> Callable[[str, Job], None]:
    """A watcher that prints which lines of the job each pass removed and added."""
    before = [show(job).splitlines()]

    def watch(name: str, job: Job) -> None:
        lines = show(job).splitlines()
        changes = list(difflib.unified_diff(before[0], lines, lineterm="", n=0))[2:]
        before[0] = lines
        print("\n".join([str(job.passes[-1]), *(line for line in changes if not line.startswith("@@"))]))

    return watch
