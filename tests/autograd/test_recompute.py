"""Checkpointed functions: the gradients of the plain ones, computed anew instead of kept."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
import torch
import torch.utils.checkpoint

import weft as flow
from weft.core.errors import ArgumentError, AutogradError
from weft.nn import functional as F
from weft.utils.checkpoint import checkpoint, checkpoint_sequential


def test_gradients_are_those_of_the_plain_call() -> None:
    net = flow.nn.Sequential(flow.nn.Linear(4, 8), flow.nn.GELU(), flow.nn.Linear(8, 4))
    results = []
    for way in (lambda x: net(x), lambda x: checkpoint(net, x)):
        net.zero_grad()
        x = flow.arange(8.0).reshape(2, 4).requires_grad_()
        loss = way(x * 2).square().sum()
        loss.backward()
        results.append([loss.detach(), x.grad, *(p.grad for p in net.parameters())])
    for plain, again in zip(*results, strict=True):
        assert plain.equal(again)


def test_parameters_get_gradients_where_no_argument_wants_one() -> None:
    layer = flow.nn.Linear(2, 2)
    checkpoint(layer, flow.ones(1, 2)).sum().backward()
    assert layer.weight.grad is not None and layer.weight.grad.tolist() == [[1.0, 1.0], [1.0, 1.0]]


def test_it_runs_twice_with_the_same_random_numbers_and_dtypes() -> None:
    seen = []

    def noisy(x: flow.Tensor, scale: float) -> tuple[flow.Tensor, flow.Tensor]:
        y = F.dropout(x @ x, 0.5)
        seen.append(y.detach())
        return y * scale, x

    x = flow.ones(8, 8, requires_grad=True)
    with flow.autocast("cpu"):
        y, _ = checkpoint(noisy, x, scale=2.0)
    flow.manual_seed(7)
    expected = flow.rand(3)
    flow.manual_seed(7)
    y.float().sum().backward()
    assert seen[0].dtype is seen[1].dtype is flow.bfloat16 and seen[0].equal(seen[1])
    assert flow.rand(3).equal(expected), "backward leaves the random numbers of others alone"


def test_checkpoints_nest_and_chain() -> None:
    x = flow.tensor([0.5], requires_grad=True)

    def inner(x: flow.Tensor) -> flow.Tensor:
        return checkpoint(flow.sin, x) * x

    y = x
    for _ in range(3):
        y = checkpoint(inner, y)
    y.backward()
    z = flow.tensor([0.5], requires_grad=True)
    w = z
    for _ in range(3):
        w = flow.sin(w) * w
    w.backward()
    assert x.grad is not None and z.grad is not None and x.grad.allclose(z.grad)


def test_without_gradients_it_is_the_function() -> None:
    with flow.no_grad():
        assert not checkpoint(flow.exp, flow.ones(1, requires_grad=True)).requires_grad


def test_a_function_that_changes_is_noticed() -> None:
    counts = iter([2, 1])
    x = flow.ones(1, requires_grad=True)
    y = checkpoint(lambda x: (x,) * next(counts), x)
    with pytest.raises(AutogradError, match="2 outputs the first time, 1 the second"):
        (y[0] + y[1]).backward()


def test_tensors_anywhere_among_the_arguments_get_their_gradients() -> None:
    results = []
    for way in (lambda f, *args, **kwargs: f(*args, **kwargs), checkpoint):
        leaves = [flow.tensor([float(i), 2.0], requires_grad=True) for i in range(3)]
        x, y, z = (t * 2 for t in leaves)
        way(lambda x, pair, z: (x * pair[0] * z).sum(), x, (y, 1), z=z).backward()
        results.append([t.grad.tolist() for t in leaves if t.grad is not None])
    assert results[0] == results[1] and len(results[0]) == 3


def test_a_chain_in_segments() -> None:
    layers = [flow.nn.Linear(3, 3) for _ in range(5)]
    results = []
    for way in (lambda x: flow.nn.Sequential(*layers)(x), lambda x: checkpoint_sequential(layers, 2, x)):
        x = flow.ones(2, 3, requires_grad=True)
        way(x).square().sum().backward()
        assert x.grad is not None
        results.append(x.grad.tolist())
    assert results[0] == results[1]
    with pytest.raises(ArgumentError, match="1 to 5 segments, not 6"):
        checkpoint_sequential(layers, 6, flow.ones(2, 3))


def test_without_reentering_gradients_go_where_they_go_without_a_checkpoint() -> None:
    net = flow.nn.Sequential(flow.nn.Linear(3, 4), flow.nn.Dropout(0.4), flow.nn.Tanh(), flow.nn.Linear(4, 3))
    results = []
    for way in (lambda f, *args: f(*args), lambda f, *args: checkpoint(f, *args, use_reentrant=False)):
        flow.manual_seed(3)
        x, scale = flow.ones(2, 3, requires_grad=True), flow.tensor([2.0], requires_grad=True)
        around = scale * 3  # closed over, and on the way to a leaf

        def inner(x: flow.Tensor, around: flow.Tensor = around, way: Any = way) -> flow.Tensor:
            return way(lambda h: net(h) * around, x * around)

        y = way(inner, x)
        first = flow.autograd.grad((y * y).sum(), [x, scale, *net.parameters()], create_graph=True)
        first[0].square().sum().backward()
        results.append([g.tolist() for g in (*first, scale.grad, x.grad) if g is not None])
        results[-1].append(flow.rand(2).tolist())
        net.zero_grad()
    for plain, again in zip(*results, strict=True):
        assert flow.tensor(plain).allclose(flow.tensor(again), atol=1e-6)


@pytest.mark.parametrize("outer", [True, False])
@pytest.mark.parametrize("inner", [True, False])
def test_one_inside_of_another_in_either_way(outer: bool, inner: bool) -> None:
    a, b = flow.nn.Linear(3, 3), flow.nn.Linear(3, 3)
    results = []
    for way in (lambda f, x, again: f(x), lambda f, x, again: checkpoint(f, x, use_reentrant=again)):
        x = flow.ones(2, 3, requires_grad=True)

        def part(x: flow.Tensor, way: Any = way) -> flow.Tensor:
            return (x + b(way(a, x, inner).tanh())).sin()

        way(part, x * 1, outer).sum().backward()
        found = (x.grad, *(p.grad for p in (*a.parameters(), *b.parameters())))
        results.append([None if g is None else g.tolist() for g in found])
        for layer in (a, b):
            layer.zero_grad()
    assert results[0] == results[1]


def test_without_reentering_nothing_is_kept_and_a_change_is_noticed() -> None:
    kept, counts = [], iter([1, 2])

    def pack(t: flow.Tensor) -> flow.Tensor:
        kept.append(t)
        return t

    x = flow.ones(2, requires_grad=True)
    with flow.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        y = checkpoint(lambda x: x.exp() if next(counts) == 1 else x.exp() * x.sin(), x, use_reentrant=False)
    assert not kept
    with pytest.raises(AutogradError, match="kept 1 tensors for backward the first time"):
        y.sum().backward()


@pytest.mark.parametrize("way", ["reentrant", "not reentrant", "modules"])
def test_in_a_graph_checkpoints_chain_and_what_is_inside_is_computed_again(way: str) -> None:
    x = flow.tensor([[0.5, -1.0, 2.0]])

    class Layer(flow.nn.Linear):
        def forward(self, x: flow.Tensor) -> flow.Tensor:
            return super().forward(x).exp().sin()

    class Step(flow.nn.Graph):
        def __init__(self, layers: Any, way: str) -> None:
            super().__init__()
            self.layers, self.way = layers, way
            self.add_optimizer(flow.optim.SGD(layers.parameters(), lr=0.1))
            if way == "modules":
                for layer in self.layers:
                    layer.to(flow.nn.graph.GraphModule).activation_checkpointing = True

        def build(self, x: flow.Tensor) -> flow.Tensor:
            for layer in self.layers:
                again = "reentrant" in self.way
                x = checkpoint(layer, x, use_reentrant=self.way == "reentrant") if again else layer(x)
            loss = x.square().sum()
            loss.backward()
            return loss

    losses = []
    for each in ("plain", way):
        flow.manual_seed(0)
        step = Step(flow.nn.ModuleList([Layer(3, 3) for _ in range(3)]), each)
        losses.append([step(x).item() for _ in range(3)])
    assert losses[0] == losses[1]
    again = [line for line in str(step.job).splitlines() if ".again = " in line]
    assert sum(" = exp(" in line for line in again) == 3
    assert not any(" = sin(" in line for line in again)  # what goes from layer to layer was kept


@pytest.mark.parametrize("lib", [flow, torch])
def test_each_call_may_have_a_context_of_its_own(lib: Any) -> None:
    log: list[str] = []

    @contextlib.contextmanager
    def telling(name: str) -> Any:
        log.append(name)
        yield

    x = lib.ones(2, requires_grad=True)
    both = {"use_reentrant": False, "context_fn": lambda: (telling("first"), telling("second"))}
    y = lib.utils.checkpoint.checkpoint(lambda x: (x * x).exp(), x, **both)
    assert log == ["first"]
    y.sum().backward()
    assert log == ["first", "second"]
    with pytest.raises(ValueError if lib is torch else TypeError, match="context_fn"):
        lib.utils.checkpoint.checkpoint(lambda x: x, x, **{**both, "use_reentrant": True})


def test_segments_reach_what_they_close_over_if_asked_to() -> None:
    w, x = flow.ones(2, requires_grad=True), flow.ones(2, requires_grad=True)
    y = checkpoint_sequential([lambda x: x * w, lambda x: x + 1], 2, x, use_reentrant=False)
    (dw,) = flow.autograd.grad(y.sum(), w)
    assert dw.tolist() == [1.0, 1.0]
