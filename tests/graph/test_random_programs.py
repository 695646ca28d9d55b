"""A graph computes what the same program computes eagerly: random programs with views, writes and shared values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st

import weft as flow
from tests.graphs import Calls
from weft import nn
from weft.core.errors import AutogradError
from weft.launch import spawn_threads

Step = tuple[str, int, int, int]  # what, of which values, a choice
S, B, P = flow.sbp.split, flow.sbp.broadcast, flow.sbp.partial_sum

UNARY: list[Callable[[Any], Any]] = [
    flow.relu, flow.tanh, flow.sigmoid, lambda x: x * 0.5 + 1, lambda x: -x, lambda x: x.clone(), lambda x: x.abs(),
    lambda x: flow.softmax(x, 1), lambda x: x.cumsum(0),
]  # fmt: skip
BINARY: list[Callable[[Any, Any], Any]] = [
    lambda a, b: a + b, lambda a, b: a * b, lambda a, b: a - 2 * b, flow.maximum, lambda a, b: a @ b,
    lambda a, b: flow.where(a > b, a, b), lambda a, b: a + b.sum(0), lambda a, b: a * b.mean(1, keepdim=True),
    lambda a, b: flow.cat([a[:2], b[2:]], 0), lambda a, b: flow.stack([a, b]).max(0)[0],
]  # fmt: skip
VIEWS: list[Callable[[Any], Any]] = [
    lambda x: x.t(), lambda x: x.view(4, 2, 2)[:, 1], lambda x: x[1:3], lambda x: x[:, 1:4:2], lambda x: x[2],
    lambda x: x.reshape(16)[3:9], lambda x: x.transpose(0, 1)[1:], lambda x: x.unsqueeze(0)[0, 1:],
    lambda x: x.detach(), lambda x: x.data[1:], lambda x: x[:, 1].detach(), lambda x: x.t().detach()[0],
]  # fmt: skip
WRITES: list[Callable[[Any], Any]] = [
    lambda v: v.mul_(2.0), lambda v: v.add_(1.0), lambda v: v.zero_(), lambda v: v.relu_(), lambda v: v.sub_(v * 0.5),
]  # fmt: skip


def run(steps: list[Step], inputs: list[Any]) -> list[Any]:
    """The program. Values are 4x4; views are kept beside them, to be written and read later."""
    return on([x + 0.0 for x in inputs], steps)


def on(values: list[Any], steps: list[Step]) -> list[Any]:
    views: list[Any] = []
    for what, i, j, choice in steps:
        a, b = values[i % len(values)], values[j % len(values)]
        if what == "unary":
            values.append(UNARY[choice % len(UNARY)](a))
        elif what == "binary":
            values.append(BINARY[choice % len(BINARY)](a, b))
        elif what == "view":
            views.append(VIEWS[choice % len(VIEWS)](a))
        elif what == "write":
            WRITES[choice % len(WRITES)](a)
        elif what == "write view" and views:
            WRITES[choice % len(WRITES)](views[i % len(views)])
        elif what == "read view" and views:
            values.append(a + views[i % len(views)].sum() * 0.1)
        elif what == "item":
            a[choice % 4] = b[j % 4] * 0.5
    return [values[-1], *views[-2:], values[0]]


KINDS = ["unary", "binary", "view", "write", "write view", "read view", "item"]
PROGRAM = st.lists(st.tuples(st.sampled_from(KINDS), *[st.integers(0, 20)] * 3), min_size=1, max_size=9)


def data(seed: int, n: int = 2) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.normal(size=(4, 4)).astype(np.float32) for _ in range(n)]


def agree(a: list[Any], b: list[Any]) -> None:
    for x, y in zip(a, b, strict=True):
        np.testing.assert_allclose(x.detach().numpy(), y.detach().numpy(), rtol=1e-5, atol=1e-5)


@settings(max_examples=200)
@given(PROGRAM)
def test_values_are_those_of_eager(steps: list[Step]) -> None:
    graph = Calls(lambda *inputs: on(list(inputs), steps))
    for seed in range(2):
        given, eager = ([flow.tensor(x) for x in data(seed)] for _ in range(2))
        agree(graph(*given), on(list(eager), steps))
        agree(given, eager)
    graph.close()


def kept() -> list[Any]:
    """Tensors from before the graph, that look at each other's memory."""
    return look(*map(flow.tensor, data(7)))


def look(a: Any, b: Any) -> list[Any]:
    return [a, b, a.detach(), b.data.t(), a.reshape(2, 8).reshape(4, 4)]


@settings(max_examples=200)
@given(PROGRAM)
def test_what_was_there_before_is_written_as_eagerly(steps: list[Step]) -> None:
    eager, captured = kept(), kept()
    graph = Calls(lambda x: [y * x for y in on(list(captured), steps)])
    for _ in range(2):
        agree(graph(flow.ones(())), on(list(eager), steps))
        agree(captured, eager)
    graph.close()


class Trained(nn.Graph):
    def __init__(self, weights: list[flow.Tensor], steps: list[Step]) -> None:
        super().__init__()
        self.holder = nn.ParameterList([nn.Parameter(w) for w in weights])
        self.steps = steps
        self.add_optimizer(flow.optim.SGD(list(self.holder.parameters()), lr=0.1))

    def build(self, x: flow.Tensor) -> flow.Tensor:
        loss = loss_of(self.steps, list(self.holder.parameters()), x)
        loss.backward()
        return loss


def loss_of(steps: list[Step], weights: list[Any], x: Any) -> Any:
    outs = run(steps, [weights[0] * x, weights[1]])
    return sum(((flow.tanh(y) ** 2).mean() for y in outs[1:]), (outs[0] * 0.1).sum())


@settings(max_examples=100, suppress_health_check=[HealthCheck.filter_too_much])
@given(PROGRAM)
def test_training_is_that_of_eager(steps: list[Step]) -> None:
    (x,) = data(9, 1)
    eager = [nn.Parameter(flow.tensor(w)) for w in data(1)]
    optimizer = flow.optim.SGD(eager, lr=0.1)
    losses = []
    for _ in range(2):
        loss = loss_of(steps, eager, flow.tensor(x))
        optimizer.zero_grad()
        try:
            loss.backward()
        except AutogradError:  # it overwrote what a gradient needs; a graph, which renames, could go on
            reject()
        optimizer.step()
        losses.append(loss)
    graph = Trained([flow.tensor(w) for w in data(1)], steps)
    agree([graph(flow.tensor(x)) for _ in range(2)], losses)
    agree(list(graph.holder.parameters()), eager)
    graph.close()


LAYOUTS = [(S(0), S(1)), (B, S(0)), (P, B), (S(1), P)]


def kept_by_two_ranks(programs: list[list[Step]], layouts: list[Any]) -> list[list[Any]]:
    """The results of two calls, graph and eager, and what is in the tensors from before then."""
    place = flow.placement("cpu", ranks=[0, 1])
    found = []
    for steps, layout in zip(programs, layouts, strict=True):
        given = [
            look(*(flow.tensor(x, placement=place, sbp=s) for x, s in zip(data(7), layout, strict=True)))
            for _ in range(2)
        ]
        graph = Calls(lambda x, steps=steps, given=given: [y * x for y in on(list(given[0]), steps)])
        for _ in range(2):
            results = graph(flow.tensor(np.float32(1.0), placement=place, sbp=B)), on(list(given[1]), steps)
            found.append([[y.numpy().copy() for y in ys] for ys in (*results, *given)])
        graph.close()
    return found


@settings(max_examples=8)
@given(st.lists(st.tuples(PROGRAM, st.sampled_from([(S(0), S(1)), (B, S(0)), (S(1), B)])), min_size=6, max_size=6))
def test_what_two_ranks_keep_is_what_one_does(programs: list[tuple[list[Step], Any]]) -> None:
    steps, layouts = [p for p, _ in programs], [s for _, s in programs]
    wanted = []
    for program in steps:
        alone = kept()
        for _ in range(2):
            results = on(list(alone), program)
            wanted.append([[y.numpy().copy() for y in ys] for ys in (results, results, alone, alone)])
    for rank in spawn_threads(2, kept_by_two_ranks, steps, layouts, deadline=60):
        for got, expected in zip(rank, wanted, strict=True):
            for xs, ys in zip(got, expected, strict=True):
                for x, y in zip(xs, ys, strict=True):
                    np.testing.assert_allclose(x, y, rtol=1e-4, atol=1e-4)


def on_two_ranks(programs: list[list[Step]], layouts: list[Any]) -> list[list[Any]]:
    place = flow.placement("cpu", ranks=[0, 1])
    results = []
    for steps, layout in zip(programs, layouts, strict=True):
        inputs = [flow.tensor(x, placement=place, sbp=s) for x, s in zip(data(3), layout, strict=True)]
        graph = Calls(lambda *inputs, steps=steps: run(steps, list(inputs)))
        results.append([y.numpy() for y in graph(*inputs)])
        graph.close()
        again = [flow.tensor(x, placement=place, sbp=s) for x, s in zip(data(3), layout, strict=True)]
        results.append([y.numpy() for y in run(steps, again)])
    return results


@settings(max_examples=8)
@given(st.lists(st.tuples(PROGRAM, st.sampled_from(LAYOUTS)), min_size=6, max_size=6))
def test_two_ranks_compute_what_one_does(programs: list[tuple[list[Step], Any]]) -> None:
    steps, layouts = [p for p, _ in programs], [s for _, s in programs]
    found = spawn_threads(2, on_two_ranks, steps, layouts, deadline=60)
    for rank in found:
        for n, got in enumerate(rank):
            wanted = run(steps[n // 2], list(map(flow.tensor, data(3))))
            for x, y in zip(got, wanted, strict=True):
                np.testing.assert_allclose(x, y.numpy(), rtol=1e-4, atol=1e-5)
