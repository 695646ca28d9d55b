"""`module.__dict__`, as programs read, copy and pickle it."""

from __future__ import annotations

import copy
import functools
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

import pytest
import torch

import weft as flow
from weft import nn
from weft.core.errors import ArgumentError

TABLES = "_parameters", "_buffers", "_modules"


def program(lib: Any) -> Any:
    """A module of a library, beside a class that pickles itself."""

    class Net(lib.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner, self.w = lib.nn.Linear(2, 3), lib.nn.Parameter(lib.ones(2))
            self.register_buffer("b", lib.zeros(2), persistent=False)
            self.names, self.lock = ["a"], print

        def __getstate__(self) -> Any:
            state = self.__dict__.copy()
            del state["lock"]
            return state

        def __setstate__(self, state: Any) -> None:
            self.__dict__.update(state)
            self.lock = len

        @functools.cached_property
        def twice(self) -> Any:
            return self.names * 2

    return Net()


@pytest.fixture(params=[torch, flow], ids=["torch", "weft"])
def net(request: pytest.FixtureRequest) -> Any:
    return program(request.param)


def test_members_lie_in_tables(net: Any) -> None:
    assert {k for k in net.__dict__ if not k.startswith("_")} - {"training"} == {"names", "lock"}
    assert [[*vars(net)[table]] for table in TABLES] == [["w"], ["b"], ["inner"]]
    assert "w" not in net.__dict__ and net.__dict__.get("inner") is None and set(TABLES) <= {*net.__dict__}
    with pytest.raises(KeyError):
        net.__dict__["w"]
    with pytest.raises(KeyError):
        del net.__dict__["inner"]


def test_copying_attributes_by_name_shares_no_member(net: Any) -> None:
    """As an average of a model's weights takes over its options."""
    mean = copy.deepcopy(net)
    net.names, net.rate = ["b"], 3
    for k, v in net.__dict__.items():
        if not k.startswith("_"):
            setattr(mean, k, v)
    assert (mean.names, mean.rate) == (["b"], 3)
    assert mean.w is not net.w and mean.inner is not net.inner and mean.b is not net.b


def test_it_is_written_through(net: Any) -> None:
    net.__dict__["rate"] = 2
    net.__dict__["_parameters"]["v"] = net.w
    net.__dict__.update(size=4)
    assert (net.rate, net.size) == (2, 4) and net.v is net.w
    assert [n for n, _ in net.named_parameters(remove_duplicate=False)] == ["w", "v", "inner.weight", "inner.bias"]
    del net.__dict__["rate"]
    assert not hasattr(net, "rate") and net.twice == ["a", "a"] and net.__dict__["twice"] is net.twice


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])
def test_a_class_that_pickles_its_dict(net: Any, copied: Any) -> None:
    made = copied(net)
    deep = copied is copy.deepcopy
    assert made.lock is len and (made.w is net.w) is not deep and (made.inner is net.inner) is not deep
    assert [*made.state_dict()] == [*net.state_dict()] == ["w", "inner.weight", "inner.bias"]
    assert [n for n, _ in made.named_buffers()] == ["b"]


def test_a_replica_takes_over_another_dict(net: Any) -> None:
    replica = net.__new__(type(net))
    replica.__dict__ = net.__dict__.copy()
    replica._parameters = {}
    assert replica.inner is net.inner and next(n for n, _ in net.named_parameters()) == "w"
    assert not hasattr(replica, "w") and replica.names is net.names


def test_one_modules_dict_as_anothers() -> None:
    a, b = program(flow), flow.nn.Module()
    b.__dict__ = a.__dict__
    assert b.w is a.w and {**a.__dict__ | {"rate": 1}}["rate"] == 1 and repr(b.__dict__) == repr(dict(vars(a)))


def test_a_member_is_not_shadowed() -> None:
    net = program(flow)
    with pytest.raises(ArgumentError, match=r"'w' is a parameter of this Net: set it in module\._parameters"):
        net.__dict__["w"] = flow.ones(2)
    assert net.w.is_leaf


def test_of_a_module_from_torch() -> None:
    net = flow.from_torch(torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.LSTM(3, 4)))
    assert [*net.__dict__["_modules"]] == ["0", "1"] and "weight" not in net[0].__dict__
    twin = copy.deepcopy(net)
    x = flow.ones(5, 2)
    assert twin[1](twin[0](x))[0].tolist() == net[1](net[0](x))[0].tolist() and twin[0].weight is not net[0].weight
    assert isinstance(flow.to_torch(twin)[1], torch.nn.LSTM)


def _mapped(values: Any) -> Any:
    """As libraries map a function over a tree: tensors doubled, and containers rebuilt by their type."""
    if isinstance(values, (flow.Tensor, torch.Tensor)):
        return values.detach() * 2
    if not isinstance(values, Mapping):
        return values
    kind: Any = type(values)
    return kind(OrderedDict((k, _mapped(v)) for k, v in values.items()))


@pytest.mark.parametrize("library", [torch, flow], ids=["torch", "weft"])
def test_what_is_rebuilt_by_its_type_is_a_dict(library: Any) -> None:
    net = library.nn.BatchNorm1d(2)
    made = _mapped(net.__dict__)
    assert type(made) is type(made["_buffers"]) is dict and made["_parameters"]["weight"].tolist() == [2, 2]
    net.__dict__.update({"_buffers": made["_buffers"], "eps": made["eps"]})
    assert net.running_var.tolist() == [2, 2] and net.weight.tolist() == [1, 1] and net.eps == made["eps"]


class Mixin:
    """A class with attributes of its own."""

    def named(self) -> list[str]:
        return sorted(self.__dict__)


class Slotted:
    __slots__ = ()


def mixed(lib: Any) -> list[Any]:
    """What a module shows of itself that other classes come before."""

    class First(Slotted, lib.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner, self.n = lib.nn.Linear(2, 3), 1

    class Second(Mixin, First): ...

    seen: list[Any] = []
    for kind in (First, Second, type("Third", (Mixin, lib.nn.Linear), {})):
        made = kind(2, 3) if kind.__name__ == "Third" else kind()
        made.__dict__["given"] = 5
        again = dict(vars(copy.deepcopy(made)))
        tables = {table: sorted(again[table]) for table in TABLES}
        seen.append((made.given, tables, {k: v for k, v in again.items() if k[0] != "_" and k != "training"}))
    return seen


def test_members_are_shown_where_other_classes_come_first() -> None:
    assert mixed(flow) == mixed(torch)
    assert "inner" not in Mixin.named(type("M", (Mixin, nn.Sequential), {})(OrderedDict(inner=nn.ReLU())))
