"""Graphs that take inputs of any form: as eager training, with what was compiled for the forms called last."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import weft as flow
from weft import nn
from weft.core.errors import CompileError, GraphError
from weft.launch import spawn_threads

SIZES = (4, 6, 4, 8, 6, 4)


def trained(placement: Any = None) -> None:
    S, B = flow.sbp.split(0), flow.sbp.broadcast
    where = {} if placement is None else {"placement": placement, "sbp": S}

    def model() -> tuple[Any, Any]:
        flow.manual_seed(3)
        made = nn.Linear(3, 2)
        made = made if placement is None else made.to_global(placement, B)
        return made, flow.optim.SGD(made.parameters(), lr=0.1, momentum=0.9)

    @nn.Graph.with_dynamic_input_shape(size=2)
    class Train(nn.Graph):
        """Trains."""

        def __init__(self) -> None:
            super().__init__()
            self.m, optimizer = model()
            self.add_optimizer(optimizer)

        def build(self, x: Any) -> Any:
            loss = self.m(x).square().mean()
            loss.backward()
            return loss

    eager, optimizer = model()
    graph, plans, other = Train(), [], nn.Graph.trace(lambda x: x + 1)
    for n in SIZES:
        x = flow.ones(n, 3, **where) * n
        loss = eager(x).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        assert graph(x).item() == pytest.approx(loss.item(), rel=1e-5)
        plans.append(graph.plan)
        assert other(flow.ones(n, 3, **where) if n == 4 else flow.ones(4, 3, **where)).shape == (4, 3)
    assert graph.state_dict()["m"]["weight"].numpy() == pytest.approx(eager.weight.numpy(), rel=1e-5)
    assert plans[2] is plans[0] and plans[4] is not plans[1] and plans[5] is not plans[2]
    assert (Train.__name__, Train.__doc__, graph.name[:6]) == ("Train", "Trains.", "Train_")
    graph.close()
    with pytest.raises(GraphError, match="was closed"):
        graph(flow.ones(4, 3, **where))


def test_it_trains_as_eager_does() -> None:
    trained()


def test_over_ranks() -> None:
    spawn_threads(2, lambda: trained(flow.placement.all("cpu")))


@pytest.mark.parametrize("size", [0, True, 1.5])
def test_it_keeps_at_least_one(size: Any) -> None:
    with pytest.raises(GraphError, match="at least one form is kept"):
        nn.Graph.with_dynamic_input_shape(size=size)


def test_parentheses_may_be_left_out() -> None:
    @nn.Graph.with_dynamic_input_shape
    class Twice(nn.Graph):
        def build(self, x: Any) -> Any:
            return x * 2

    twice = Twice()
    assert [twice(flow.ones(n)).tolist() for n in (1, 2)] == [[2.0], [2.0, 2.0]]


def scaled_by(weight: float) -> tuple[Any, Any]:
    """A graph whose __init__ is decorated, as programs for OneFlow 1.0 do, and its module."""

    class Scaled(nn.Graph):
        @nn.Graph.with_dynamic_input_shape(size=9, enable_shared=True)
        def __init__(self, model: Any) -> None:
            super().__init__(enable_get_runtime_state_dict=True)
            self.model = model

        def build(self, x: Any) -> Any:
            return self.model(x)

    class Named(Scaled):
        @nn.Graph.with_dynamic_input_shape(size=3)
        def __init__(self, model: Any) -> None:
            super().__init__(model)

    model = nn.Linear(2, 1, bias=False)
    nn.init.constant_(model.weight, weight)
    return Named(model), model


def test_its_compiled_graphs_are_saved_and_loaded(tmp_path: Path) -> None:
    graph, model = scaled_by(2.0)
    assert isinstance(graph, nn.Graph) and type(graph).__name__ == "Named" and not graph.is_compiled
    graph._dynamic_input_graph_cache.set_cache_size(2)
    for n in (1, 2, 3):
        assert graph(flow.ones(n, 2)).tolist() == [[4.0]] * n
    nn.init.constant_(model.weight, 3.0)
    assert graph(flow.ones(2, 2)).tolist() == [[6.0]] * 2
    state = graph.runtime_state_dict(with_eager=True)
    assert len(state) == 2 and all(part["plan"] for part in state.values())
    flow.save(state, tmp_path / "graphs")
    other, model = scaled_by(0.0)
    other.load_runtime_state_dict(flow.load(tmp_path / "graphs"))
    plan = other.plan
    assert model.weight.tolist() == [[3.0, 3.0]] and other(flow.ones(2, 2)).tolist() == [[6.0]] * 2
    assert other.plan is plan and other(flow.ones(1, 2)).tolist() == [[6.0]] and other.plan is not plan
    for one in (graph, other):
        one.close()


def test_what_forms_share_is_shared_once_loaded(tmp_path: Path) -> None:
    model, one, ten = nn.Linear(2, 1), flow.zeros(1), flow.zeros(1)
    optimizer = flow.optim.Adam(model.parameters(), lr=0.1)

    class Counts(nn.Graph):
        def __init__(self) -> None:
            super().__init__()
            self.model = model
            self.add_optimizer(optimizer)

        def build(self, x: Any) -> Any:
            for t, n in ((one, 1), (ten, 10)) if len(x) == 1 else ((ten, 10), (one, 1)):
                t.add_(n)  # in another order they have other names
            loss = self.model(x).sum()
            loss.backward()
            return loss, one * 1, ten * 1

    def said(graph: Any) -> list[float]:
        return [t.item() for n in (1, 2) for t in graph(flow.ones(n, 2))]

    any_form = nn.Graph.with_dynamic_input_shape()
    graph = any_form(Counts)()
    said(graph)
    flow.save(graph.runtime_state_dict(), tmp_path / "graphs")
    state = flow.load(tmp_path / "graphs")
    loaded = [any_form(nn.Graph)() for _ in range(2)]
    loaded[0].load_runtime_state_dict(state)
    loaded[1].load_runtime_state_dict(next(iter(state.values())))
    expected = said(graph)
    assert said(loaded[0]) == pytest.approx(expected) and expected[1:3] == [3, 30] and expected[4:] == [4, 40]
    assert loaded[1](flow.ones(1, 2))[0].item() == pytest.approx(expected[0])
    with pytest.raises(GraphError, match="needs a method build"):
        loaded[1](flow.ones(2, 2))
    for nonsense in (None, 3):
        with pytest.raises(CompileError, match="no state of a compiled graph"):
            any_form(nn.Graph)().load_runtime_state_dict(nonsense)


def test_options_of_oneflow_1_0() -> None:
    class Graph(nn.Graph):
        def __init__(self) -> None:
            super().__init__(debug_v_level=0, debug_ranks=[0, 1])

        def build(self, x: Any) -> Any:
            return x

    assert Graph()._debug_level == 0 and nn.Graph()._debug_level == -1


def trains(inputs: int = 3) -> nn.Graph:
    class Train(nn.Graph):
        def __init__(self) -> None:
            super().__init__()
            self.m = nn.Sequential(nn.Linear(inputs, 2), nn.BatchNorm1d(2))

        def build(self, x: Any) -> Any:
            loss = self.m(x).square().mean()
            if self._optimizers:
                loss.backward()
            return loss

    return Train()


def test_a_graph_takes_the_parameters_of_another() -> None:
    first, second = trains(), trains()
    second.share_from(first)
    second.add_optimizer(flow.optim.SGD(second.m.to(nn.Module).parameters(), lr=0.5))
    mine, others = (dict(g.m.to(nn.Module).named_parameters()) for g in (first, second))
    assert mine.keys() == others.keys() and all(others[name] is p for name, p in mine.items())
    before = mine["0.weight"].detach().clone()
    x = flow.randn(8, 3)
    second(x).item()
    assert not flow.equal(before, mine["0.weight"])
    assert flow.equal(first.m.to(nn.Module)[1].running_mean, second.m.to(nn.Module)[1].running_mean)


def test_what_a_graph_cannot_take() -> None:
    mine, other = trains(), trains(4)
    before = mine.m.to(nn.Module)[0].weight
    with pytest.raises(GraphError, match=r"m.0.weight is \(\(2, 3\), .* here, and \(\(2, 4\), .* there"):
        mine.share_from(other)
    assert mine.m.to(nn.Module)[0].weight is before
    with pytest.raises(GraphError, match="takes a graph; got Linear"):
        mine.share_from(nn.Linear(3, 2))  # type: ignore[arg-type]
    mine.add_optimizer(flow.optim.SGD([before], lr=0.1))
    with pytest.raises(GraphError, match="before add_optimizer"):
        mine.share_from(trains())


def ahead(size: int) -> set[int]:
    class Gathered(nn.Graph):
        def __init__(self) -> None:
            super().__init__()
            self.config.set_outputs_buffer_size(size)

        def build(self, x: Any) -> Any:
            return (x * 2).to_global(placement=flow.placement("cpu", ranks=[1, 0]), sbp=flow.sbp.broadcast) + 1

    graph = Gathered()
    x = flow.ones(4, 2, placement=flow.placement("cpu", ranks=[0, 1]), sbp=flow.sbp.split(0))
    given = [graph(x + i) for i in range(5)]
    assert [y.to_local()[0, 0].item() for y in given] == [3.0 + 2 * i for i in range(5)]
    return {r.copies for r in graph.plan.registers if r.name.endswith("-sink") or r.name == "inputs"}


@pytest.mark.parametrize("size", [1, 3])
def test_how_far_launches_run_ahead(size: int) -> None:
    assert spawn_threads(2, ahead, size) == [{size}, {size}]


def test_a_buffer_holds_a_launch_at_least() -> None:
    with pytest.raises(GraphError, match="1 or more; got 0"):
        trains().config.set_outputs_buffer_size(0)
