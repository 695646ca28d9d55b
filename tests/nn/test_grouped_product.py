"""Products of groups: the same as torch's kernel, gradients too, eagerly, in graphs and on two ranks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import weft as flow
from weft import nn
from weft.core.errors import ArgumentError
from weft.launch import spawn_threads

S, B = flow.sbp.split, flow.sbp.broadcast
ENDS = [4, 12, 12, 16]
CASES = {  # shapes, and whether groups end at ENDS
    "rows": ((16, 8), (4, 8, 12), True),
    "columns": ((4, 8, 12), (12, 16), True),
    "sums": ((8, 16), (16, 12), True),
    "matrices": ((4, 8, 12), (4, 12, 8), False),
}


def given(case: str) -> tuple[np.ndarray, np.ndarray, bool]:
    a, b, grouped = CASES[case]
    rand = np.random.default_rng(0)
    return rand.normal(size=a).astype(np.float32), rand.normal(size=b).astype(np.float32), grouped


def product(lib: Any, a: Any, b: Any, ends: Any) -> Any:
    y = lib.nn.functional.grouped_mm(a, b, offs=ends)
    (y * y).sum().backward()
    return y


def expected(case: str) -> list[np.ndarray]:
    """By torch's kernel, which wants one operand in columns."""
    x, w, grouped = given(case)
    a, b = (torch.tensor(t, requires_grad=True) for t in (x, w))
    ends = torch.tensor(ENDS, dtype=torch.int32) if grouped else None
    y = product(torch, a, b.mT.contiguous().mT if case != "sums" else b, ends)
    return [t.detach().numpy() for t in (y, a.grad, b.grad) if t is not None]


@pytest.mark.parametrize("case", CASES)
def test_the_same_as_torchs(case: str) -> None:
    x, w, grouped = given(case)
    a, b = flow.tensor(x, requires_grad=True), flow.tensor(w, requires_grad=True)
    y = product(flow, a, b, flow.tensor(ENDS, dtype=flow.int32) if grouped else None)
    for ours, theirs in zip((y.detach(), a.grad, b.grad), expected(case), strict=True):
        np.testing.assert_allclose(ours.numpy(), theirs, rtol=1e-4, atol=1e-4)


class Product(nn.Graph):
    def build(self, a: Any, b: Any, ends: Any) -> Any:
        return nn.functional.grouped_mm(a, b, offs=ends)


@pytest.mark.parametrize("case", [case for case in CASES if CASES[case][2]])
def test_in_graphs_and_on_two_ranks(case: str) -> None:
    x, w, _ = given(case)
    theirs = expected(case)[0]
    np.testing.assert_allclose(
        Product()(flow.tensor(x), flow.tensor(w), flow.tensor(ENDS, dtype=flow.int32)).numpy(), theirs, atol=1e-4
    )

    def each() -> Any:
        place = flow.placement("cpu", [0, 1])
        a, b = (flow.tensor(t).to_global(place, B).to_global(place, sbp) for t, sbp in ((x, B), (w, S(w.ndim - 1))))
        ends = flow.tensor(ENDS, dtype=flow.int32).to_global(place, B)
        return nn.functional.grouped_mm(a, b, offs=ends).numpy(), Product()(a, b, ends).numpy()

    for rank in spawn_threads(2, each, deadline=60):
        for ours in rank:
            np.testing.assert_allclose(ours, theirs, atol=1e-4)


def test_what_cannot_be_is_said() -> None:
    with pytest.raises(ArgumentError, match="offs, the ends of the groups"):
        nn.functional.grouped_mm(flow.ones(3, 2), flow.ones(2, 2, 1))
    with pytest.raises(ArgumentError, match="bias"):
        nn.functional.grouped_mm(flow.ones(2, 3, 2), flow.ones(2, 2, 1), bias=flow.ones(1))
