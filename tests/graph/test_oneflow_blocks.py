"""What programs written for OneFlow 0.9 ask of graphs and of their blocks, inside of `forward` and outside."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

import weft as flow
from weft import nn
from weft.core.errors import GraphError
from weft.framework.tensor import TensorTuple
from weft.nn.graph import GraphModule, GraphTensor, Proxy, ProxyModule

P = flow.placement("cpu", ranks=[0])


class Inner(nn.Module):
    def __init__(self, seen: list[Any]) -> None:
        super().__init__()
        self.linear, self.w, self.seen = nn.Linear(2, 2), nn.Parameter(flow.ones(2)), seen

    def forward(self, x: Any) -> Any:
        free = flow.ones(2)
        self.seen += [isinstance(m, Proxy) for m in (self, self.linear, self.w, nn.ReLU(), x)]
        assert isinstance(self.linear, ProxyModule) is isinstance(self.linear, Proxy)
        self.seen += [t.is_lazy for t in (self.w, self.linear.weight, x)] + [self.w.is_eager]
        self.seen += [self.w.to(flow.Tensor) is self.w, self.linear.to(nn.Module) is self.linear]
        if flow.jit.is_tracing():
            self.seen.append(self.linear.to(GraphModule).stage_id)
            self.linear.to(GraphModule).activation_checkpointing = True
        return self.linear(x) * self.w * free


class Holder(nn.Graph):
    def __init__(self, module: nn.Module, f: Any = None) -> None:
        super().__init__()
        self.m, self.f = module, f

    def build(self, x: Any) -> Any:
        return (self.f or self.m)(x)


def test_blocks_know_themselves_inside_of_forward() -> None:
    seen: list[Any] = []
    module = Inner(seen)
    graph = Holder(module)
    graph.m.linear.to(GraphModule).set_stage(0, None)
    x = flow.ones(1, 2)
    assert graph(x).tolist() == module(x).tolist()
    inside, outside = seen[:12], seen[12:]
    assert inside == [True, True, False, False, False, True, True, True, False, True, True, 0]
    assert outside == [False] * 5 + [False] * 3 + [True, True, True]
    assert isinstance(graph.m.linear, Proxy) and not isinstance(module.linear, Proxy)
    with pytest.raises(GraphError, match="no graph that is being traced"):
        module.linear.to(GraphModule)


def test_blocks_have_the_names_of_their_places() -> None:
    graph = Holder(Inner([]))
    graph.m.register_buffer("b", flow.ones(1))
    linear = graph.m.linear
    statics = [x.to(GraphModule) for x in (graph.m, linear)] + [x.to(GraphTensor) for x in (linear.bias, graph.m.b)]
    assert [(s.name_prefix, s.name, s.type) for s in statics] == [
        ("", "m", "MODULE"), ("m.", "linear", "MODULE"), ("m.linear.", "bias", "PARAMETER"), ("m.", "b", "BUFFER")
    ]  # fmt: skip


def test_what_forward_says_of_a_module_counts_when_it_is_called() -> None:
    class Checkpointed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Sequential(nn.Linear(2, 2), nn.Tanh(), nn.Linear(2, 2))

        def forward(self, x: Any) -> Any:
            if flow.jit.is_tracing():
                self.inner.to(GraphModule).activation_checkpointing = True
            return self.inner(x).sum()

    class Train(nn.Graph):
        def __init__(self, m: nn.Module) -> None:
            super().__init__()
            self.m = m
            self.add_optimizer(flow.optim.SGD(m.parameters(), lr=0.1), is_sparse=True)

        def build(self, x: Any) -> Any:
            loss = self.m(x)
            loss.backward()
            return loss

    graph = Train(Checkpointed())
    graph.compile(flow.ones(1, 2))
    assert [n.op for n in graph.job.nodes].count("tanh") == 2  # once more for backward


def test_a_parameter_has_a_stage_of_its_own() -> None:
    graph = Holder(nn.Linear(2, 2))
    static = graph.m.weight.to(GraphTensor)
    static.set_stage(1, P)
    assert graph.m.weight.to(GraphTensor) is static and (static.stage_id, static.stage_placement) == (1, P)
    assert graph.m.bias.to(GraphTensor).stage_id is None
    with pytest.raises(GraphError, match="counted from 0"):
        static.set_stage(-1)


def test_blocks_have_the_older_names_together() -> None:
    graph = Holder(nn.Linear(2, 2))
    assert graph.m.config is graph.m.to(GraphModule) and graph.m.origin is graph.m.to(nn.Module)

    class Named(nn.Module):
        config, origin = "its own", "too"

    assert (Holder(Named()).m.config, Holder(Named()).m.origin) == ("its own", "too")


def test_a_module_that_is_called_unregistered_is_told_once() -> None:
    outside = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    with pytest.warns(UserWarning, match=r"Sequential\(\) is called in a nn.Graph, but not registered") as told:
        Holder(nn.ReLU(), lambda x: outside(outside(x)))(flow.ones(1, 2))
    assert len(told) == 1 and told[0].filename == __file__
    inner = Holder(nn.Linear(2, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Holder(outside)(flow.ones(1, 2))
        Holder(nn.ReLU(), inner)(flow.ones(1, 2))  # the modules of a graph that becomes a part of it
        Holder(nn.ReLU(), nn.Tanh())(flow.ones(1, 2))  # nothing there to be trained or saved


def test_compiling_gives_outputs_and_runs_nothing() -> None:
    module = nn.Linear(2, 3)
    graph = Holder(module, lambda x: {"y": module(x), "n": 3})
    made = graph._compile(flow.ones(1, 2))
    assert made["n"] == 3 and made["y"].tolist() == [[0.0] * 3] and graph.is_compiled
    assert graph(flow.ones(1, 2))["y"].tolist() == module(flow.ones(1, 2)).tolist()
    x = flow.ones(4, 2, placement=P, sbp=flow.sbp.split(0))
    placed = Holder(nn.Linear(2, 2).to_global(P, flow.sbp.broadcast))._compile(x)
    assert placed.sbp == (flow.sbp.split(0),) and placed.shape == (4, 2)


def test_a_function_becomes_a_graph() -> None:
    def twice(x: Any, factor: float = 2.0) -> Any:
        return x * factor

    graph = nn.Graph.trace(twice)
    assert isinstance(graph, nn.Graph) and graph(flow.ones(2)).tolist() == [2.0, 2.0] and graph.name == "twice_0"
    with pytest.raises(GraphError, match="takes a function; got Tensor"):
        nn.Graph.trace(flow.ones(2))


def test_a_tuple_of_tensors_goes_through_a_graph() -> None:
    class Same(nn.Graph):
        def build(self, both: Any) -> Any:
            return both

    found = Same()(TensorTuple([flow.ones(1), flow.zeros(2)]))
    assert type(found) is TensorTuple and [t.tolist() for t in found] == [[1.0], [0.0, 0.0]]


def test_what_OneFlow_keeps_in_protocol_buffers_is_text() -> None:
    graph = Holder(nn.Linear(2, 2))
    assert graph._graph_proto is None and "training=False" in graph._config_proto == graph.config.proto
    graph(flow.ones(1, 2))
    assert graph._graph_proto == str(graph.job) == graph._full_graph_proto == graph._compiled_graph_proto
    assert repr(graph).startswith(graph._shallow_repr())
    with pytest.warns(UserWarning, match=r"config\.proto\.set_enable_inplace has no effect here"):
        graph.config.proto.set_enable_inplace(True)
    with pytest.raises(AttributeError, match=r"config\.proto is text here, without 'set_job_name'"):
        graph.config.proto.set_job_name("twice")


def test_programs_know_that_they_are_traced() -> None:
    def ask() -> list[bool]:
        return [flow.jit.is_tracing(), flow.compiler.is_compiling(), flow.jit.is_scripting()]

    seen: list[Any] = []
    Holder(nn.ReLU(), lambda x: seen.append(ask()) or x)(flow.ones(1))
    assert seen == [[True, True, False]] and ask() == [False, False, False]
