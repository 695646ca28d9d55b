"""Updates over few long tensors: the same training, the same objects, and nobody's view of a parameter goes blind."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
import torch

import weft as flow
from tests.graphs import Calls, Trains
from weft import nn
from weft.compiler import coalesce
from weft.core.errors import AutogradError
from weft.interop import to_torch
from weft.launch import spawn_threads


class Net(nn.Module):
    """Widths that are whole cache lines, and one that isn't; one parameter that no loss depends on."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm = nn.Linear(16, 32), nn.LayerNorm(32)
        self.narrow, self.last = nn.Linear(32, 5), nn.Linear(5, 16)
        self.unused = nn.Parameter(flow.ones(16))

    def forward(self, x: Any) -> Any:
        return self.last(self.narrow(flow.relu(self.norm(self.first(x)))))


def fits(model: nn.Module, optimizer: Any, steps: int = 1) -> Trains:
    return Trains(model, optimizer, steps=steps)


OPTIMIZERS = {
    "sgd": lambda p: flow.optim.SGD(p, lr=0.1),
    "momentum": lambda p: flow.optim.SGD(p, lr=0.1, momentum=0.9, weight_decay=0.01, nesterov=True),
    "adam": lambda p: flow.optim.Adam(p, lr=0.01, weight_decay=0.01),
    "adamw": lambda p: flow.optim.AdamW(p, lr=0.01, amsgrad=True),
    "uncorrected": lambda p: flow.optim.AdamW(p, lr=0.01, do_bias_correction=False),
    "adagrad": lambda p: flow.optim.Adagrad(p, lr=0.05),
    "rmsprop": lambda p: flow.optim.RMSprop(p, lr=0.01, momentum=0.5, centered=True),
    "adadelta": lambda p: flow.optim.Adadelta(p, lr=0.5),
}


def batch(seed: int, rows: int = 4) -> Any:
    return flow.tensor(np.random.default_rng(seed).normal(size=(rows, 16)).astype(np.float32))


def array(t: Any) -> Any:
    return t.detach().numpy()


def lengths(graph: nn.Graph) -> list[int]:
    """Of how many pieces the parameters and states of the update are."""
    compiled = graph._need()
    assert "changed(" in graph.source()
    calls = [c for t in compiled.lowered.plan.tasks for c in t.step.calls]
    (lists,) = [coalesce.lists_of(c) for c in calls if coalesce.lists_of(c)]
    memory = compiled.running.named
    mine = [[memory[v.name] for v in values] for values in lists if all(v.name in memory for v in values)]
    return [len(x) for x in coalesce.coalesced(mine) or mine]


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_training_is_the_eager_one(name: str) -> None:
    a = Net()
    b = copy.deepcopy(a)
    objects = [id(p) for p in a.parameters()]
    graph, optimizer = fits(a, OPTIMIZERS[name](a.parameters())), OPTIMIZERS[name](b.parameters())
    for seed in range(6):
        loss = b(batch(seed)).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        assert graph(batch(seed)).item() == pytest.approx(loss.item(), rel=1e-5)
    for (key, p), q in zip(a.named_parameters(), b.parameters(), strict=True):
        np.testing.assert_allclose(array(p), array(q), rtol=1e-5, atol=1e-6, err_msg=key)
    assert [id(p) for p in a.parameters()] == objects
    assert max(lengths(graph)) == 2, "five numbers end within a cache line: a gap follows"


def test_who_looks_at_a_parameter_goes_on_seeing_it() -> None:
    model = Net()
    looked, seen, view = array(model.first.bias), to_torch(model.norm.weight).detach(), model.last.weight.detach()[1:]
    graph = fits(model, flow.optim.AdamW(model.parameters(), lr=0.1))
    for seed in range(3):
        graph(batch(seed)).item()
    np.testing.assert_array_equal(looked, array(model.first.bias))
    np.testing.assert_array_equal(seen.numpy(), array(model.norm.weight))
    np.testing.assert_array_equal(view.numpy(), array(model.last.weight)[1:])
    view.zero_()
    assert not model.last.weight[1:].any().item()


def test_the_tape_notices_the_update() -> None:
    model = Net()
    graph = fits(model, flow.optim.SGD(model.parameters(), lr=0.1))
    graph(batch(0)).item()
    loss = model(batch(1)).sum()
    graph(batch(2)).item()
    with pytest.raises(AutogradError, match=r"overwrote|overwritten"):
        loss.backward()


def test_a_state_goes_out_and_comes_back(tmp_path: Any) -> None:
    model = Net()
    optimizer = flow.optim.AdamW(model.parameters(), lr=0.1)
    graph = fits(model, optimizer)
    graph(batch(0)).item()
    flow.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, str(tmp_path / "state"))
    twin, before = copy.deepcopy(model), [array(p).copy() for p in model.parameters()]
    losses = [graph(batch(s)).item() for s in range(1, 4)]
    for p, q in zip(twin.parameters(), before, strict=True):
        np.testing.assert_array_equal(array(p), q)
    kept = flow.load(str(tmp_path / "state"))
    model.load_state_dict(kept["model"])
    optimizer.load_state_dict(kept["optimizer"])
    assert [graph(batch(s)).item() for s in range(1, 4)] == losses


def test_a_parameter_that_moves_leaves_the_row() -> None:
    a = Net()
    b = copy.deepcopy(a)
    one, other = (fits(m, flow.optim.SGD(m.parameters(), lr=0.1, momentum=0.9)) for m in (a, b))
    for seed in range(4):
        if seed == 2:
            a.norm.weight.data = a.norm.weight.detach().clone()
        assert one(batch(seed)).item() == other(batch(seed)).item()


def test_tied_and_shared_parameters() -> None:
    model = nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 16))
    model[2].weight = model[0].weight
    model[2].bias.data = model[0].bias.data  # two parameters, one memory
    twin = copy.deepcopy(model)
    assert twin[2].weight is twin[0].weight
    graph = fits(model, flow.optim.SGD(model.parameters(), lr=0.1))
    for seed in range(3):
        graph(batch(seed)).item()
    np.testing.assert_array_equal(array(model[2].bias), array(model[0].bias))


def test_several_graphs_of_one_model() -> None:
    model = Net()
    judge = Calls(model)
    graph = fits(model, flow.optim.AdamW(model.parameters(), lr=0.1))
    for seed in range(3):
        graph(batch(seed)).item()
        np.testing.assert_allclose(judge(batch(9)).numpy(), array(model(batch(9))), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("steps", [1, 2])
def test_over_two_ranks(steps: int) -> None:
    whole = Net()
    state = {k: v.numpy().copy() for k, v in whole.state_dict().items()}
    eager, losses = flow.optim.AdamW(whole.parameters(), lr=0.01), []
    for seed in range(4):
        loss = whole(batch(seed, 8)).square().mean()
        loss.backward()
        eager.step()
        eager.zero_grad()
        losses.append(loss.item())

    def rank() -> Any:
        place = flow.placement("cpu", ranks=[0, 1])
        model = Net()
        model.load_state_dict({k: flow.tensor(v) for k, v in state.items()})
        model.to_global(placement=place, sbp=flow.sbp.broadcast)
        graph = fits(model, flow.optim.AdamW(model.parameters(), lr=0.01), steps)
        found = []
        for seed in range(4):
            x = batch(seed, 8).to_global(placement=place, sbp=flow.sbp.broadcast).to_global(sbp=flow.sbp.split(0))
            found.append(graph(x).mean().to_global(sbp=flow.sbp.broadcast).to_local().item())
        return found, lengths(graph)

    for found, pieces in spawn_threads(2, rank):
        np.testing.assert_allclose(found, losses, rtol=1e-5)
        assert max(pieces) < 8


def test_pieces() -> None:
    rows = torch.zeros(2, 64)
    lists = [[r[:16], r[16:32].view(4, 4), r[40:48]] for r in rows]
    found = coalesce.coalesced([x[::-1] for x in lists])  # in the order of memory, whatever that of the list
    assert found is not None
    assert [[p.shape for p in x] for x in found] == [[(32,), (8,)]] * 2
    assert found[1][0].data_ptr() == rows[1].data_ptr()
    apart = [lists[0], [t.clone() for t in lists[1]]]
    assert coalesce.coalesced(apart) is None
    assert coalesce.coalesced([[torch.zeros(4, 4).T, torch.zeros(4)]]) is None
