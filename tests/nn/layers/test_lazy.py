"""Lazy layers are torch's: what is done to one before its first input holds after it."""

from __future__ import annotations

import copy
import inspect
from typing import Any

import pytest
import torch

import weft as flow
from tests.ranks import on
from weft import nn
from weft.core.errors import CheckpointError, ShapeError

LAZY = sorted(n for n in nn.__all__ if n.startswith("Lazy"))
USUAL: dict[str, Any] = {"out_features": 3, "out_channels": 4, "kernel_size": 2, "affine": True}


def made(library: Any, name: str, **options: Any) -> Any:
    kind = getattr(library.nn, name)
    return kind(**{n: USUAL[n] for n in inspect.signature(kind.__init__).parameters if n in USUAL}, **options)


def inputs(name: str) -> list[torch.Tensor]:
    """With a batch, and without one where the layer takes such."""
    dims = int(name[-2]) if name.endswith("d") else 0
    x = torch.randn(2, 6, *(4,) * dims)
    return [x] if "Norm" in name else [x, x[0]]  # torch's norms of instances take the wrong dimension then


def trained(library: Any, layer: Any, x: Any) -> dict[str, Any]:
    """Its state after a step of an optimizer that was made before the first input."""
    optimizer = library.optim.SGD(layer.parameters(), lr=0.1)
    y = layer(x)
    (y * y).sum().backward()
    optimizer.step()
    return {n: t.detach() for n, t in layer.state_dict().items()}


def same(ours: dict[str, Any], theirs: dict[str, torch.Tensor]) -> None:
    assert list(ours) == list(theirs)
    for name, expected in theirs.items():
        got = flow.to_torch(ours[name])
        torch.testing.assert_close(got, expected, msg=lambda why, name=name: f"{name}: {why}")


CHANGES: dict[str, Any] = {
    "as made": lambda library, layer: layer,
    "double": lambda library, layer: layer.double(),
    "to": lambda library, layer: layer.to(library.float64),
    "copied": lambda library, layer: copy.deepcopy(layer) if library is flow else layer,  # torch copies no lazy buffers
    "eval": lambda library, layer: layer.eval(),
    "its own state": lambda library, layer: (layer.load_state_dict(layer.state_dict()), layer)[1],
}


@pytest.mark.parametrize("name", LAZY)
def test_a_lazy_layer_is_torchs(name: str) -> None:
    for x in inputs(name):
        for change, change_it in CHANGES.items():
            results = []
            for library in (flow, torch):
                library.manual_seed(0)
                layer = change_it(library, made(library, name))
                given = x.double() if change in ("double", "to") else x
                results.append(trained(library, layer, flow.from_torch(given) if library is flow else given))
                assert type(layer).__name__ == name.removeprefix("Lazy")
            same(*results)


@pytest.mark.parametrize("name", LAZY)
def test_a_state_loaded_before_the_first_input_stays(name: str) -> None:
    x = inputs(name)[0]
    source = made(flow, name)
    source(flow.from_torch(x))
    state = source.state_dict()
    layer = made(flow, name).double()
    optimizer = flow.optim.SGD(layer.parameters(), lr=0.1)
    assert not layer.load_state_dict(state).missing_keys and layer.has_uninitialized_params() is False
    assert all(t.dtype is flow.float64 for t in layer.parameters())
    layer(flow.from_torch(x).double()).sum().backward()
    assert all(p is q for p, q in zip(optimizer.param_groups[0]["params"], layer.parameters(), strict=True))
    same(
        {n: t.float() for n, t in layer.named_parameters()},
        {n: flow.to_torch(state[n]) for n, _ in layer.named_parameters()},
    )
    assigned = made(flow, name)
    assert not assigned.load_state_dict(state, assign=True).missing_keys
    assert all(p.data_ptr() == state[n].data_ptr() for n, p in assigned.named_parameters())
    with pytest.raises(ShapeError, match="was loaded"):
        late = made(flow, name)
        late.load_state_dict(state)
        late(flow.from_torch(torch.cat([x, x], 1)))


def test_a_state_that_does_not_fit_changes_nothing() -> None:
    model = nn.Sequential(nn.LazyLinear(3), nn.Linear(3, 2))  # type: ignore[call-arg]
    state = nn.Sequential(nn.Linear(4, 3), nn.Linear(3, 5)).state_dict()
    with pytest.raises(CheckpointError, match="size mismatch"):
        model.load_state_dict(state)
    assert nn.parameter.is_lazy(model[0].weight)  # type: ignore[attr-defined]
    with pytest.raises(CheckpointError, match=r"size mismatch for 0\.weight"):
        model.load_state_dict({"0.weight": flow.ones(5, 4)}, strict=False)


def test_what_needs_values_says_that_there_are_none() -> None:
    layer = nn.LazyLinear(3)  # type: ignore[call-arg]
    for read in (
        lambda w: w + 1, lambda w: w.shape, lambda w: w.numpy(), flow.sum, lambda w: w.clone(), lambda w: w[0],
        lambda w: w.fill_(1), lambda w: flow.nn.functional.linear(flow.ones(2, 4), w), lambda w: w.numel(),
        lambda w: w.detach(), flow.to_torch,
    ):  # fmt: skip
        with pytest.raises(ShapeError, match="before its module's first input"):
            read(layer.weight)
    assert repr(layer.weight) == str(layer.weight) == f"{layer.weight}" == "<UninitializedParameter>"


def test_a_hook_runs_once() -> None:
    layer, calls = nn.LazyLinear(3), []  # type: ignore[call-arg]
    layer.register_forward_hook(lambda *given: calls.append("hook"))
    layer(flow.ones(2, 4))
    assert calls == ["hook"]


@on(2)
def test_a_layout_given_before_the_first_input_holds() -> None:
    P = flow.placement("cpu", ranks=[0, 1])
    layer = nn.Sequential(nn.LazyLinear(4)).to_global(P, {"*.weight": flow.sbp.split(1), "*": flow.sbp.broadcast})  # type: ignore[call-arg]
    optimizer = flow.optim.SGD(layer.parameters(), lr=0.1)
    layer(flow.ones(2, 6, placement=P, sbp=flow.sbp.broadcast)).sum().backward()
    before = layer[0].weight.numpy().copy()
    optimizer.step()
    assert layer[0].weight.sbp == (flow.sbp.split(1),) and layer[0].bias.sbp == (flow.sbp.broadcast,)
    assert abs(before - layer[0].weight.numpy() - 0.2).max() < 1e-6
