"""Muon: torch's steps, as closely as bfloat16 tells; eagerly and in a graph."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import weft as flow
from weft.core.errors import OptionError


def steps(lib: Any, **options: Any) -> list[Any]:
    lib.manual_seed(1)
    matrices = [lib.nn.Parameter(lib.randn(rows, cols)) for rows, cols in ((4, 4), (6, 3), (3, 6))]
    optimizer = lib.optim.Muon(matrices, lr=0.1, **options)
    for _ in range(3):
        for p in matrices:  # far from singular, as rounding turns what is near it
            p.grad = lib.eye(*p.shape) + 0.1 * lib.randn(*p.shape)
        optimizer.step()
    state = optimizer.state_dict()["state"]
    return [*(p.detach().tolist() for p in matrices), state[0]["momentum_buffer"].tolist(), sorted(state[0])]


@pytest.mark.skipif(not hasattr(torch.optim, "Muon"), reason="this torch has no Muon")
@pytest.mark.parametrize("options", [{}, {"nesterov": False, "adjust_lr_fn": "match_rms_adamw", "weight_decay": 0.0}])
def test_the_steps_are_torchs(options: dict[str, Any]) -> None:
    for ours, theirs in zip(steps(flow, **options)[:4], steps(torch, **options)[:4], strict=True):
        torch.testing.assert_close(torch.tensor(ours), torch.tensor(theirs), rtol=0, atol=2e-3)
    assert steps(flow)[4] == steps(torch)[4]


def test_in_a_graph() -> None:
    model, x = flow.nn.Linear(3, 3, bias=False), flow.eye(3)

    class Train(flow.nn.Graph):
        def __init__(self) -> None:
            super().__init__()
            self.model = model
            self.add_optimizer(flow.optim.Muon(model.parameters(), lr=0.05))

        def build(self, x: flow.Tensor) -> flow.Tensor:
            loss = (self.model(x) - x).square().sum()
            loss.backward()
            return loss

    step = Train()
    losses = [step(x).item() for _ in range(4)]
    assert losses[0] > losses[1] > losses[2] > losses[3]


def test_what_is_no_matrix_is_refused() -> None:
    with pytest.raises(OptionError, match=r"shape \[2\].*AdamW"):
        flow.optim.Muon(flow.nn.Linear(2, 2).parameters())
    with pytest.raises(OptionError, match="'match_rms_adamw'; got 'none'"):
        flow.optim.Muon([flow.nn.Parameter(flow.ones(2, 2))], adjust_lr_fn="none")
