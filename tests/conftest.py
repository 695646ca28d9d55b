"""One thread per kernel, bytecode, the same examples in every run, and no CUDA tests where there is no CUDA."""

from __future__ import annotations

import os
import sys

import hypothesis
import pytest
import torch

from tests.worlds import nursery, world  # noqa: F401  (fixtures of many folders)

hypothesis.settings.register_profile("repeatable", deadline=None, derandomize=True, database=None)
hypothesis.settings.load_profile("repeatable")
torch.set_num_threads(1)

# Where an environment says to keep no bytecode, each of the many processes that tests start would compile all of Weft.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if torch.cuda.is_available():
        return
    for item in items:
        if item.get_closest_marker("cuda"):
            item.add_marker(pytest.mark.skip(reason="torch sees no CUDA device"))
