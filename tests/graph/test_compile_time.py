"""What compiling takes grows as the job does."""

from __future__ import annotations

import cProfile
from typing import Any

import weft as flow
from weft import nn


class Train(nn.Graph):
    def __init__(self, layers: int) -> None:
        super().__init__()
        self.model = nn.Sequential(*[nn.Sequential(nn.Linear(4, 4), nn.LayerNorm(4), nn.ReLU()) for _ in range(layers)])
        self.add_optimizer(flow.optim.AdamW(self.model.parameters(), lr=0.1))

    def build(self, x: Any) -> Any:
        loss = self.model(x).square().mean()
        loss.backward()
        return loss


def calls(layers: int) -> int:
    """How many calls Python makes for a graph's first step: counted, as a clock would be off."""
    graph, x = Train(layers), flow.ones(2, 4)
    with cProfile.Profile() as counted:
        graph.compile(x)
        graph.running.brief = True  # on this thread, the one that is watched
        graph(x).numpy()
    graph.close()
    return sum(entry.callcount for entry in counted.getstats())


def test_calls_are_linear_in_the_nodes() -> None:
    calls(2)  # what is done once
    few, some, many = (calls(layers) for layers in (10, 20, 60))
    assert many - some < 1.15 * 4 * (some - few)
