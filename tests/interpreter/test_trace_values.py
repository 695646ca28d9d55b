"""What is read of values while a graph is traced: code of torch's modules may read what follows from arguments, and
each launch then holds for the same values alone."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

import weft as flow
from tests.ranks import on
from weft import nn
from weft.core.errors import GraphError, TraceError


class Torchs(torch.nn.Module):
    """A function as the code of a module of torch's."""

    def __init__(self, function: Any) -> None:
        super().__init__()
        self.forward = function


def graph_of(function: Any) -> Any:
    class Of(nn.Graph):
        def __init__(self) -> None:
            super().__init__()
            self.m = flow.from_torch(Torchs(function))

        def build(self, *args: Any) -> Any:
            return self.m(*args)

    return Of


def pieces(x: Any, lengths: Any, mask: Any) -> Any:
    if lengths.max() > 5:
        raise ValueError("too long")
    longest = max((part.sum() for part in x.split(lengths.tolist())), key=lambda part: part.ndim)
    return longest + 3 * x[mask].sum() + lengths.sum().item()


def arguments(*lengths: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    return torch.arange(10.0), torch.tensor(lengths), torch.arange(10) % 3 == 0


def test_a_graph_holds_for_the_values_of_arguments_that_build_has_read() -> None:
    graph, (x, lengths, mask) = graph_of(pieces)(), arguments(2, 5, 3)
    for given in (x, -x):
        assert graph(given, lengths.clone(), mask).item() == pieces(given, lengths, mask).item()
    with pytest.raises(GraphError, match=r"test_trace_values.py:\d+\): \[2, 5, 3\] then, and \[2, 4, 4\] now"):
        graph(x, torch.tensor([2, 4, 4]), mask)
    with pytest.raises(GraphError, match=r"bool of shape \[10\] then"):
        graph(x, lengths, ~mask)
    assert graph(x, lengths, mask).item() == pieces(x, lengths, mask).item()
    with pytest.raises(GraphError, match=r"can't be saved compiled: build.. read a value"):
        graph.runtime_state_dict()


class Pieces(nn.Graph):
    def build(self, x: Any, lengths: Any, mask: Any) -> Any:
        return pieces(x, lengths, mask)


def test_a_build_of_the_programs_own_is_told_how_to_read_its_arguments() -> None:
    for body in (lambda x: x if x.sum() > 0 else -x, lambda x: x.numpy(), lambda x: x * x.sum().item(), flow.nonzero):

        class Reads(nn.Graph):
            def build(self, x: Any, body: Any = body) -> Any:
                return body(x)

        with pytest.raises(TraceError, match=r"It follows from Reads_\d+.input.0; @nn.Graph.with_dynamic_input_shape"):
            Reads()(flow.ones(2))
        assert nn.Graph.with_dynamic_input_shape()(Reads)()(flow.ones(2)) is not None


def test_a_class_compiles_for_each_such_value() -> None:
    graph, (x, lengths, mask) = nn.Graph.with_dynamic_input_shape()(Pieces)(), arguments(2, 5, 3)
    others = torch.tensor([4, 5, 1])
    for given in ((x, lengths, mask), (x, others, mask), (x, lengths, ~mask), (-x, lengths, mask), (x, others, mask)):
        assert graph(*given).item() == pieces(*given).item()
    assert len(graph._dynamic_input_graph_cache.kept) == 3


def test_a_number_may_be_given_as_a_tensor() -> None:
    graph = graph_of(lambda x, mask: x.narrow(0, torch.tensor(1), mask.sum()).view(mask.sum(), 1) * 2)()
    x = flow.arange(6)
    assert graph(x, x < 2).tolist() == [[2], [4]]
    with pytest.raises(GraphError, match="2 then, and 3 now"):
        graph(x, x < 3)


def test_nan_is_the_value_that_it_was() -> None:
    graph = graph_of(lambda x, scale: x if math.isnan(scale.item()) else x * scale)()
    x = flow.ones(2)
    assert [graph(x, flow.tensor(math.nan)).tolist() for _ in range(2)] == [[1.0, 1.0]] * 2
    with pytest.raises(GraphError, match=r"nan then, and 2\.0 now"):
        graph(x, flow.tensor(2.0))


def test_values_that_change_from_launch_to_launch_are_refused_with_what_they_follow_from() -> None:
    layer = nn.Linear(2, 1)

    class Learned(nn.Graph):
        def __init__(self) -> None:
            super().__init__()
            self.layer = layer

        def build(self, x: Any) -> Any:
            y = self.layer(x)
            return y if y.sum() > 0 else -y

    class Drawn(nn.Graph):
        def build(self, x: Any) -> Any:
            return x if flow.rand(()) < 0.5 else -x

    class Cut(nn.Graph):
        def __init__(self) -> None:
            super().__init__()
            self.config.set_gradient_accumulation_steps(2)

        def build(self, x: Any) -> Any:
            return x if x.sum() > 0 else -x

    for kind, why in (
        (Learned, r"layer\.\w+, which launches change"),
        (Drawn, r"rand.* anew"),
        (Cut, r"Cut_\d.input.0.micro"),
    ):
        with pytest.raises(TraceError, match=f"a branch on a tensor's value.* It follows from {why}"):
            kind()(flow.ones(2, 2))


@on(2)
def test_global_arguments_are_read_on_every_rank() -> None:
    place = flow.placement("cpu", ranks=[0, 1])

    def spread(values: list[float]) -> Any:
        return flow.tensor(values, placement=place, sbp=flow.sbp.split(0))

    graph = graph_of(lambda x: x * 2 if x.sum() > 3 else -x)()
    assert graph(spread([1.0, 5.0])).numpy().tolist() == graph(spread([5.0, 1.0])).numpy().tolist()[::-1] == [2.0, 10.0]
    with pytest.raises(GraphError, match="True then, and False now"):
        graph(spread([1.0, 2.0]))


class Finite(torch.nn.Module):
    """As models of other libraries save themselves from overflow."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(2, 3)

    def forward(self, x: Any) -> Any:
        y = self.layer(x)
        if torch.isinf(y).any() or torch.isnan(y).any():
            y = y.clamp(-1, 1)
        if not torch.isfinite(y).all():
            y = y * 0
        return y.square().sum()


class Training(nn.Graph):
    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model
        self.add_optimizer(flow.optim.SGD(model.parameters(), lr=0.1))

    def build(self, x: Any) -> Any:
        loss = self.model(x)
        loss.backward()
        return loss


def test_values_are_taken_for_finite_where_a_program_asks_and_each_launch_checks_it() -> None:
    theirs = Finite()
    graph = Training(flow.from_torch(theirs))
    x = torch.ones(4, 2)
    for _ in range(2):
        expected = theirs(x).item()  # over the same memory, which the launch trains
        assert graph(x).item() == pytest.approx(expected)
    with pytest.raises(RuntimeError, match="asks whether values are finite") as refused:
        graph(x * math.inf).item()
    assert "model, test_trace_values.py:" in "".join(refused.value.__notes__)


@on(2)
def test_global_values_are_taken_for_finite() -> None:
    place, S, B = flow.placement("cpu", ranks=[0, 1]), flow.sbp.split, flow.sbp.broadcast
    flow.manual_seed(0)
    model = flow.from_torch(Finite()).to_global(place, B)
    x = flow.ones(4, 2, placement=place, sbp=S(0))
    expected = model(x).item()
    assert Training(model)(x).item() == pytest.approx(expected)
