"""Worlds of processes whose ranks have a CUDA device each: emulated ones where there are none."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import pytest
import torch

from tests.worlds import nursing


@pytest.fixture(scope="session")
def nursery() -> Iterator[subprocess.Popen[str]]:
    yield from nursing(*["emulated"] * (not torch.cuda.is_available()))
