"""OneFlow's times for the MLP steps; run by a Python that has it: `python -m bench --oneflow PATH_TO_PYTHON`.

Prints the seconds of each case, by the names that the table gives them, as JSON.
"""

from __future__ import annotations

import json
import sys

import oneflow as flow  # pyright: ignore[reportMissingImports]

from bench.measure import least
from bench.models import LAYERS, MLPS, models

SIZE = "batch 8, width 16"


def pieces():
    batch, width = MLPS[SIZE]
    model = models(flow).mlp(width, LAYERS)
    return model, flow.optim.SGD(model.parameters(), lr=0.01, momentum=0.9), flow.randn(batch, width)


def eager():
    model, optimizer, x = pieces()

    def step():
        loss = model(x).pow(2).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss.item()

    return step


def graph():
    model, optimizer, x = pieces()

    class Training(flow.nn.Graph):
        def __init__(self):
            super().__init__()
            self.model = model
            self.add_optimizer(optimizer)

        def build(self, x):
            loss = self.model(x).pow(2).mean()
            loss.backward()
            return loss

    training = Training()
    return lambda: training(x).item()


if __name__ == "__main__":
    kind = {"eager": eager, "graph": graph}[sys.argv[1]]
    print(json.dumps({f"{sys.argv[1]} MLP step, {SIZE}": least([kind()], 300)[0]}))
