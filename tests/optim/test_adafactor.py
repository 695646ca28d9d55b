"""Adafactor: torch's steps and states; global parameters, in any layout and in ZeRO's, as local ones."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import weft as flow
from weft.core.errors import DtypeError, OptionError
from weft.launch import spawn_threads
from weft.tensor.tensor import of_torch

SHAPES = [(3, 4), (5,), (), (2, 4, 2)]
ROWS: list[dict[str, Any]] = [
    {},
    {"lr": 0.1, "weight_decay": 0.1, "eps": (1e-4, 0.1), "d": 2.0},
    {"lr": 2.0, "beta2_decay": -0.5, "maximize": True},
]


def numbers(shape: tuple[int, ...], seed: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("options", ROWS, ids=str)
def test_steps_and_states_are_torchs(options: dict[str, Any]) -> None:
    theirs = [torch.nn.Parameter(numbers(s, i)) for i, s in enumerate(SHAPES)]
    ours = [flow.nn.Parameter(of_torch(p.detach().clone())) for p in theirs]
    a, b = torch.optim.Adafactor(theirs, **options), flow.optim.Adafactor(ours, **options)
    for step in range(6):
        if step == 3:  # from a saved state
            saved = b.state_dict()
            b = flow.optim.Adafactor(ours)
            b.load_state_dict(saved)
        for i, (p, q) in enumerate(zip(theirs, ours, strict=True)):
            p.grad = None if (step, i) == (2, 1) else numbers(tuple(p.shape), 10 * step + i)
            q.grad = None if p.grad is None else of_torch(p.grad.clone())
        a.step()
        b.step()
        for p, q in zip(theirs, ours, strict=True):
            torch.testing.assert_close(q.detach().to_torch(), p.detach(), rtol=1e-5, atol=1e-6)
    for p, q in zip(theirs, ours, strict=True):
        assert a.state[p].keys() == b.state[q].keys()
        for name, value in a.state[p].items():
            torch.testing.assert_close(b.state[q][name].to_torch(), value)


@pytest.mark.parametrize("sbp", [flow.sbp.broadcast, flow.sbp.split(0), flow.sbp.split(1)], ids=str)
@pytest.mark.parametrize("form", ["eager", "graph", "zero"])
def test_global_parameters_move_as_local_ones(sbp: Any, form: str) -> None:
    x, start = numbers((6, 4), 1), numbers((4, 2), 2)

    class Train(flow.nn.Graph):
        def __init__(self, model: Any, optimizer: Any) -> None:
            super().__init__()
            self.model = model
            self.add_optimizer(optimizer)
            if form == "zero":
                self.config.enable_zero(True, shard_min_size=1)

        def build(self, x: Any) -> Any:
            loss = self.model(x).square().mean()
            loss.backward()
            return loss

    def train(place: Any) -> list[float]:
        model = flow.nn.Linear(4, 2, bias=False)
        model.weight.data = flow.tensor(start.T.contiguous())
        data = flow.tensor(x)
        if place is not None:
            model.to_global(placement=place, sbp=sbp)
            data = data.to_global(placement=place, sbp=flow.sbp.split(0))
        optimizer = flow.optim.Adafactor(model.parameters(), lr=0.1)
        step = Train(model, optimizer) if form != "eager" and place is not None else None
        losses = []
        for _ in range(4):
            if step is not None:
                losses.append(step(data).numpy().item())
                continue
            loss = model(data).square().mean()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            losses.append(loss.detach().numpy().item())
        return losses

    alone = train(None)
    assert alone[-1] < alone[0]
    for losses in spawn_threads(2, lambda: train(flow.placement("cpu", [0, 1]))):
        assert losses == pytest.approx(alone, rel=1e-5)


def test_what_it_refuses() -> None:
    w = [flow.nn.Parameter(flow.ones(2))]
    for options in ({"beta2_decay": 0.1}, {"d": 0.5}, {"eps": (-1.0, 0.1)}, {"lr": -1.0}):
        with pytest.raises(OptionError, match="Invalid"):
            flow.optim.Adafactor(w, **options)  # type: ignore[arg-type]
    with pytest.raises(DtypeError, match="complex"):
        flow.optim.Adafactor([flow.nn.Parameter(flow.ones(2, dtype=flow.complex64))])
