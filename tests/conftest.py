"""One thread per kernel, one core per worker, bytecode, the same examples in every run, no CUDA tests without CUDA."""

from __future__ import annotations

import gc
import os
import re
import sys
from pathlib import Path

import hypothesis
import pytest
import torch

from tests.worlds import alone, nursery, world  # noqa: F401  (fixtures of many folders)
from weft.checkpoint import place

hypothesis.settings.register_profile("repeatable", deadline=None, derandomize=True, database=None)
hypothesis.settings.load_profile("repeatable")
torch.set_num_threads(1)
if worker := os.environ.get("PYTEST_XDIST_WORKER"):  # ranks that are threads take turns in half the time on one core
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[int(worker.removeprefix("gw")) % len(cores)]})

# Where an environment says to keep no bytecode, each of the many processes that tests start would compile all of Weft.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


PINNED = re.findall(r"^torch==(\S+)", (Path(__file__).parents[1] / "constraints-dev.txt").read_text(), re.MULTILINE)[0]
LACKING = {  # by marker: whether it is so here, and why its tests are skipped then
    "cuda": (not torch.cuda.is_available(), "torch sees no CUDA device"),
    "hardware": (torch.cuda.is_available() and "emulated" in torch.cuda.get_device_name(), "the device is emulated"),
    "pinned": (torch.__version__.partition("+")[0] != PINNED, f"its tables are written from torch {PINNED}"),
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        for marker, (lacking, why) in LACKING.items():
            if lacking and item.get_closest_marker(marker):
                item.add_marker(pytest.mark.skip(reason=why))


def pytest_collection_finish() -> None:
    """Collections of tests' garbage don't walk torch and all the tests each time."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def _files(monkeypatch: pytest.MonkeyPatch) -> None:
    """Checkpoints are files, though some test has imported weft.oneflow."""
    monkeypatch.setattr(place.HABIT, "folders", False)
