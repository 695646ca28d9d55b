"""Ops in a graph give what they give eagerly: values written in place, views of variables, positions, nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft as flow
from tests.ranks import on
from weft import nn

ROWS = np.linspace(-1.5, 1.5, 20, dtype=np.float32).reshape(5, 4) + np.float32(0.1)


class Trained(nn.Graph):
    """One step of SGD along what a function of a parameter and the inputs comes to."""

    def __init__(self, function: Callable[..., Any], p: nn.Parameter) -> None:
        super().__init__()
        self.function, self.holder = function, nn.ParameterList([p])
        self.add_optimizer(flow.optim.SGD([p], lr=1.0))

    def build(self, *inputs: flow.Tensor) -> flow.Tensor:
        return stepped(self.function, next(iter(self.holder.parameters())), *inputs)


def stepped(function: Callable[..., Any], p: Any, *inputs: Any) -> Any:
    y = function(p, *inputs)
    loss = (y * y + y).sum()
    loss.backward()
    return loss


def agree(function: Callable[..., Any], *inputs: Any, eagerly: Callable[..., Any] | None = None) -> None:
    """The loss and the step of a graph are those of the eager program, which may have to be another one."""
    eager, traced = (nn.Parameter(flow.tensor(ROWS)) for _ in range(2))
    expected = stepped(eagerly or function, eager, *map(flow.tensor, inputs)).item()
    graph = Trained(function, traced)
    assert graph(*map(flow.tensor, inputs)).item() == pytest.approx(expected, rel=1e-5)
    graph.close()
    step = traced.detach() - flow.tensor(ROWS)
    assert eager.grad is not None
    np.testing.assert_allclose(-step.numpy(), eager.grad.numpy(), rtol=1e-4, atol=1e-5)


WRITES: dict[str, Callable[[Any], Any]] = {
    "abs": lambda x: x.abs_(), "sin": lambda x: x.sin_(), "square": lambda x: x.square_(),
    "pow": lambda x: x.pow_(3),
    "twice": lambda x: x.cos_().sin_(), "of a view": lambda x: (x[1:3].cos_(), x)[1], "erf": lambda x: x.erf_(),
}  # fmt: skip


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES.keys())
def test_gradients_read_what_was_there_before_it_was_overwritten(write: Callable[[Any], Any]) -> None:
    agree(lambda p: write(p * 1.5))


def test_gradients_keep_what_is_overwritten_later() -> None:
    """Eagerly that is refused: the memory is gone. A graph's symbols are renamed, so each gradient reads its own."""

    def renamed(p: Any, x: Any) -> Any:
        x = x + 0.0
        y = p * x
        x.mul_(3.0)
        return y + x

    agree(renamed, ROWS, eagerly=lambda p, x: p * x + x * 3.0)
    agree(lambda p: (p * 1.5).mul_(p), eagerly=lambda p: p * 1.5 * p)

    def by_itself(p: Any) -> Any:
        x = p * 1.5
        return x.mul_(x)

    agree(by_itself, eagerly=lambda p: (p * 1.5).square())


def test_what_is_written_without_gradients_keeps_its_own() -> None:
    def written(p: Any, through: Callable[[Any], Any]) -> Any:
        x = p * 1.0
        y = x * 2
        with flow.no_grad():
            through(x).mul_(0.5)
        return x + y

    for through in (lambda x: x, lambda x: x[1:3]):
        agree(lambda p, through=through: written(p, through))


def test_gradients_keep_parameters_and_buffers_from_before_the_program_wrote_them() -> None:
    class Written(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.w = nn.Parameter(flow.ones(3) * 2)
            self.register_buffer("b", flow.ones(3) * 3)

        def forward(self, x: Any) -> Any:
            y = self.w * self.w * self.b * x
            with flow.no_grad():
                self.b.mul_(2.0)
                self.w.mul_(0.5)
            return y.sum()

    class Training(nn.Graph):
        def __init__(self) -> None:
            super().__init__()
            self.module = Written()
            self.add_optimizer(flow.optim.SGD(self.module.parameters(), lr=1.0))

        def build(self, x: Any) -> Any:
            loss = self.module(x)
            loss.backward()
            return loss

    graph = Training()
    assert graph(flow.tensor([1.0, 2.0, 3.0])).item() == 2 * 2 * 3 * 6
    module = graph.module.to(nn.Module)
    assert module.b.tolist() == [6, 6, 6] and module.w.tolist() == [1 - 12, 1 - 24, 1 - 36]
    graph.close()


POSITIONS: dict[str, Callable[..., Any]] = {
    "row": lambda p, i: p[i], "column": lambda p, i: p[:, i], "beside a slice": lambda p, i: p[i, 1:3],
    "beside a number": lambda p, i: p[1, i], "take": lambda p, i: p.take(i),
    "put": lambda p, i: p.put(i, p[0, 0] * 2), "select": lambda p, i: p.index_select(0, i),
}  # fmt: skip


@pytest.mark.parametrize("take", POSITIONS.values(), ids=POSITIONS.keys())
@pytest.mark.parametrize("place", [2, -1])
def test_one_position_as_a_tensor(take: Callable[..., Any], place: int) -> None:
    if place < 0 and take is POSITIONS["select"]:
        pytest.skip("index_select counts from the first")
    agree(take, np.array(place))


def test_one_position_at_hand_asks_for_a_view() -> None:
    x = flow.zeros(3, 2)
    y = x[flow.tensor(1)]
    y += 1
    assert x.tolist() == [[0, 0], [1, 1], [0, 0]]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda x, i: x.narrow(0, i, 2), "narrow has a result whose shape depends"),
        (lambda x, i: flow.index_put(x, (x[:, 0] > i,), x[0]), "index has a result whose shape depends"),
    ],
)
def test_what_a_shape_cannot_be_told_from_is_said(call: Callable[..., Any], words: str) -> None:
    graph = Trained(lambda p, i: call(p * 1.0, i), nn.Parameter(flow.tensor(ROWS)))
    with pytest.raises(flow.errors.TraceError, match=words):
        graph(flow.tensor(1))


class Shown(nn.Graph):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(2, 4)

    def build(self, x: flow.Tensor) -> Any:
        w = self.layer.weight
        return w.t(), w[1:3].reshape(4), w.chunk(2)[1], flow.eye(2).expand(3, 2, 2), w.t().reshape(8), self.layer(x)


def test_outputs_that_look_at_variables() -> None:
    graph = Shown()
    weight = graph.layer.to(nn.Module).weight
    for _ in range(2):
        found = [y.numpy() for y in graph(flow.ones(1, 2))]
        w = weight.detach().numpy().copy()
        looks = [w.T, w[1:3].reshape(4), w[2:], np.broadcast_to(np.eye(2), (3, 2, 2)), w.T.reshape(8)]
        for y, expected in zip(found, looks, strict=False):
            np.testing.assert_array_equal(y, expected)
        with flow.no_grad():
            weight.add_(1.0)
    graph.close()


class Powered(nn.Graph):
    def build(self, x: flow.Tensor) -> Any:
        return flow.linalg.matrix_power(x, 0)


def test_nothing_but_a_view_of_a_constant() -> None:
    graph = Powered()
    assert graph(flow.zeros(2, 2)).tolist() == graph(flow.ones(2, 2)).tolist() == [[1, 0], [0, 1]]
    graph.close()


def test_sizes_of_which_some_are_the_operands_own() -> None:
    x = ROWS.reshape(1, 5, 4)
    agree(lambda p, x: flow.nn.functional.adaptive_avg_pool2d(p * x, (None, 2)), x)
    agree(lambda p, x: flow.nn.functional.adaptive_max_pool2d(p * x, (3, None)), x)
    agree(lambda p: flow.std_mean(p, 1, correction=0.5)[0])
    agree(lambda p: (p.reshape(2, 2, 5) @ flow.zeros(5, 0)).sum() + p)


READ_AS: dict[str, Callable[[Any], Any]] = {
    "complex": lambda x: flow.view_as_complex(x).abs(),
    "another size": lambda x: x.detach().view(flow.complex64).abs() * x,
    "strides": lambda x: x.as_strided((3, 4), (3, 2)),
}


@pytest.mark.parametrize("read", READ_AS.values(), ids=READ_AS.keys())
def test_memory_is_read_as_contiguous_after_a_transpose(read: Callable[[Any], Any]) -> None:
    agree(lambda p: read(p.reshape(2, 5, 2).permute(1, 2, 0).contiguous()))
    agree(lambda p: read((p * 2).reshape(2, 5, 2).permute(1, 2, 0).contiguous()) * p.sum())


def test_strides_are_those_of_the_eager_program_also_where_a_draw_asks_for_them() -> None:
    def windows(p: Any) -> Any:
        x = (p * 2).reshape(5, 2, 2, 1).permute(1, 2, 0, 3).reshape(4, 5)
        return flow.nn.functional.dropout(x.as_strided((4, 3, 3), (5, 1, 1)), 1e-9)

    agree(windows)


def test_strides_may_reach_to_the_end_of_a_large_tensor() -> None:
    agree(lambda p: (flow.zeros(8, 1, 512, 8) + p.mean()).as_strided((8, 1, 512, 8), (4096, 2048, 8, 1)))


@on(2)
def test_a_gradient_of_squares_is_computed_in_parts_where_they_are() -> None:
    """Twice the gradient of a mean was computed whole on every rank, as batch norms of a split batch do."""
    x = flow.rand(4, 6, placement=flow.placement("cpu", ranks=[0, 1]), sbp=flow.sbp.split(0))

    class Squares(nn.Graph):
        def build(self, x: Any) -> Any:
            return flow.autograd.grad(x.requires_grad_().square().mean(0).sum(), x)[0]

    graph = Squares()
    assert flow.allclose(graph(x), x / 2)
    whole = [c for t in graph.plan.tasks for c in t.step.calls for r in c.results if r.shape == (4, 6)]
    assert not [c for c in whole if c.op == "mul"]
