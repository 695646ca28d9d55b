"""Models whose parameters have 16 bits train in graphs as they do in torch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import weft as flow
from tests.graphs import Trains
from weft import nn
from weft.interop import load_torch

MODELS: dict[str, tuple[tuple[int, ...], Callable[[Any], list[Any]]]] = {
    "layer norm": ((4, 8), lambda nn: [nn.Linear(8, 16), nn.LayerNorm(16), nn.GELU(), nn.Linear(16, 4)]),
    "layer norm, no weights": ((4, 8), lambda nn: [nn.LayerNorm(8, elementwise_affine=False), nn.Linear(8, 4)]),
    "batch norm": ((3, 2, 6, 6), lambda nn: [nn.Conv2d(2, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten()]),
    "batch norm, no weights": ((6, 4), lambda nn: [nn.Linear(4, 4), nn.BatchNorm1d(4, affine=False)]),
    "group norm": ((3, 2, 6, 6), lambda nn: [nn.Conv2d(2, 4, 3), nn.GroupNorm(2, 4), nn.SiLU(), nn.Flatten()]),
    "rms norm": ((4, 8), lambda nn: [nn.Linear(8, 8), nn.RMSNorm(8), nn.Tanh()]),
}


def train_graph(model: nn.Module) -> Trains:
    return Trains(model, flow.optim.SGD(model.parameters(), lr=0.1), lambda y: y.float().square().mean())


@pytest.mark.parametrize("mixed", [False, True], ids=["", "norms in float32"])
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("name", MODELS)
def test_it_trains_as_in_torch(name: str, dtype: str, mixed: bool) -> None:
    if mixed and (name == "rms norm" or "no weights" in name):
        pytest.skip("its answer has the dtype of both")
    shape, layers = MODELS[name]
    torch.manual_seed(0)
    theirs = torch.nn.Sequential(*layers(torch.nn)).to(getattr(torch, dtype))
    mine = load_torch(nn.Sequential(*layers(nn)).to(getattr(flow, dtype)), theirs)
    if mixed:
        for model, float32 in ((theirs, torch.float32), (mine, flow.float32)):
            next(m for m in model if "Norm" in type(m).__name__).to(float32)
    x = torch.randn(shape).to(getattr(torch, dtype))
    graph, optimizer = train_graph(mine), torch.optim.SGD(theirs.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        expected = theirs(x).float().square().mean()
        expected.backward()
        optimizer.step()
        torch.testing.assert_close(graph(flow.from_torch(x)).item(), expected.item(), rtol=2e-3, atol=1e-4)
    for (path, p), q in zip(mine.named_parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(p.detach().to_torch(), q.detach(), rtol=0.02, atol=2e-3, msg=path)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("kind", ["RNN", "GRU"])
def test_recurrent_layers_train_under_autocast_as_in_torch(kind: str, dtype: str) -> None:
    """Backward is traced under autocast, too: what it concatenates stays of 16 bits."""
    torch.manual_seed(0)
    theirs, x = getattr(torch.nn, kind)(4, 8, 2), torch.randn(3, 5, 4)
    mine = load_torch(getattr(nn, kind)(4, 8, 2), theirs)
    graph = Trains(mine, flow.optim.SGD(mine.parameters(), lr=0.1), lambda y: y[0].float().square().mean())
    graph.config.enable_amp(dtype=getattr(flow, dtype))
    optimizer = torch.optim.SGD(theirs.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=getattr(torch, dtype)):
            expected = theirs(x)[0].float().square().mean()
        expected.backward()
        optimizer.step()
        torch.testing.assert_close(graph(flow.from_torch(x)).item(), expected.item(), rtol=0.01, atol=1e-4)
    for (path, p), q in zip(mine.named_parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(p.detach().to_torch(), q.detach(), rtol=0.02, atol=2e-3, msg=path)
