"""The peak memory of a training step: an exact count of the bytes that kernels allocated."""

from __future__ import annotations

import gc
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile, record_function

from bench.measure import Row, least
from bench.models import GPTS
from bench.steps import BUDGET, gpt_steps

LIMIT = 1.05


def memory(quick: bool) -> list[Row]:
    """The larger GPT step, eagerly and as a graph, against torch's eager one; each in a new process."""
    size = list(GPTS)[-1]
    theirs, eager, graph, tight = (_apart(kind, size) for kind in ("torch", "eager", "graph", "budget"))
    within = f"the same within {BUDGET / 1e6:g} MB, parameters too"
    free, bound = least([gpt_steps(size)[kind]() for kind in ("graph", "budget")], 2, 5 if quick else 60)
    return [
        Row(f"peak memory of an eager GPT step, {size}, AdamW", "torch", theirs, eager, LIMIT, unit="bytes"),
        Row(f"peak memory of a graph GPT step, {size}, AdamW", "torch, eager", theirs, graph, 0.8, unit="bytes"),
        Row(within, "torch, eager", theirs, tight, 0.5, unit="bytes"),
        Row(f"time of {within}", "no budget", free, bound, 1.35),
    ]


def _apart(kind: str, size: str) -> int:
    command = [sys.executable, "-m", "bench.memory", kind, size]
    return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()[-1])


def peak(step: Callable[[], Any], steps: int = 3) -> int:
    """The peak of bytes beyond those held before, over some steps from the first one on."""
    return peak_of(lambda: step, steps)


BEGIN = "steps begin"


def peak_of(make: Callable[[], Callable[[], Any]], steps: int = 3) -> int:
    """The peak of bytes over some steps, the first included. What `make` allocated counts if it is still held."""
    gc.collect()  # what is let go meanwhile would count against it
    gc.freeze()
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as recorded:
        step = make()
        gc.collect()
        with record_function(BEGIN):
            pass
        for _ in range(steps):
            step()
    assert recorded.profiler is not None and recorded.profiler.kineto_results is not None
    events = sorted(recorded.profiler.kineto_results.events(), key=lambda e: e.start_ns())
    held = most = 0
    for event in events:
        if event.name() == BEGIN:
            most = held
        elif event.name() == "[memory]":
            held += event.nbytes()  # pyright: ignore[reportAttributeAccessIssue]  (missing in torch's stubs)
            most = max(most, held)
    return most


if __name__ == "__main__":
    torch.set_num_threads(1)
    print(peak(gpt_steps(sys.argv[2])[sys.argv[1]]()))
