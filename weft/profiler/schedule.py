"""Profiler schedules: which steps of a program to record, and what to do with each record."""

from __future__ import annotations

import os
import socket
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch.profiler import ProfilerAction

from weft.core.errors import OptionError
from weft.core.rank import current

RECORDED = (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)


def schedule(
    *, wait: int, warmup: int, active: int, repeat: int = 0, skip_first: int = 0, skip_first_wait: int = 0
) -> Callable[[int], ProfilerAction]:
    """A schedule that skips some steps, then repeats cycles: wait, warm up, record; `repeat` times, or for ever if 0.

    `skip_first_wait` other than 0 skips the first cycle's wait.

    >>> plan = flow.profiler.schedule(wait=1, warmup=1, active=2)
    >>> [plan(step).name for step in range(5)]
    ['NONE', 'WARMUP', 'RECORD', 'RECORD_AND_SAVE', 'NONE']
    """
    counts = {"wait": wait, "warmup": warmup, "repeat": repeat, "skip_first": skip_first}
    if active < 1 or any(n < 0 for n in counts.values()):
        raise OptionError(f"schedule(): counts of steps, active at least 1; got active={active}, {counts}")
    with warnings.catch_warnings(action="ignore"):  # torch's profiler costs more where it doesn't warm up
        return torch.profiler.schedule(active=active, skip_first_wait=skip_first_wait, **counts)


def always(step: int) -> ProfilerAction:
    """The default schedule: record every step."""
    return ProfilerAction.RECORD


def tensorboard_trace_handler(
    dir_name: str | os.PathLike[str], worker_name: str | None = None, use_gzip: bool = False
) -> Callable[[Any], None]:
    """For `profile(on_trace_ready=...)`: write each record to a new file, where TensorBoard finds it."""
    name = f"{socket.gethostname()}_{os.getpid()}" if worker_name is None else worker_name

    def write(profile: Any) -> None:
        folder = Path(dir_name)
        folder.mkdir(parents=True, exist_ok=True)
        ranked = f"{name}.rank{current().index}" if current().world_size > 1 else name
        profile.export_chrome_trace(folder / f"{ranked}.{time.time_ns()}.pt.trace.json{'.gz' * use_gzip}")

    return write
