"""What build() may read of a tensor while it is traced: what follows from constants alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import weft as flow
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


@pytest.mark.parametrize(("body", "factor"), [(by_shapes, 3.0), (by_what_is_outside, 4.0), (by_many_ops, 1500.0)])
def test_what_follows_from_constants_is_read(body: Callable[..., Any], factor: float) -> None:
    x = flow.tensor([[1.0, -1.0], [2.0, 5.0]])
    assert Traced(body)(x).tolist() == (x * factor).tolist()


def by_an_input(_: Any, x: Any) -> Any:
    return x if x.sum() > 0 else -x


def by_a_parameter(graph: Any, x: Any) -> Any:
    return x * graph.layer.weight.sum().item()


def by_a_buffer(graph: Any, x: Any) -> Any:
    return x if graph.layer.running_mean.sum() > 0 else -x


def by_a_draw(_: Any, x: Any) -> Any:
    return x if flow.rand(()) > 0.5 else -x


def after_a_write(_: Any, x: Any) -> Any:
    counter.add_(1)
    return x if counter > 3 else -x


def before_a_write(_: Any, x: Any) -> Any:
    y = x if counter > 3 else -x
    counter.add_(1)
    return y


counter = flow.zeros(())


@pytest.mark.parametrize("body", [by_an_input, by_a_parameter, by_a_buffer, by_a_draw, after_a_write])
def test_what_launches_change_is_refused_and_the_error_has_the_line(body: Callable[..., Any]) -> None:
    with pytest.raises(TraceError, match=r"inside (a graph's )?build\(\).*\(test_lazy.py:\d+\)$"):
        Traced(body)(flow.ones(2, 2))


def test_what_is_written_after_it_was_read_is_refused() -> None:
    with pytest.raises(TraceError, match="the branch that it took would be the same in every launch"):
        Traced(before_a_write)(flow.ones(2, 2))


def test_a_tensor_that_was_read_and_is_overwritten_later_is_noticed() -> None:
    limit = flow.tensor([1.0])
    graph = Traced(lambda _, x: x if (limit > 0).all() else -x)
    assert graph(flow.ones(2)).tolist() == graph(flow.ones(2)).tolist() == [1.0, 1.0]
    limit.fill_(-1.0)
    with pytest.raises(GraphError, match=r"a value that build\(\) read from a tensor, which was overwritten since"):
        graph(flow.ones(2))
