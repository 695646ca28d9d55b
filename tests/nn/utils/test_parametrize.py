"""Parametrized modules compute, train and save what torch's do."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest
import torch

import weft as flow
from tests.graphs import Trains
from weft.core.errors import OptionError


def kinds(lib: Any) -> Any:
    class Symmetric(lib.nn.Module):
        def forward(self, x: Any) -> Any:
            return x.triu() + x.triu(1).transpose(-1, -2)

        def right_inverse(self, x: Any) -> Any:
            return x.triu()

    class Exponential(lib.nn.Module):
        def forward(self, x: Any) -> Any:
            return lib.matrix_exp(x)

    class Product(lib.nn.Module):
        def forward(self, x: Any, y: Any) -> Any:
            return x[:, None] * y[None]

        def right_inverse(self, z: Any) -> Any:
            return z[:, 0].clone(), z[0] / z[0, 0]

    return Symmetric, Exponential, Product


def trained(lib: Any, layer: Any, x: Any) -> list[Any]:
    optimizer = lib.optim.SGD(layer.parameters(), lr=0.1)
    found = []
    for _ in range(3):
        loss = layer(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        found.append(loss.item())
    layer.eval()
    return [*found, layer.weight.tolist(), list(layer.state_dict()), repr(layer)]


def of_ones_own(lib: Any) -> Iterator[Any]:
    of, (symmetric, exponential, product) = lib.nn.utils.parametrize, kinds(lib)
    layer = of.register_parametrization(lib.nn.Linear(3, 3), "weight", symmetric())
    yield layer.weight.tolist(), of.is_parametrized(layer), of.is_parametrized(layer, "bias")
    layer.weight = lib.arange(9.0).reshape(3, 3)
    yield layer.weight.tolist(), layer.parametrizations.weight.original.tolist()
    yield trained(lib, layer, lib.ones(2, 3))
    twin = copy.deepcopy(layer)
    twin.weight = lib.eye(3)
    yield layer.weight.tolist(), twin.weight.tolist()
    with of.cached():
        yield layer.weight is layer.weight
    of.register_parametrization(layer, "weight", exponential())
    yield layer.weight.tolist(), of.type_before_parametrizations(layer).__name__
    of.remove_parametrizations(layer, "weight", leave_parametrized=False)
    yield layer.weight.tolist(), type(layer).__name__, list(layer.state_dict())
    of.register_parametrization(layer, "weight", product())
    of.register_parametrization(layer, "bias", lib.nn.ReLU())
    yield trained(lib, layer, lib.ones(2, 3))
    yield type(of.remove_parametrizations(layer, "weight")).__name__, layer.weight.tolist()
    yield repr(of.remove_parametrizations(layer, "bias"))


def of_norms(lib: Any) -> Iterator[Any]:
    for norm in (lib.nn.utils.parametrizations.weight_norm, lib.nn.utils.parametrizations.spectral_norm):
        yield trained(lib, norm(lib.nn.Linear(4, 5)), lib.randn(2, 4))
        yield trained(lib, norm(lib.nn.ConvTranspose1d(2, 3, 3)), lib.randn(1, 2, 5))
    older, newer = lib.nn.utils.weight_norm(lib.nn.Linear(2, 3)), lib.nn.Linear(2, 3)
    lib.nn.utils.parametrizations.weight_norm(newer).load_state_dict(older.state_dict())
    yield newer.weight.tolist()


def of_orthogonal(lib: Any) -> Iterator[Any]:
    orthogonal = lib.nn.utils.parametrizations.orthogonal
    for shape in [(4, 4), (5, 3), (3, 5)]:
        for way in (None, "matrix_exp", "cayley", "householder"):
            layer = orthogonal(lib.nn.Linear(*shape, bias=False), orthogonal_map=way)
            yield layer.weight.tolist()
            layer.weight = lib.randn(*layer.weight.shape)
            yield trained(lib, layer, lib.randn(2, shape[0]))[:-1]
        yield orthogonal(lib.nn.Linear(*shape), orthogonal_map="cayley", use_trivialization=False).weight.tolist()


def flat(tree: Any) -> list[Any]:
    return [x for part in tree for x in flat(part)] if isinstance(tree, (tuple, list)) else [tree]


@pytest.mark.filterwarnings("ignore:.*weight_norm.*:FutureWarning")
@pytest.mark.parametrize("program", [of_ones_own, of_norms, of_orthogonal])
def test_the_same_as_torchs(program: Any) -> None:
    results = []
    for lib in (flow, torch):
        lib.manual_seed(4)
        results.append(flat(list(program(lib))))
    for ours, theirs in zip(*results, strict=True):
        assert ours == (theirs if isinstance(theirs, (str, bool)) else pytest.approx(theirs, rel=2e-4, abs=2e-5))


def test_in_a_graph() -> None:
    layer = flow.nn.utils.parametrizations.weight_norm(flow.nn.Linear(3, 2))

    step, x = Trains(layer, flow.optim.SGD(layer.parameters(), lr=0.1), lambda y: y.square().sum()), flow.ones(2, 3)
    losses = [step(x).item() for _ in range(3)]
    assert losses[0] > losses[1] > losses[2] == pytest.approx(losses[2])
    assert layer(x).square().sum().item() < losses[2]


def test_what_cannot_be_is_said() -> None:
    of, layer = flow.nn.utils.parametrize, flow.nn.Linear(3, 3)
    with pytest.raises(OptionError, match=r"does not have a parameter.*name 'wait'"):
        of.register_parametrization(layer, "wait", flow.nn.ReLU())
    with pytest.raises(OptionError, match=r"shape.*`unsafe` flag"):
        of.register_parametrization(layer, "weight", flow.nn.Linear(3, 2))
    of.register_parametrization(layer, "weight", flow.nn.ReLU())
    with pytest.raises(OptionError, match="ReLU does not implement right_inverse"):
        layer.weight = flow.eye(3)
    with pytest.raises(OptionError, match=r"only supported through state_dict\(\)"):
        layer.__reduce_ex__(4)
    with pytest.raises(OptionError, match="matrix_exp"):
        flow.nn.utils.parametrizations.orthogonal(flow.nn.Linear(2, 2), orthogonal_map="qr")
