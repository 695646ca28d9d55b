"""What lists and dicts of modules do, beside torch's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch

import weft as flow


def lists(nn: Any) -> Iterator[Any]:
    layers = nn.ModuleList([nn.Linear(1, 1), nn.Linear(1, 1), nn.ReLU()])
    yield repr(layers), repr(nn.ModuleList()), repr(layers + [nn.Sequential(nn.Tanh())])
    yield repr(layers.pop(1)), len(layers), [n for n, _ in layers.named_children()]
    chain = nn.Sequential(nn.Tanh(), nn.ReLU())
    yield repr(chain * 2), repr(2 * chain), repr(chain + nn.Sequential(nn.GELU())), repr(chain.pop(0)), len(chain)
    chain *= 3
    yield repr(chain)


def dicts(nn: Any) -> Iterator[Any]:
    one = nn.Parameter((flow if nn is flow.nn else torch).ones(2))
    named = nn.ParameterDict({"x": one})
    yield named.get("x") is one, named.get("y"), named.get("y", 3), named.setdefault("y", one) is one, list(named)
    more = named | {"z": one}
    yield sorted(more.keys()), sorted(named.copy().keys()), more["z"] is one, list(reversed(more)) == [*"zyx"]
    named |= {"w": one}
    yield len(named), named.popitem()[0], len(named), sorted(named.fromkeys(["a", "b"], one).keys())


def others_beside(nn: Any) -> Iterator[Any]:
    """A subclass's own parameters and buffers are no members."""
    lib = flow if nn is flow.nn else torch

    class Scaled(nn.Sequential):
        def __init__(self) -> None:
            super().__init__(nn.Identity(), nn.ReLU())
            self.scale = nn.Parameter(lib.ones(1) * 2)
            self.register_buffer("shift", lib.ones(1))

        def forward(self, x: Any) -> Any:
            return super().forward(x) * self.scale + self.shift

    class Named(nn.ModuleDict):
        def __init__(self) -> None:
            super().__init__({"a": nn.ReLU()})
            self.scale = nn.Parameter(lib.ones(1))

    scaled = Scaled()
    yield len(scaled), scaled(lib.ones(2)).tolist(), [n for n, _ in scaled.named_parameters()], len(list(scaled))
    yield len(Named()), list(Named()), "scale" in Named(), list(Named().state_dict())


@pytest.mark.parametrize("program", [lists, dicts, others_beside])
def test_the_same_as_torchs(program: Any) -> None:
    for ours, theirs in zip(program(flow.nn), program(torch.nn), strict=True):
        assert ours == theirs


@pytest.mark.parametrize("lib", [flow, torch])
def test_lists_of_modules_hold_nothing_else(lib: Any) -> None:
    for make in (lambda: lib.nn.ModuleList([1]), lambda: lib.nn.Sequential(lib.nn.ReLU(), "tanh")):
        with pytest.raises(TypeError):
            make()
    layers = lib.nn.ModuleList([lib.nn.ReLU()])
    with pytest.raises(TypeError):
        layers.append(lib.tanh)
    layers.name = 1
    assert len(layers) == 1


def test_lists_of_global_parameters_print() -> None:
    place = flow.placement("cpu", [0])
    w = flow.nn.Parameter(flow.ones(2, 3, placement=place, sbp=flow.sbp.broadcast))
    says = "Parameter containing: [weft.float32 of size 2x3 on cpu:[0]]"
    assert says in repr(flow.nn.ParameterList([w])) and says in repr(flow.nn.ParameterDict({"w": w}))
