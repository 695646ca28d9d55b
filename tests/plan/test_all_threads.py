"""What a plan with streams tells of memory, against what all threads allocate, and Gloo for itself."""

from __future__ import annotations

import ctypes
import gc
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import torch

import weft as flow
from tests.graphs import Trains
from weft import nn
from weft.launch import spawn
from weft.plan.usage import Usage, usage
from weft.transport.hosts import HOSTS

COUNTS = Path(__file__).with_name("every_allocation.c")
COMPILER = shutil.which("cc") or shutil.which("gcc")


def wide() -> tuple[nn.Module, Any]:
    return nn.Sequential(*[nn.Linear(512, 512, bias=False) for _ in range(6)]), flow.ones(64, 512)


def images() -> tuple[nn.Module, Any]:
    first, last = nn.Conv2d(3, 32, 3, padding=1), nn.Linear(32 * 64, 512)
    layers = [first, nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), last]
    return nn.Sequential(*layers), flow.ones(32, 3, 16, 16)


MODELS = {"wide": wide, "images": images}


def took(name: str, stage: int, micro: int) -> tuple[int, Usage, int]:
    """The bytes of the peak over some steps; what was told before the first; and how many tasks are on streams."""
    counts, place = ctypes.CDLL(None), flow.placement("cpu", ranks=[0, 1])
    counts.allocated.restype = counts.peak.restype = ctypes.c_long
    gc.collect()
    before = counts.allocated()
    model, x = MODELS[name]()
    model = model.to_global(placement=place, sbp=flow.sbp.broadcast)
    x = x.to_global(placement=place, sbp=flow.sbp.split(0))
    graph = Trains(model, flow.optim.SGD(model.parameters(), lr=0.01), steps=micro)
    graph.config.enable_zero(bool(stage), stage=stage or 1, shard_min_size=1)
    graph.compile(x)
    told = usage(graph.plan)
    gc.collect()
    counts.begin()
    for _ in range(3):
        graph(x).numpy()
    peak = counts.peak() - before - x.to_local().nbytes
    graph.close()
    return peak, told, sum(t.kind == "collective" for t in graph.plan.tasks)


def holds_what_streams_tell() -> None:
    torch.set_num_threads(1)
    for case in (("wide", 0, 1), ("wide", 1, 1), ("wide", 3, 1), ("wide", 0, 4), ("images", 0, 1), ("images", 2, 1)):
        took(*case)  # the first time kernels and Python's modules take memory that stays
        measured, used, streamed = took(*case)
        told = used.total + used.variables  # if what may be at once is at once
        alone = told - used.allocated + max(p.allocated for p in used.parts)
        assert streamed and 0.97 * alone < measured < 1.03 * told, (case, measured, told, str(used))


@pytest.mark.skipif(COMPILER is None, reason="needs a C compiler")
def test_what_streams_hold_is_told(tmp_path: Path) -> None:
    library = tmp_path / "counts.so"
    subprocess.run([str(COMPILER), "-O2", "-shared", "-fPIC", "-o", library, COUNTS], check=True)
    environment = {HOSTS: "2", "LD_PRELOAD": str(library), "OMP_NUM_THREADS": "1"}
    spawn(2, f"{__file__}:holds_what_streams_tell", transport="c10d", env=environment)
