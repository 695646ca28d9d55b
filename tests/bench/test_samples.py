"""Torch's own samples, a few of every function: what Weft gives for them has torch's values, dtypes and shapes."""

from __future__ import annotations

import gc
import importlib
from typing import Any

import pytest
import torch


@pytest.fixture(scope="module")
def samples() -> Any:
    """Imported where they are run, and not wherever tests are collected: it takes seconds, and all of it stays."""
    found = importlib.import_module("bench.samples")
    gc.freeze()
    return found


@pytest.mark.parametrize(
    ("road", "dtype"), [("eager", torch.float32), ("gradient", torch.float64), ("ranks", torch.float64)]
)
def test_a_sample_of_every_function(samples: Any, road: str, dtype: torch.dtype) -> None:
    counted, told = samples.sweep(road, dtype, every=3, most=3, seed=1)
    assert not told, "\n".join(told)
    assert counted["same"] > 300


def test_modules(samples: Any) -> None:
    counted, told = samples.sweep("modules", torch.float64, only="Loss")
    assert not told, "\n".join(told)
    assert counted["same"] > 50


def test_optimizers(samples: Any) -> None:
    counted, told = samples.sweep("optimizers", torch.float64, only="Ada")
    assert not told, "\n".join(told)
    assert counted["same"] > 50 and counted["refused"] > 30


def test_what_differs_is_told(samples: Any) -> None:
    case = next(samples.cases(torch.float64, grad=True, only="cosh"))
    assert samples.eager(case)[0] == samples.gradient(case)[0] == samples.graph(case)[0] == "same"
    wrong = case._replace(ours=lambda x: x + 0.0)
    assert samples.eager(wrong)[0] == samples.gradient(wrong)[0] == samples.ranks(wrong)[0] == "other"
    assert samples.graph(case._replace(ours=lambda x: x.item()))[0] == "strict"
