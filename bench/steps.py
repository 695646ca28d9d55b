"""Training steps of the models: torch's, torch.compile's, Weft's eager and graph ones, from the same weights."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

import weft as flow
from bench.models import GPTS, LAYERS, MLPS, VOCABULARY, models
from weft import nn
from weft.interop import from_torch, load_torch

theirs, ours = models(torch), models(flow)
Step = Callable[[], Any]
BUDGET = 44_850_000  # memory budget in bytes for the larger GPT: parameters, states and a step


def mlp_pair(size: str, device: str = "cpu") -> tuple[torch.nn.Module, Any, torch.Tensor]:
    """Torch's model, Weft's with the same weights, and a batch."""
    batch, width = MLPS[size]
    torch.manual_seed(0)
    a = theirs.mlp(width, LAYERS)
    b = load_torch(ours.mlp(width, LAYERS), a)
    return a.to(device), b.to(device), torch.randn(batch, width).to(device)


def gpt_pair(size: str, device: str = "cpu") -> tuple[torch.nn.Module, Any, torch.Tensor, torch.Tensor]:
    layers, width, batch, tokens = GPTS[size]
    torch.manual_seed(0)
    a = theirs.GPT(layers, width, tokens)
    ids = torch.randint(0, VOCABULARY, (batch, tokens + 1))
    b = load_torch(ours.GPT(layers, width, tokens), a)
    x, y = (t.contiguous().to(device) for t in (ids[:, :-1], ids[:, 1:]))
    return a.to(device), b.to(device), x, y


def step_of(loss_of: Callable[[], Any], optimizer: Any) -> Step:
    """A step of torch or Weft: the same calls under the same names."""

    def step() -> float:
        loss = loss_of()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss.item()

    return step


def mixed(lib: Any, model: Any, *batch: Any) -> Any:
    """A call in mixed precision of torch or Weft."""
    with lib.autocast("cuda" if batch[0].is_cuda else "cpu", dtype=lib.bfloat16):
        return model(*batch)


def called(lib: Any, model: Any, *batch: Any) -> Any:
    return model(*batch)


class Training(nn.Graph):
    """A training step of any model and loss."""

    def __init__(self, model: Any, loss_of: Callable[..., Any], optimizer: Any, inductor: bool = False) -> None:
        super().__init__()
        self.config.enable_inductor(inductor)
        self.model, self.loss_of = model, loss_of
        self.add_optimizer(optimizer)

    def build(self, *inputs: Any) -> Any:
        loss = self.loss_of(self.model, *inputs)
        loss.backward()
        return loss


def mlp_steps(size: str, device: str = "cpu") -> dict[str, Callable[[], Step]]:
    """Factories of each kind of step, by name."""

    def make_torch(compiled: bool) -> Step:
        a, _, x = mlp_pair(size, device)
        loss_of = torch.compile(lambda: a(x).pow(2).mean()) if compiled else lambda: a(x).pow(2).mean()
        return step_of(loss_of, torch.optim.SGD(a.parameters(), lr=0.01, momentum=0.9, fused=compiled))

    def make_eager() -> Step:
        _, b, x = mlp_pair(size, device)
        inputs = from_torch(x)
        return step_of(lambda: b(inputs).pow(2).mean(), flow.optim.SGD(b.parameters(), lr=0.01, momentum=0.9))

    def make_graph(inductor: bool) -> Step:
        _, b, x = mlp_pair(size, device)
        inputs = from_torch(x)
        optimizer = flow.optim.SGD(b.parameters(), lr=0.01, momentum=0.9)
        graph = Training(b, lambda m, x: m(x).pow(2).mean(), optimizer, inductor)
        return lambda: graph(inputs).item()

    return {
        "torch": lambda: make_torch(False), "compile": lambda: make_torch(True), "eager": make_eager,
        "graph": lambda: make_graph(False), "fused": lambda: make_graph(True),
    }  # fmt: skip


def optimizer_of(name: str) -> str:
    """What trains a model that classifies: not every optimizer takes sparse gradients."""
    return "SGD" if "sparse" in name else "AdamW"


def classifier_steps(name: str) -> list[Step]:
    """Torch's step and Weft's, eager and as a graph, of a model that classifies, from the same weights."""
    torch.manual_seed(0)
    a = theirs.classifiers[name]()
    b, c = (load_torch(ours.classifiers[name](), a) for _ in range(2))
    size, most = (256, 1_000_000) if "sparse" in name else (8, VOCABULARY)
    x = torch.randn(8, 3, 32, 32) if "convolutions" in name else torch.randint(0, most, (size, 20))
    x = x.contiguous(memory_format=torch.channels_last) if "channels_last" in name else x
    y = torch.randint(0, 10, (size,))
    inputs, targets = from_torch(x), from_torch(y)
    of_torch, *of_weft = (
        getattr(m.optim, optimizer_of(name))(net.parameters(), lr=1e-3) for m, net in ((torch, a), (flow, b), (flow, c))
    )
    graph = Training(c, lambda m, x, y: nn.functional.cross_entropy(m(x), y), of_weft[1])
    return [
        step_of(lambda: torch.nn.functional.cross_entropy(a(x), y), of_torch),
        step_of(lambda: nn.functional.cross_entropy(b(inputs), targets), of_weft[0]),
        lambda: graph(inputs, targets).item(),
    ]


def gpt_steps(size: str, device: str = "cpu") -> dict[str, Callable[[], Step]]:
    def make_torch(compiled: bool, call: Any = called) -> Step:
        a, _, ids, targets = gpt_pair(size, device)
        model = torch.compile(a) if compiled else a
        return step_of(
            lambda: call(torch, model, ids, targets), torch.optim.AdamW(a.parameters(), lr=1e-3, fused=compiled)
        )

    def make_eager(call: Any = called) -> Step:
        _, b, ids, targets = gpt_pair(size, device)
        x, y = from_torch(ids), from_torch(targets)
        return step_of(lambda: call(flow, b, x, y), flow.optim.AdamW(b.parameters(), lr=1e-3))

    def make_graph(inductor: bool = False, budget: int = 0) -> Step:
        _, b, ids, targets = gpt_pair(size, device)
        x, y = from_torch(ids), from_torch(targets)
        graph = Training(b, lambda m, x, y: m(x, y), flow.optim.AdamW(b.parameters(), lr=1e-3), inductor)
        if budget:
            graph.config.set_memory_budget(budget)
        return lambda: graph(x, y).item()

    return {
        "torch": lambda: make_torch(False), "compile": lambda: make_torch(True), "eager": make_eager,
        "mixed torch": lambda: make_torch(False, mixed), "mixed": lambda: make_eager(mixed),
        "graph": make_graph, "fused": lambda: make_graph(True), "budget": lambda: make_graph(budget=BUDGET),
    }  # fmt: skip
