"""What build() may read of a tensor while it is traced: what follows from constants alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import weft as flow
from tests.graphs import Trains
from tests.ranks import on
from weft import nn
from weft.core.errors import GraphError, TraceError

OUTSIDE = flow.tensor([1.0, 2.0])


class Traced(nn.Graph):
    def __init__(self, body: Callable[..., Any]) -> None:
        super().__init__()
        self.body, self.layer = body, nn.BatchNorm1d(2)

    def build(self, x: Any) -> Any:
        return self.body(self, x)


def by_shapes(_: Any, x: Any) -> Any:
    mask = flow.arange(len(x)) < flow.tensor([len(x)])
    filled = flow.zeros(2)
    filled[0] = 3.0
    return x * int(filled.sum()) if mask.all() else x


def by_what_is_outside(_: Any, x: Any) -> Any:
    return x * (OUTSIDE * 2).max().item()


def by_many_ops(_: Any, x: Any) -> Any:
    total = flow.zeros(())
    for _ in range(1500):  # more than Python's stack holds
        total = total + 1
    return x * total.item()


def by_several_outputs(_: Any, x: Any) -> Any:
    values, places = flow.topk(flow.arange(6), 2)
    first, _ = flow.arange(6).chunk(2)
    return x * (values.sum().item() * places[1].item() - first.sum().item())


def by_the_form_of_an_input(_: Any, x: Any) -> Any:
    seen = flow.ones_like(x @ x.mT, dtype=flow.bool)  # over ranks a partial sum
    return x * flow.full_like(x, 2.5).sum().item() if seen.all() and not flow.zeros_like(x).any() else x


FACTORS = [(by_shapes, 3.0), (by_the_form_of_an_input, 10.0), (by_what_is_outside, 4.0),
           (by_many_ops, 1500.0), (by_several_outputs, 33.0)]  # fmt: skip


@pytest.mark.parametrize(("body", "factor"), FACTORS)
def test_what_follows_from_constants_is_read(body: Callable[..., Any], factor: float) -> None:
    x = flow.tensor([[1.0, -1.0], [2.0, 5.0]])
    assert Traced(body)(x).tolist() == (x * factor).tolist()


def by_an_input(_: Any, x: Any) -> Any:
    return x if x.sum() > 0 else -x


def by_a_parameter(graph: Any, x: Any) -> Any:
    return x * graph.layer.weight.sum().item()


def by_a_draw(_: Any, x: Any) -> Any:
    return x if flow.rand(()) > 0.5 else -x


def after_a_write(_: Any, x: Any) -> Any:
    counter.add_(1)
    return x if counter > 3 else -x


def before_a_write(_: Any, x: Any) -> Any:
    y = x if counter > 3 else -x
    counter.add_(1)
    return y


def at_a_buffers_value(graph: Any, x: Any) -> Any:
    at = int(graph.layer.num_batches_tracked)
    graph.layer(x)
    return x[at]


def by_what_is_trained(graph: Any, x: Any) -> Any:
    loss = (graph.layer(x) * graph.layer.bias.tolist()[0]).sum()
    loss.backward()
    return loss


def by_a_view(graph: Any, x: Any) -> Any:
    y = x if graph.layer.running_mean[0] == 0 else -x
    graph.layer.running_mean += 1
    return y


counter = flow.zeros(())


@pytest.mark.parametrize("body", [by_an_input, by_a_parameter, by_a_draw, after_a_write])
def test_what_launches_change_is_refused_and_the_error_has_the_line(body: Callable[..., Any]) -> None:
    with pytest.raises(TraceError, match=r"inside (a graph's )?build\(\).*\(test_lazy.py:\d+\)$"):
        Traced(body)(flow.ones(2, 2))


@pytest.mark.parametrize("body", [before_a_write, at_a_buffers_value, by_what_is_trained, by_a_view])
def test_what_is_written_after_it_was_read_is_refused(body: Callable[..., Any]) -> None:
    graph = Traced(body)
    if body is by_what_is_trained:
        graph.add_optimizer(flow.optim.SGD(graph.layer.parameters(), lr=0.1))
    with pytest.raises(TraceError, match=r"read the value of .* \(test_lazy.py:\d+\), and .* writes it"):
        graph(flow.ones(2, 2))


@pytest.mark.parametrize("read", [
    lambda t: (t > 0).all(), lambda t: t.item() > 0, lambda t: t.tolist() == [1.0], lambda t: t.numpy()[0] > 0,
    lambda t: flow.equal(t, flow.ones(1)),
])  # fmt: skip
@pytest.mark.parametrize("a_buffer", [True, False])
def test_a_tensor_that_was_read_and_is_overwritten_later_is_noticed(read: Callable[[Any], Any], a_buffer: bool) -> None:
    limit = flow.tensor([1.0])
    graph = Traced(lambda _, x: x if read(limit) else -x)
    if a_buffer:
        graph.layer.register_buffer("limit", limit)
    assert graph(flow.ones(2)).tolist() == graph(flow.ones(2)).tolist() == [1.0, 1.0]
    limit.fill_(-1.0)
    with pytest.raises(GraphError, match=r"a value that build\(\) read from a tensor, which was overwritten since"):
        graph(flow.ones(2))


DYNAMIC: dict[str, Callable[[Any], Any]] = {
    "a mask": lambda x: x[~flow.eye(3).bool()],
    "a mask from outside": lambda x: x[:2][OUTSIDE > 1.5],
    "a mask in place of indices": lambda x: flow.masked_select(x, flow.ones(3, 3).tril() > 0),
    "nonzero": lambda x: x[flow.nonzero(flow.eye(3)).select(1, 0)] + flow.nonzero(flow.eye(3)).shape[0],
    "nonzero of nonzero": lambda x: x[flow.nonzero(flow.nonzero(flow.arange(3))[:, 0] > 1)[:, 0]],
    "unique": lambda x: x * flow.unique(flow.tensor([1, 3, 1]), return_counts=True)[1].sum(),
    "unique_consecutive": lambda x: x[flow.unique_consecutive(flow.tensor([1, 1, 2]))],
    "bincount": lambda x: x * flow.bincount(flow.tensor([1, 1, 2]), weights=flow.ones(3)),
    "repeat_interleave": lambda x: x.repeat_interleave(flow.tensor([2, 0, 1]), 0),
}


@pytest.mark.parametrize("name", DYNAMIC)
def test_shapes_that_follow_from_constants_are_computed_while_build_is_traced(name: str) -> None:
    x = flow.randn(3, 3)
    graph = Traced(lambda _, x: DYNAMIC[name](x))
    for _ in range(2):
        got, expected = graph(x), DYNAMIC[name](x)
        assert got.shape == expected.shape and got.tolist() == expected.tolist()


@pytest.mark.parametrize("body", [
    lambda _, x: flow.nonzero(x), lambda g, x: x[g.layer.weight > 0], lambda g, x: flow.nonzero(flow.rand(3) > 0.5),
    lambda _, x: flow.bincount(flow.tensor([0, 1]), weights=x[0]),
])  # fmt: skip
def test_a_shape_that_depends_on_data_is_refused_with_its_line(body: Callable[..., Any]) -> None:
    with pytest.raises(TraceError, match=r"shape that depends on data.*\(test_lazy.py:\d+\)$"):
        Traced(body)(flow.ones(2, 2))


def test_what_is_trained_learns_through_a_mask_of_constants() -> None:
    layer = nn.Linear(3, 3)
    again = nn.Linear(3, 3)
    again.load_state_dict(layer.state_dict())

    optimizer = flow.optim.SGD(layer.parameters(), lr=0.5)
    x, train = flow.randn(3, 3), Trains(layer, optimizer, lambda y: (y[~flow.eye(3).bool()] ** 2).sum())
    optimizer = flow.optim.SGD(again.parameters(), lr=0.5)
    for _ in range(2):
        loss = (again(x)[~flow.eye(3).bool()] ** 2).sum()
        loss.backward()
        assert train(x).item() == pytest.approx(loss.item())
        optimizer.step()
        optimizer.zero_grad()


def test_a_graph_is_local_or_global_as_a_whole() -> None:
    P, B = flow.placement("cpu", ranks=[0]), flow.sbp.broadcast
    for convert in (lambda x: x.to_global(placement=P, sbp=B), lambda x: x.to_global(P, B, check_meta=False)):
        with pytest.raises(TraceError, match=r"to_global of a local tensor inside build\(\).*Convert outside"):
            Traced(lambda _, x, convert=convert: convert(x))(flow.ones(2))
    with pytest.raises(TraceError, match=r"to_local inside build\(\)"):
        Traced(lambda _, x: x.to_local())(flow.ones(2, placement=P, sbp=B))


@pytest.mark.parametrize("ranks", [[0, 1], [0]])  # on the second, rank 1 holds nothing
@pytest.mark.parametrize("sbp", [flow.sbp.broadcast, flow.sbp.split(0)])
def test_global_constants_are_read_too(ranks: list[int], sbp: Any) -> None:
    def body(_: Any, x: Any) -> Any:
        mask = flow.arange(4, placement=x.placement, sbp=sbp) * 2 > 3
        return x * mask.sum().item() if mask.any() else x

    @on(2)
    def run() -> None:
        x = flow.ones(2, 2, placement=flow.placement("cpu", ranks), sbp=flow.sbp.broadcast)
        assert Traced(body)(x).tolist() == [[2.0, 2.0]] * 2
        assert Traced(by_the_form_of_an_input)(x.to_global(sbp=flow.sbp.split(1))).tolist() == [[10.0, 10.0]] * 2

    run()
