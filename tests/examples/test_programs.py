"""The same program in torch and in Weft, from the same seed: the same losses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.distributions
import torch.nn.utils.parametrizations
import torch.nn.utils.prune
import torch.optim.swa_utils
import torch.utils.checkpoint

import weft as flow
from tests.examples.library_programs import FURTHER
from tests.examples.programs import PROGRAMS, images


@pytest.mark.parametrize("program", [*PROGRAMS, *FURTHER], ids=lambda p: p.__name__)
def test_a_program_does_what_it_does_in_torch(program: Callable[[Any], list[float]]) -> None:
    torch.manual_seed(7)
    expected = program(torch)
    flow.manual_seed(7)
    rough = 2e-3 if program is images else 1e-4  # a unit at its kink, on some CPUs: one gradient more, or less
    assert program(flow) == pytest.approx(expected, rel=rough, abs=1e-5)
