"""Some of the programs that `python -m tests.autograd.sequences` makes up by the thousand."""

from __future__ import annotations

import pytest

from tests.autograd import sequences


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(3))
def test_views_writes_and_gradients_are_torchs(seed: int) -> None:
    wrong = {}
    for i in range(seed * 1000, seed * 1000 + 60):
        lines = sequences.program(i)
        found = sequences.differences(lines)
        if found is not None:
            wrong["\n".join(lines)] = found
    assert not wrong, "\n".join(f"{program}\n=> {found}" for program, found in wrong.items())
