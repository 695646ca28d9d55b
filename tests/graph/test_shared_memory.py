"""Tensors over one memory, in a graph: what is written through one of them, the others hold, as they do eagerly."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import weft as flow
from weft import nn
from weft.core.errors import GraphError, TraceError
from weft.launch import spawn_threads

Program = Callable[[Any, Any], Any]
PROGRAMS: dict[str, Program] = {}


def program(f: Program) -> Program:
    PROGRAMS[f.__name__] = f
    return f


@program
def through_detach(m: Any, x: Any) -> Any:
    h = x * 2
    h.detach().mul_(3)
    return h + 1


@program
def through_data(m: Any, x: Any) -> Any:
    h = x * 2
    h.data.add_(1)
    return h


@program
def seen_by_a_twin(m: Any, x: Any) -> Any:
    h = x * 2
    d = h.detach()
    h.add_(1)
    return d + 0, d.detach()


@program
def through_a_views_twin(m: Any, x: Any) -> Any:
    h = x * 2
    d = h[0].detach()
    d.add_(1)
    return h, d


@program
def seen_by_the_views_of_both(m: Any, x: Any) -> Any:
    h = x * 2
    d, v = h.detach()[1], h[1]
    d.add_(1)
    h.t()[0].mul_(2)
    return h, d, v


@program
def a_buffer_through_data(m: Any, x: Any) -> Any:
    m.b.data.mul_(2.0)
    m.b.data[0] = 7.0
    m.b[1:].data.add_(1.0)
    return x + m.b


@program
def a_twin_from_before(m: Any, x: Any) -> Any:
    m.b.add_(1)
    y = x + m.twin
    m.twin.mul_(2)
    return y, x + m.b


@program
def data_from_before(m: Any, x: Any) -> Any:
    m.b.add_(1)
    y = x + m.held
    m.held.mul_(2)
    return y, x + m.b


@program
def a_view_from_before(m: Any, x: Any) -> Any:
    y = x + m.row
    m.table.add_(1)
    z = x + m.row
    m.row.mul_(2)
    return y, z, m.table + 0


@program
def a_twins_row_from_before(m: Any, x: Any) -> Any:
    m.twins_row.add_(1)
    y = x + m.table[0]
    m.table.mul_(3)
    return y, x + m.twins_row, m.row.detach()


@program
def exchanged(m: Any, x: Any) -> Any:
    m.norm.running_var.data = m.norm.running_var.data * 2.0 + x[0]
    y = m.norm.running_var * x
    m.norm.running_var.add_(1)
    return y


@program
def exchanged_for_itself(m: Any, x: Any) -> Any:
    kept = m.b.data
    m.b.data = m.b.data.mul_(0.5)
    y = x + m.b
    m.b.data = kept.add_(x[0]).to(x.dtype)
    return y, kept + 0, m.b + x


@program
def exchanged_symbols(m: Any, x: Any) -> Any:
    h, k = x * 2, x * 3
    d = h.detach()
    h.data = k
    k.add_(1)
    d.mul_(0.5)
    return h, k, d


@program
def a_symbol_for_what_was_there(m: Any, x: Any) -> Any:
    h = x[0] * 2
    h.data = m.b
    h.mul_(2)
    return h + 0, m.b + x


@program
def statistics_in_place(m: Any, x: Any) -> Any:
    m.norm.running_mean.detach().mul_(0.5)
    y = m.norm(x).detach()
    m.norm.running_mean.data.add_(1)
    return y, m.norm.running_mean + 0


@program
def an_argument(m: Any, x: Any) -> Any:
    y = x + 1
    x.mul_(2)
    x[0].data.add_(m.b)
    return y, x.sum()


def spread(t: flow.Tensor, place: Any, sbp: Any) -> flow.Tensor:
    return t.to_global(placement=place, sbp=flow.sbp.broadcast).to_global(sbp=sbp)


class Model(nn.Module):
    def __init__(self, f: Program, place: Any = None) -> None:
        super().__init__()
        self.f, self.norm = f, nn.BatchNorm1d(3)
        b, table = flow.tensor([1.0, 2.0, 3.0]), flow.arange(6, dtype=flow.float32).view(2, 3)
        if place is not None:
            self.norm.to_global(placement=place, sbp=flow.sbp.broadcast)
            b, table = spread(b, place, flow.sbp.split(0)), spread(table, place, flow.sbp.split(1))
        self.register_buffer("b", b)
        self.register_buffer("table", table)
        self.twin, self.row, self.twins_row, self.held = b.detach(), table[0], table.detach()[0], b.data

    def forward(self, x: Any) -> Any:
        return self.f(self, x)


class Graph(nn.Graph):
    def __init__(self, model: Model) -> None:
        super().__init__()
        self.model = model

    def build(self, x: Any) -> Any:
        return self.model(x)


def values(model: Model, call: Callable[[Any], Any], place: Any = None) -> list[np.ndarray]:
    found = []
    for i in range(3):
        x = flow.arange(6, dtype=flow.float32).reshape(2, 3) + i
        x = x if place is None else spread(x, place, flow.sbp.split(0))
        y = call(x)
        found += [t.numpy().copy() for t in (x, *(y if isinstance(y, tuple) else (y,)))]
    return found + [t.numpy().copy() for t in (*model.buffers(), model.twin, model.row, model.twins_row)]


@pytest.mark.parametrize("name", PROGRAMS)
def test_as_eagerly(name: str) -> None:
    eager, traced = Model(PROGRAMS[name]), Model(PROGRAMS[name])
    graph = Graph(traced)
    for a, b in zip(values(traced, graph), values(eager, eager), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)


def on_two_ranks() -> list[list[list[np.ndarray]]]:
    place = flow.placement("cpu", ranks=[0, 1])
    found = []
    for f in PROGRAMS.values():
        eager, traced = Model(f, place), Model(f, place)
        found.append([values(traced, Graph(traced), place), values(eager, eager, place)])
    return found


def test_as_eagerly_on_two_ranks() -> None:
    wanted = [values(m, m) for m in map(Model, PROGRAMS.values())]
    for rank in spawn_threads(2, on_two_ranks, deadline=60):
        for name, roads, alone in zip(PROGRAMS, rank, wanted, strict=True):
            for found in roads:
                for a, b in zip(found, alone, strict=True):
                    np.testing.assert_allclose(a, b, rtol=1e-5, err_msg=name)


def test_data_exchanged_for_itself_stays() -> None:
    def same(m: Any, x: Any) -> Any:
        m.b.data = m.b.data.to(x.dtype)
        return x + m.b

    traced, eager = Model(same), Model(same)
    assert np.array_equal(Graph(traced)(flow.ones(2, 3)).numpy(), eager(flow.ones(2, 3)).numpy())


def test_each_micro_batch_sees_what_the_one_before_it_wrote() -> None:
    def count(m: Any, x: Any) -> Any:
        m.b.data.add_(x.sum(0))
        return x + m.b

    class Micro(Graph):
        def __init__(self, model: Model) -> None:
            super().__init__(model)
            self.config.set_gradient_accumulation_steps(2)

    traced, eager = Model(count), Model(count)
    x = flow.arange(12, dtype=flow.float32).reshape(4, 3)
    y = Micro(traced)(x)
    assert np.array_equal(y.numpy(), flow.cat([eager(x[:2]), eager(x[2:])], 0).numpy())
    assert np.array_equal(traced.b.numpy(), eager.b.numpy())


def test_an_argument_is_written_launch_after_launch() -> None:
    class Doubled(nn.Graph):
        def build(self, x: Any, y: Any) -> Any:
            x.add_(y)
            y.relu_()
            return x * 1

    doubled, whole = Doubled(), flow.ones(3, 2)
    x, y = whole[1], flow.tensor([1.0, -1.0])
    with flow.vm.trace():  # with records: launches are in flight
        sums = [doubled(x, y) for _ in range(5)]
    assert whole.tolist() == [[1.0, 1.0], [6.0, 0.0], [1.0, 1.0]] and y.tolist() == [1.0, 0.0]
    assert [s.tolist() for s in sums] == [[1.0 + n, 0.0] for n in range(1, 6)]


def test_an_argument_is_written_by_all_its_micro_batches() -> None:
    class Micro(nn.Graph):
        def __init__(self) -> None:
            super().__init__()
            self.config.set_gradient_accumulation_steps(2)

        def build(self, x: Any) -> Any:
            x += x.sum()
            return x[0]

    x = flow.arange(4, dtype=flow.float32)
    Micro()(x).tolist()
    assert x.tolist() == [1.0, 2.0, 7.0, 8.0]


def test_what_was_there_is_eager_again_after_a_failed_trace() -> None:
    def fails(m: Any, x: Any) -> Any:
        m.b.data.mul_(2)
        m.row.add_(1)
        return (x + m.twin).item()

    model = Model(fails)
    with pytest.raises(TraceError, match="symbol"):
        Graph(model)(flow.ones(2, 3))
    assert all(t.is_eager for t in (model.b, model.twin, model.row, model.table))
    assert model.b.tolist() == [1.0, 2.0, 3.0] and model.table.tolist()[0] == [0.0, 1.0, 2.0]


def test_parameters_in_one_memory_are_trained_as_one() -> None:
    def trained(graph: bool) -> np.ndarray:
        first, second = nn.Parameter(flow.tensor([1.0, 2.0])), nn.Parameter(flow.zeros(2))
        second.data = first.data
        optimizer = flow.optim.SGD([first, second], lr=0.1, momentum=0.9)

        class Step(nn.Graph):
            def __init__(self) -> None:
                super().__init__()
                self.weights = nn.ParameterList([first, second])
                self.add_optimizer(optimizer)

            def build(self) -> Any:
                loss = (first * first + second.exp()).sum()
                loss.backward()
                return loss

        step = Step()
        for _ in range(3):
            optimizer.zero_grad()
            if graph:
                step()
            else:
                step.build()
                optimizer.step()
        if graph:
            second.data = second.data.clone()
            with pytest.raises(GraphError, match=r"weights.1 in the memory of another parameter"):
                step()
        return first.detach().numpy()

    np.testing.assert_array_equal(trained(True), trained(False))


def writes_under_what_nobody_knows() -> tuple[Any, Program]:
    memory = torch.zeros(2, 3)  # eagerly that is one memory; nothing tells the trace
    table, row = flow.from_torch(memory), flow.from_torch(memory[0])

    def f(m: Any, x: Any) -> Any:
        table.add_(1)
        return x + row

    return GraphError, f


def exchanges_two_that_were_there() -> tuple[Any, Program]:
    other = flow.ones(3)

    def f(m: Any, x: Any) -> Any:
        m.b.data = other
        return x + m.b

    return TraceError, f


def exchanges_what_others_look_at() -> tuple[Any, Program]:
    def f(m: Any, x: Any) -> Any:
        d = m.b.detach()
        m.b.data = x[0] * 2
        return d + m.b

    return TraceError, f


def exchanges_into_another_form() -> tuple[Any, Program]:
    def f(m: Any, x: Any) -> Any:
        m.b.data = x * 2
        return m.b

    return TraceError, f


@pytest.mark.parametrize(
    "case",
    [
        writes_under_what_nobody_knows, exchanges_two_that_were_there, exchanges_what_others_look_at,
        exchanges_into_another_form,
    ],
)  # fmt: skip
def test_what_a_graph_cant_tell_is_refused(case: Any) -> None:
    error, f = case()
    model = Model(f)
    with pytest.raises(error, match=r"same memory|one memory|keeps its form|share memory|share x's memory"):
        Graph(model)(flow.ones(2, 3))
    assert model.b.is_eager and model.b.tolist() == [1.0, 2.0, 3.0]
