"""Programs that torch traced, exported or as a graph of modules, trained on Weft's tensors."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.nn import functional as F

import weft as flow
from tests.graphs import Trains


class Net(torch.nn.Module):
    """Layers whose ops have hints to their kernels, and other places than torch's functions."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.lstm = torch.nn.Embedding(9, 4), torch.nn.LSTM(4, 4, batch_first=True)
        self.conv, self.back = torch.nn.Conv1d(4, 4, 4), torch.nn.ConvTranspose1d(4, 4, 2)
        self.over_batch = torch.nn.BatchNorm1d(4)
        self.norm, self.over_groups = torch.nn.LayerNorm(4), torch.nn.GroupNorm(2, 4)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.norm(self.lstm(self.embedding(ids))[0]).transpose(1, 2)
        x = self.over_groups(self.over_batch(self.back(self.conv(x))))
        x = F.interpolate(x, scale_factor=2.0, mode="linear") + F.interpolate(x, x.shape[-1] * 2)
        return F.dropout(x, 0.5, inplace=True).flatten(1) * torch.tensor(2.0) + torch.arange(8 * ids.shape[1] - 16)


def program(net: torch.nn.Module, ids: torch.Tensor) -> Any:
    return torch.export.export(net, (ids,), dynamic_shapes=({0: torch.export.Dim("n", min=2)},))


def exported(net: torch.nn.Module, ids: torch.Tensor) -> Any:
    return program(net, ids).module()


def decomposed(net: Any, ids: torch.Tensor) -> Any:
    net.over_batch = torch.nn.Identity()  # torch itself doesn't train a decomposed norm over the batch
    return program(net, ids).run_decompositions().module()


def traced(net: torch.nn.Module, ids: torch.Tensor) -> Any:
    return torch.fx.symbolic_trace(net)


@pytest.mark.parametrize("way", [exported, decomposed, traced])
def test_what_torch_traced_trains(way: Callable[[Any, Any], Any]) -> None:
    torch.manual_seed(0)
    net, ids = Net(), torch.randint(9, (3, 6))
    theirs, *others = (way(copy.deepcopy(net), ids) for _ in range(3))
    eager, graph = map(flow.from_torch, others)

    x = flow.from_torch(ids)

    def losses(lib: Any, model: Any, graph: bool = False) -> list[float]:
        optimizer = lib.optim.SGD(model.parameters(), lr=0.01)
        step = Trains(model, optimizer) if graph else None
        torch.manual_seed(1)
        found = []
        for _ in range(3):
            loss = step(x) if step else model(ids if lib is torch else x).square().mean()
            if not step:
                loss.backward()
                optimizer.step()
                optimizer.zero_grad()
            found.append(loss.item())
        return found

    expected = losses(torch, theirs)
    assert losses(flow, eager) == pytest.approx(expected) and losses(flow, graph, True) == pytest.approx(expected)
