"""What older programs say: `size_average` and `reduce` for a loss's reduction."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import weft as flow
from weft.core.errors import ArgumentError, OptionError

FLAGS: list[dict[str, Any]] = [
    {"size_average": False}, {"reduce": False}, {"size_average": None, "reduce": None},
    {"size_average": True, "reduce": False}, {"size_average": True},
]  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("flags", FLAGS, ids=str)
def test_they_mean_what_they_mean_in_torch(flags: dict[str, Any]) -> None:
    def values(lib: Any) -> list[Any]:
        x, y, labels = lib.tensor([[1.0, 2.0], [0.5, 0.1]]), lib.tensor([[0.2, 0.5], [0.3, 0.9]]), lib.tensor([0, 1])
        F = lib.nn.functional
        pairs = [F.mse_loss, F.l1_loss, F.smooth_l1_loss, F.binary_cross_entropy_with_logits, F.poisson_nll_loss]
        found = [f(x, y, **flags) for f in pairs]
        found += [F.cross_entropy(x, labels, **flags), F.nll_loss(input=x, target=labels, **flags)]
        found += [getattr(lib.nn, n)(**flags)(x, y) for n in ("MSELoss", "L1Loss", "BCEWithLogitsLoss")]
        found += [lib.nn.CrossEntropyLoss(**flags)(x, labels)]
        return [t.tolist() for t in found]

    for ours, theirs in zip(values(flow), values(torch), strict=True):
        torch.testing.assert_close(torch.tensor(ours), torch.tensor(theirs))


def test_where_they_would_be_taken_for_another_option_they_are_refused() -> None:
    with pytest.raises(OptionError, match="size_average"):
        flow.nn.CrossEntropyLoss(None, False)
    with pytest.raises(ArgumentError, match="unexpected argument 'wrong'"):
        flow.nn.MSELoss(wrong=1)  # type: ignore[call-arg]
