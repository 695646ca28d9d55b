"""Modules inside a graph: containers, what is said of the modules in them, and modules that several blocks hold."""

from __future__ import annotations

import dataclasses
import types
from collections import OrderedDict
from typing import Any

import pytest

import weft as flow
from weft import nn
from weft.core.errors import GraphError
from weft.graph.trace import settings_of
from weft.tensor.data import local_data

Static = nn.graph.GraphModule


class Layer(nn.Module):
    def __init__(self, width: int = 4) -> None:
        super().__init__()
        self.linear = nn.Linear(width, width)
        self.scale = 1.0

    def forward(self, x: Any) -> Any:
        return flow.tanh(self.linear(x)) * self.scale


class Parts(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.list = nn.ModuleList([Layer() for _ in range(3)])
        self.dict = nn.ModuleDict({"a": Layer(), "b": nn.ReLU()})
        self.parameter_list = nn.ParameterList([nn.Parameter(flow.ones(4) * 2)])
        self.parameter_dict = nn.ParameterDict({"0": nn.Parameter(flow.ones(4) * 3)})
        self.chain = nn.Sequential(Layer(), nn.Sequential(nn.ReLU()))


def through(parts: Any, x: Any) -> Any:
    """Whatever one does with containers; the same on modules and on their proxies."""
    for layer in parts.list:
        x = layer(x)
    for i in range(len(parts.list)):
        x = parts.list[i](x)
    x = parts.list[-1](parts.chain[0](x))
    for name in parts.dict:
        x = parts.dict[name](x)
    for name, layer in parts.dict.items():
        x = layer(x) if name in parts.dict else None
    for layer in (*parts.dict.values(), *parts.chain, *parts.list[1:]):
        x = layer(x)
    for i, p in enumerate(parts.parameter_list):
        x = x * p + parts.parameter_list[i]
    return x * parts.parameter_dict["0"]


def test_containers_are_used_as_outside() -> None:
    class Through(nn.Graph):
        def __init__(self, parts: nn.Module) -> None:
            super().__init__()
            self.parts = parts
            self.list, self.parameters_there = parts.list, parts.parameter_dict  # blocks of their own, too

        def build(self, x: Any) -> Any:
            assert all(isinstance(layer, nn.graph.ProxyModule) for _, layer in self.parts.dict.items())
            return through(self.parts, x) + self.list[0](x) * self.parameters_there["0"]

    parts = Parts()
    x = flow.tensor([[0.1, -0.2, 0.3, 0.4]])
    expected = through(parts, x) + parts.list[0](x) * parts.parameter_dict["0"]
    assert Through(parts)(x).tolist() == expected.tolist()


def test_settings_made_in_a_loop_over_modules() -> None:
    class Settings(nn.Graph):
        def __init__(self, parts: nn.Module) -> None:
            super().__init__()
            self.parts = parts
            for block in self.parts.modules():
                if isinstance(block.to(nn.Module), Layer):
                    block.to(Static).activation_checkpointing = True
            self.first = parts.list[0]  # says nothing of it
            for name, block in self.parts.named_modules():
                if name == "chain.0.linear":
                    block.to(Static).set_stage(3)

    graph = Settings(Parts())
    said = {s.path: s for s in (known.settings() for known in settings_of(graph).values())}
    assert [path for path, s in said.items() if s.checkpoint] == [
        "parts.list.0", "parts.list.1", "parts.list.2", "parts.dict.a", "parts.chain.0",
    ]  # fmt: skip
    assert said["parts.chain.0.linear"].stage == 3
    with pytest.raises(AttributeError):
        graph.first.to(Static).activation_checkpoint = True  # a slip is no setting


def test_a_module_that_two_blocks_hold_keeps_what_one_says_of_it() -> None:
    layer = Layer()

    class Twice(nn.Graph):
        def __init__(self) -> None:
            super().__init__()
            self.said = nn.Sequential(layer)
            self.said[0].to(Static).activation_checkpointing = True
            self.unsaid = nn.Sequential(layer, layer)
            self.add_optimizer(flow.optim.SGD(layer.parameters(), lr=0.1))

        def build(self, x: Any) -> Any:
            loss = self.unsaid(x).sum()
            loss.backward()
            return loss

    graph = Twice()
    assert graph.unsaid[0] is graph.unsaid[1]
    graph(flow.ones(2, 4))
    tanhs = [n for n in graph.job.nodes if n.op == "tanh"]
    assert len(tanhs) > 2  # they are computed again for backward


def test_an_attribute_set_on_a_block_is_the_modules() -> None:
    class Scaled(nn.Graph):
        def __init__(self, layer: nn.Module) -> None:
            super().__init__()
            self.layer = layer
            self.layer.scale = 3.0

        def build(self, x: Any) -> Any:
            return self.layer(x)

    layer = Layer()
    x = flow.ones(1, 4)
    plain = layer(x)
    assert Scaled(layer)(x).tolist() == (plain * 3).tolist() and layer.scale == 3.0


class Given(nn.Graph):
    def build(self, x: Any, other: Any = None) -> Any:
        return x * other if isinstance(other, (int, float)) else x


def test_a_number_is_what_it_was() -> None:
    x = flow.tensor([1, 2])
    graph = Given()
    assert graph(x, 2).dtype is flow.int64
    with pytest.raises(GraphError, match=r"Expected 2 \(int\), got 2.0 \(float\)"):
        graph(x, 2.0)
    with pytest.raises(GraphError, match=r"got True \(bool\)"):
        graph(x, True)
    nan = Given()
    nan(flow.ones(1), float("nan"))
    assert nan(flow.ones(1), float("nan")).isnan().item()


def test_arguments_and_results_whose_tensors_nobody_would_find() -> None:
    x = flow.ones(2)
    for hidden, says in ((x.numpy(), "ndarray.*flow.tensor"), ({1}, "set: tensors are found in")):
        with pytest.raises(GraphError, match=says):
            Given()(x, hidden)
    assert Given()(local_data(x, "")).tolist() == [1.0, 1.0]  # torch's tensors are taken as Weft's

    class Hides(nn.Graph):
        def build(self, x: Any) -> Any:
            return {x}

    with pytest.raises(GraphError, match="a result of a graph is a set"):
        Hides()(x)

    class Holds(nn.Graph):
        def build(self, x: Any) -> Any:
            return types.SimpleNamespace(name="y", y=[x + 1])

    with pytest.raises(GraphError, match=r"SimpleNamespace, whose 'y' is a tensor of the graph.*return the tensors"):
        Holds()(x)


@dataclasses.dataclass(frozen=True)
class Record:
    x: Any
    more: Any = None


def test_tensors_of_dataclasses_are_arguments_and_results() -> None:
    class Doubles(nn.Graph):
        def build(self, given: Record) -> Record:
            return Record(given.x * 2, {"inner": Record(given.more[0] + given.x), "n": given.more[1]})

    graph = Doubles()
    for step in range(2):
        given = Record(flow.ones(2) * step, (flow.arange(2.0), 3))
        found, expected = graph(given), Doubles.build(graph, given)
        assert type(found) is Record and type(found.more["inner"]) is Record and found.more["n"] == 3
        assert found.x.tolist() == expected.x.tolist() and found.more["inner"].more is None
        assert found.more["inner"].x.tolist() == expected.more["inner"].x.tolist()
        assert given.x.tolist() == [step, step]
    with pytest.raises(GraphError, match="compiled for other arguments"):
        graph(Record(flow.ones(2), (flow.arange(2.0), 4)))


@dataclasses.dataclass
class Named(OrderedDict[str, Any]):
    """As diffusers and transformers have their outputs: its items are its attributes, and the first is required."""

    sample: Any
    more: Any = None

    def __post_init__(self) -> None:
        self.update({k: v for k, v in vars(self).items() if v is not None})

    def __setitem__(self, key: str, value: Any) -> None:
        super().__setitem__(key, value)
        setattr(self, key, value)


def test_a_dataclass_that_is_a_dict_keeps_both() -> None:
    class Doubles(nn.Graph):
        def build(self, given: Named) -> Named:
            return Named(given.sample * 2, given["sample"] + 1)

    for _ in range(2):
        found = Doubles()(Named(flow.ones(2)))
        assert type(found) is Named and [*found] == ["sample", "more"] and found["more"] is found.more
        assert found["sample"].tolist() == found.sample.tolist() == found.more.tolist() == [2, 2]


def test_a_graph_is_not_compiled_inside_of_another() -> None:
    inner = Given()

    class Outer(nn.Graph):
        def build(self, x: Any) -> Any:
            inner.compile(x)
            return inner(x)

    with pytest.raises(GraphError, match="inside of another graph's build"):
        Outer()(flow.ones(2))


class Applies(nn.Graph):
    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def build(self, x: Any) -> Any:
        return self.model(x)


def _assign(model: Any) -> None:
    model[1].bias = nn.Parameter(flow.zeros(3))


def _remove(model: Any) -> None:
    del model[1].bias


def _tie(model: Any) -> None:
    model[0].weight = model[1].weight


def _register(model: Any) -> None:
    model[1].register_parameter("bias", nn.Parameter(flow.zeros(3)))


@pytest.mark.parametrize("exchange", [_assign, _remove, _tie, _register])
def test_a_parameter_that_is_replaced_is_noticed(exchange: Any) -> None:
    model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
    graph = Applies(model)
    before = graph(flow.ones(2, 3)).numpy()
    exchange(model)
    for _ in range(2):
        with pytest.raises(
            GraphError, match=r"compiled with model\.\d\.(bias|weight), .* another parameter in its place"
        ):
            graph(flow.ones(2, 3))
    if exchange is _assign:
        after = Applies(model)(flow.ones(2, 3)).numpy()
        assert (after != before).any()


def test_a_parameter_that_the_graph_does_not_read_may_be_replaced() -> None:
    model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))

    class Half(Applies):
        def build(self, x: Any) -> Any:
            return next(iter(self.model.children()))(x)

    graph = Half(model)
    before = graph(flow.ones(2, 3)).tolist()
    model[1].weight = nn.Parameter(flow.zeros(3, 3))
    assert graph(flow.ones(2, 3)).tolist() == before


def test_a_module_that_is_replaced_is_noticed() -> None:
    model = nn.Sequential(nn.Linear(3, 3), nn.Sequential(nn.Linear(3, 3)))
    graph = Applies(model)
    graph(flow.ones(2, 3))
    model[1] = nn.Sequential(nn.Linear(3, 3))
    with pytest.raises(GraphError, match=r"compiled with model\.1\.0\.weight"):
        graph(flow.ones(2, 3))
