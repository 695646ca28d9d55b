"""Killed saves lose nothing and leave nothing, whichever rank it was; tests/checkpoint counts flips."""

from __future__ import annotations

import json

import pytest

from tests.worlds import Start


@pytest.mark.parametrize(("n", "ranks"), [(10, 1), (5, 2)])
def test_torn_saves(world: Start, n: int, ranks: int) -> None:
    counts = json.loads(world("bench.saves:torn", 1, "shm", str(n), str(ranks)).well()[0])
    assert (counts["torn"], counts["lost"], counts["leftovers"]) == (n, 0, 0)
