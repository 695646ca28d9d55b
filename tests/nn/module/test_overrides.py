"""What a module's methods call of its children's, where a child overrides a method: whatever torch calls, with the
arguments that torch gives."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable
from typing import Any

import pytest
import torch

import weft as flow
from tests.ranks import on
from weft import nn
from weft.core.errors import CheckpointError

NAMES = [
    name
    for name, method in vars(torch.nn.Module).items()
    if inspect.isfunction(method)
    and hasattr(nn.Module, name)
    and name not in ("__init__", "__getattr__", "__setattr__", "__delattr__")  # members are ordinary attributes here
]


def net(m: Any, layer: Any = None) -> Any:
    class Net(m.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            made = layer or m.nn.BatchNorm1d
            self.a, self.b = made(2), m.nn.Sequential(made(2))

        def forward(self, x: Any) -> Any:
            return self.b(self.a(x))

    return Net()


def of_all(*names: str) -> Callable[[Any, Any], Any]:
    return lambda m, x: [list(getattr(x, name)()) for name in names]


CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "train": lambda m, x: x.train(),
    "train(False)": lambda m, x: x.train(False),
    "eval": lambda m, x: x.eval(),
    "apply": lambda m, x: x.apply(lambda child: None),
    "_apply": lambda m, x: x._apply(lambda t: t),
    "double": lambda m, x: x.double(),
    "float": lambda m, x: x.float(),
    "half": lambda m, x: x.half(),
    "bfloat16": lambda m, x: x.bfloat16(),
    "cpu": lambda m, x: x.cpu(),
    "type": lambda m, x: x.type(m.float64),
    "to(dtype)": lambda m, x: x.to(m.float64),
    "to(device)": lambda m, x: x.to("cpu"),
    "to_empty": lambda m, x: x.to_empty(device="cpu"),
    "to_empty(recurse=False)": lambda m, x: x.to_empty(device="cpu", recurse=False),
    "share_memory": lambda m, x: x.share_memory(),
    "requires_grad_": lambda m, x: x.requires_grad_(False),
    "zero_grad": lambda m, x: x.zero_grad(),
    "members": of_all("parameters", "named_parameters", "buffers", "named_buffers"),
    "modules": of_all("modules", "named_modules", "children", "named_children"),
    "state_dict": lambda m, x: x.state_dict(),
    "state_dict(prefix)": lambda m, x: x.state_dict(prefix="p.", keep_vars=True),
    "load_state_dict": lambda m, x: x.load_state_dict(net(m).state_dict()),
    "load_state_dict(assign)": lambda m, x: x.load_state_dict(net(m).state_dict(), assign=True),
    "load_state_dict({})": lambda m, x: x.load_state_dict({}, strict=False),
    "get_submodule": lambda m, x: x.get_submodule("b.0"),
    "get_parameter": lambda m, x: x.get_parameter("b.0.weight"),
    "set_submodule": lambda m, x: x.set_submodule("b.0.x", m.nn.Linear(1, 1)),
    "deepcopy": lambda m, x: copy.deepcopy(x),
    "repr": lambda m, x: repr(x),
    "call": lambda m, x: x(m.ones(3, 2)),
}


def shown(m: Any, x: Any) -> Any:
    """An argument as it is compared."""
    if isinstance(x, (tuple, list)):
        return [shown(m, e) for e in x]
    if isinstance(x, dict):
        return sorted(k for k in x if k != "writes")  # of ours: what is written once everything fits
    if x is None or isinstance(x, (bool, int, str)):
        return x
    return "function" if inspect.isfunction(x) else "tensor" if isinstance(x, m.Tensor) else type(x).__name__


def seen(m: Any, method: str, call: Callable[[Any, Any], Any]) -> list[Any]:
    """The calls of a method that children override."""
    found: list[Any] = []
    base = m.nn.BatchNorm1d

    def over(self: Any, *args: Any, **kwargs: Any) -> Any:
        found.append(None if method == "__setstate__" else shown(m, [args, kwargs]))
        return getattr(base, method)(self, *args, **kwargs)

    tried = net(m, type("Child", (base,), {method: over}))
    found.clear()
    call(m, tried)
    return found


@pytest.mark.parametrize("call", CALLS)
def test_whatever_torch_calls_is_called(call: str) -> None:
    for method in NAMES:
        assert seen(flow, method, CALLS[call]) == seen(torch, method, CALLS[call]), method


def test_a_frozen_layer_stays_frozen() -> None:
    class Frozen(nn.BatchNorm1d):
        def train(self, mode: bool = True) -> Any:
            return super().train(False)

    model = nn.Sequential(Frozen(2), nn.Sequential(Frozen(2), nn.Dropout()))
    model.train()(flow.randn(8, 2))
    assert [m.training for m in model.modules()] == [True, False, True, False, True]
    assert model[0].running_mean.tolist() == [0.0, 0.0] and int(model[0].num_batches_tracked) == 0


@on(2)
def test_a_layout_reaches_what_a_child_keeps_beside_its_members() -> None:
    class Cached(nn.Linear):
        def __init__(self) -> None:
            super().__init__(2, 4)
            self.table = [flow.ones(4)]

        def _apply(self, fn: Any, recurse: bool = True) -> Any:
            super()._apply(fn, recurse)
            self.table = [fn(t) for t in self.table]
            return self

    model = nn.Sequential(Cached()).to_global(flow.placement("cpu", [0, 1]), flow.sbp.split(0))
    assert model[0].table[0].sbp == (flow.sbp.split(0),) and model[0].table[0].shape == (4,)
    assert model.to_local()[0].table[0].shape == (2,)


@pytest.mark.parametrize("cast", ["double", "half", "float", "bfloat16", "cpu", "type"])
def test_casts_leave_a_modules_own_to_alone(cast: str) -> None:
    class Own(nn.Linear):
        def to(self, *args: Any, **kwargs: Any) -> Any:
            return getattr(self, cast)(*([flow.float64] if cast == "type" else []))  # as torch's `to` may

    getattr(Own(2, 2), cast)(*([flow.float64] if cast == "type" else []))
    Own(2, 2).to("anything")


class Doubled(nn.Linear):
    """Keeps twice its weight, as it was loaded."""

    def _load_from_state_dict(self, *args: Any) -> None:
        super()._load_from_state_dict(*args)
        self.twice = self.weight.detach() * 2


@pytest.mark.parametrize("assign", [False, True])
def test_an_override_looks_at_what_it_has_loaded(assign: bool) -> None:
    model = nn.Sequential(Doubled(2, 2), nn.Linear(2, 2))
    before = model[0].weight.tolist()
    state = {k: flow.ones(2, 2) if k.endswith("weight") else flow.ones(2) for k in model.state_dict()}
    model.load_state_dict(state, assign=assign)
    assert model[0].twice.tolist() == [[2.0, 2.0], [2.0, 2.0]]
    model = nn.Sequential(Doubled(2, 2), nn.Linear(2, 2))
    before = model[0].weight.tolist()
    with pytest.raises(CheckpointError, match="left as it was"):
        model.load_state_dict(state | {"1.bias": flow.ones(3)}, assign=assign)
    assert model[0].weight.tolist() == before


def test_a_state_of_before_batches_were_counted() -> None:
    state = dict(nn.BatchNorm1d(2).state_dict())
    del state["num_batches_tracked"]
    nn.BatchNorm1d(2).load_state_dict(state)
