"""FTRL, against what OneFlow 0.9 computed for the same gradients."""

from __future__ import annotations

from typing import Any

import pytest

import weft as flow
from tests.graphs import Trains
from weft import nn
from weft.core.errors import OptionError
from weft.one_embedding import Ftrl

SLOPE = [1.0, 0.5, 2.0, -1.0]
ONEFLOW: dict[str, tuple[dict[str, float], list[float], list[float], list[float]]] = {  # after 3 steps: p, sum, z
    "plain": (
        {"lr": 0.1}, [-2.7424874, 1.6272494, -1.7239116, -6.5240107], [3.1, 0.85, 12.1, 3.1],
        [15.576283, -17.649998, 4.9558973, 37.053894],
    ),
    "regularised": (
        {"lr": 0.1, "lambda1": 0.2, "lambda2": 0.3, "beta": 0.5}, [-1.7159274, 1.2359629, -0.67344201, -4.2129445],
        [3.1, 0.85, 12.1, 3.1], [19.04023, -20.156504, 5.705252, 46.456524],
    ),
    "decayed": (
        {"lr": 0.05, "weight_decay": 0.1, "initial_accumulator_value": 0.3, "lr_power": -0.7},
        [-2.3174987, 0.34851769, -1.3040862, -2.5876784], [2.7249246, 0.9699955, 11.873763, 4.0763683],
        [22.977425, -7.1205897, 4.614498, 19.353027],
    ),
}  # fmt: skip


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Parameter(flow.tensor([1.0, -2.0, 0.01, 3.0]))

    def forward(self) -> Any:
        return (self.w * flow.tensor(SLOPE)).sum()


@pytest.mark.parametrize("name", ONEFLOW)
@pytest.mark.parametrize("way", ["eager", "graph"])
def test_as_OneFlow_does(name: str, way: str) -> None:
    options, *expected = ONEFLOW[name]
    model = Model()
    optimizer = Ftrl(model.parameters(), **options)

    graph = Trains(model, optimizer, lambda y: y)
    for _ in range(3):
        if way == "graph":
            graph()
            continue
        optimizer.zero_grad()
        model().backward()
        optimizer.step()
    state = optimizer.state[model.w]
    for got, wanted in zip((model.w, state["accumulator_value"], state["z"]), expected, strict=True):
        assert got.numpy().tolist() == pytest.approx(wanted, rel=1e-5)


def test_small_sums_leave_nothing() -> None:
    model = Model()
    optimizer = Ftrl(model.parameters(), lr=0.1, lambda1=1e3)
    model().backward()
    optimizer.step()
    assert model.w.tolist() == [0.0] * 4
    with pytest.raises(OptionError, match="Invalid lambda1"):
        Ftrl(model.parameters(), lambda1=-1.0)
