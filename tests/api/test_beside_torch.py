"""Random calls, with Weft and with torch: some of the hundred thousands that `python -m bench.fuzz` makes."""

from __future__ import annotations

import pytest
import torch

from bench import fuzz


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(3))
def test_a_call_has_torchs_result_or_a_reason(seed: int) -> None:
    draws = torch.get_rng_state()
    outcomes = list(fuzz.outcomes(150, seed))
    torch.set_rng_state(draws)
    without = [f"{kind}: {said}" for kind, call, said in outcomes if fuzz.unexplained(kind, call, said)]
    assert not without, "\n".join(without)
    assert sum(kind in ("same", "refused") for kind, _, _ in outcomes) > 130


def test_a_call_is_the_same_for_the_same_seed() -> None:
    first, second = fuzz.Maker(5), fuzz.Maker(5)
    assert [str(first.call()) for _ in range(20)] == [str(second.call()) for _ in range(20)]
