"""The same program in torch and in Weft, from the same seed: the same losses."""

from __future__ import annotations

from collections.abc import Callable, Iterator
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


@pytest.fixture
def doubles() -> Iterator[None]:
    before = torch.get_default_dtype()
    for lib in (torch, flow):
        lib.set_default_dtype(lib.float64)
    yield
    torch.set_default_dtype(before)
    flow.set_default_dtype(flow.float32)


@pytest.mark.parametrize("program", [p for p in (*PROGRAMS, *FURTHER) if p is not images], ids=lambda p: p.__name__)
def test_a_program_does_what_it_does_in_torch(program: Callable[[Any], list[float]]) -> None:
    torch.manual_seed(7)
    expected = program(torch)
    flow.manual_seed(7)
    assert program(flow) == pytest.approx(expected, rel=1e-4, abs=1e-5)


@pytest.mark.usefixtures("doubles")
def test_a_program_of_convolutions_does_what_it_does_in_torch() -> None:
    """In float32, on some CPUs, a unit lies so near its kink that rounding decides whether it has a gradient."""
    torch.manual_seed(7)
    expected = images(torch)
    flow.manual_seed(7)
    assert images(flow) == pytest.approx(expected, rel=1e-9)
