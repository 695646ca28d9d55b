"""A call that was made before is found in the caches, and a wrong one is refused each time."""

from __future__ import annotations

import pytest

import weft as flow
from weft.core.errors import ShapeError

P = flow.placement("cpu", ranks=[0])


def test_a_call_is_worked_out_once() -> None:
    x = flow.ones(3, 7, placement=P, sbp=flow.sbp.broadcast)
    before = flow.profiler.caches()["calls"]
    for _ in range(3):
        flow.matmul(x, x.T)
    after = flow.profiler.caches()["calls"]
    assert after.hits - before.hits >= 2 and after.misses - before.misses <= 2
    forms = flow.profiler.caches()["forms"].misses
    for _ in range(2):
        with pytest.raises(ShapeError):
            flow.matmul(x, x)
    assert flow.profiler.caches()["forms"].misses - forms == 2
