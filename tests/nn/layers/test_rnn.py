"""Recurrent layers against torch's: the same weights, sequences and first states."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch

import weft as flow
from weft.core.errors import OptionError, ShapeError
from weft.tensor.tensor import of_torch

LAYERS: list[tuple[str, dict[str, Any]]] = [
    ("RNN", {}),
    ("RNN", {"nonlinearity": "relu", "bias": False}),
    ("RNN", {"num_layers": 2, "bidirectional": True, "batch_first": True}),
    ("LSTM", {}),
    ("LSTM", {"bias": False, "batch_first": True}),
    ("LSTM", {"num_layers": 2, "bidirectional": True}),
    ("LSTM", {"num_layers": 2, "batch_first": True, "proj_size": 3}),
    ("GRU", {}),
    ("GRU", {"num_layers": 2, "bidirectional": True, "bias": False, "batch_first": True}),
]
CELLS: list[tuple[str, dict[str, Any]]] = [
    ("RNNCell", {}), ("RNNCell", {"nonlinearity": "relu"}), ("LSTMCell", {}), ("GRUCell", {"bias": False}),
]  # fmt: skip


def flat(states: Any) -> list[Any]:
    return [t for s in states for t in flat(s)] if isinstance(states, tuple) else [states]


def agree(ours: flow.nn.Module, theirs: torch.nn.Module, *shapes: tuple[int, ...]) -> None:
    """The same outputs, states and gradients, for an input and first states of these shapes."""
    assert repr(ours) == repr(theirs)
    assert list(ours.state_dict()) == list(theirs.state_dict())
    ours.load_state_dict({k: of_torch(v.clone()) for k, v in theirs.state_dict().items()})
    torch.manual_seed(1)
    x = [torch.randn(s, requires_grad=True) for s in shapes]
    y = [of_torch(t.detach().clone()).requires_grad_() for t in x]

    def packed(given: list[Any]) -> list[Any]:
        return given if len(given) < 3 else [given[0], tuple(given[1:])]

    expected, got = flat(theirs(*packed(x))), flat(ours(*packed(y)))
    assert len(expected) == len(got)
    for e, g in zip(expected, got, strict=True):
        torch.testing.assert_close(g.detach().to_torch(), e.detach(), rtol=1e-4, atol=1e-5)
    gradients = [torch.randn_like(e) for e in expected]
    torch.autograd.backward(expected, gradients)
    flow.autograd.backward(got, [of_torch(s) for s in gradients])
    for p, q in [*zip(theirs.parameters(), ours.parameters(), strict=True), *zip(x, y, strict=True)]:
        assert p.grad is not None and q.grad is not None
        torch.testing.assert_close(q.grad.to_torch(), p.grad, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("name", "options"), LAYERS)
@pytest.mark.parametrize("begun", [False, True])
def test_a_layer_computes_what_torchs_does(name: str, options: dict[str, Any], begun: bool) -> None:
    torch.manual_seed(0)
    theirs, ours = getattr(torch.nn, name)(4, 5, **options), getattr(flow.nn, name)(4, 5, **options)
    shape = (2, 6, 4) if options.get("batch_first") else (6, 2, 4)
    layers = options.get("num_layers", 1) * (2 if options.get("bidirectional") else 1)
    states = [(layers, 2, options.get("proj_size", 5)), (layers, 2, 5)][: 2 if name == "LSTM" else 1]
    agree(ours, theirs, shape, *(states if begun else ()))


@pytest.mark.parametrize("name", ["RNN", "LSTM", "GRU"])
def test_a_sequence_needs_no_batch(name: str) -> None:
    agree(getattr(flow.nn, name)(4, 5), getattr(torch.nn, name)(4, 5), (6, 4))


@pytest.mark.parametrize(("name", "options"), CELLS)
@pytest.mark.parametrize("batch", [(), (3,)])
def test_a_cell_computes_what_torchs_does(name: str, options: dict[str, Any], batch: tuple[int, ...]) -> None:
    theirs, ours = getattr(torch.nn, name)(4, 5, **options), getattr(flow.nn, name)(4, 5, **options)
    ours.load_state_dict({k: of_torch(v.clone()) for k, v in theirs.state_dict().items()})
    states = [torch.randn(*batch, 5)] * (2 if name == "LSTMCell" else 1)
    x = torch.randn(*batch, 4)
    hx = tuple(states) if len(states) > 1 else states[0]
    ours_hx = tuple(of_torch(s) for s in states) if len(states) > 1 else of_torch(states[0])
    for e, g in zip(
        flat((theirs(x), theirs(x, hx))), flat((ours(of_torch(x)), ours(of_torch(x), ours_hx))), strict=True
    ):
        torch.testing.assert_close(g.detach().to_torch(), e.detach(), rtol=1e-4, atol=1e-5)


def test_dropout_lies_between_layers_and_only_in_training() -> None:
    layer = flow.nn.LSTM(4, 5, num_layers=2, dropout=1.0)
    x = flow.randn(3, 2, 4)
    dropped = flow.nn.LSTM(4, 5, num_layers=2)
    dropped.load_state_dict(layer.state_dict())
    assert not layer(x)[0].allclose(dropped(x)[0])
    assert layer.eval()(x)[0].allclose(dropped(x)[0])


def test_what_cannot_be_is_said() -> None:
    with pytest.raises(OptionError, match="nonlinearity 'sine'"):
        flow.nn.RNN(4, 5, nonlinearity="sine")
    with pytest.raises(OptionError, match="proj_size has to be smaller than hidden_size"):
        flow.nn.LSTM(4, 5, proj_size=5)
    with pytest.raises(ShapeError, match=r"LSTM takes a sequence.*got \[6, 2, 3\]"):
        flow.nn.LSTM(4, 5)(flow.ones(6, 2, 3))
    with pytest.raises(ShapeError, match=r"takes initial states of shapes \[\[1, 2, 5\]\]"):
        flow.nn.GRU(4, 5)(flow.ones(6, 2, 4), flow.zeros(2, 2, 5))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("batch", [0, 3])
def test_an_lstm_where_part_is_trained_and_the_last_state_is_used(dtype: str, batch: int) -> None:
    results = []
    torch.manual_seed(0)
    state = torch.nn.LSTM(4, 5, bidirectional=True).state_dict()
    for lib, taken in ((torch, torch.clone), (flow, lambda t: of_torch(t.clone()))):
        layer: Any = lib.nn.LSTM(4, 5, bidirectional=True).to(getattr(lib, dtype))
        layer.load_state_dict({k: taken(v.to(getattr(torch, dtype))) for k, v in state.items()})
        layer.weight_ih_l0.requires_grad_(False)
        x = taken(torch.linspace(-1, 1, 6 * batch * 4, dtype=getattr(torch, dtype)).reshape(6, batch, 4))
        y, (_, memory) = layer(x)
        (memory.sum() + y[1].sum()).backward()
        results.append([y, memory, *(p.grad for p in layer.parameters() if p.grad is not None)])
    for a, b in zip(*results, strict=True):
        torch.testing.assert_close(b.detach().to_torch(), a.detach())


def test_an_lstm_in_a_graph_trains_as_eagerly() -> None:
    class Train(flow.nn.Graph):
        def __init__(self, layer: flow.nn.LSTM) -> None:
            super().__init__()
            self.layer = layer
            self.add_optimizer(flow.optim.SGD(layer.parameters(), lr=1.0))

        def build(self, x: Any) -> Any:
            y, (h, _) = self.layer(x)
            loss = (y * y).sum() + h.sum()
            loss.backward()
            return loss

    eager = flow.nn.LSTM(4, 5, num_layers=2, bidirectional=True)
    traced = copy.deepcopy(eager)
    step, optimizer = Train(traced), flow.optim.SGD(eager.parameters(), lr=1.0)
    x = flow.randn(6, 2, 4)
    for _ in range(3):
        y, (h, _) = eager(x)
        loss = (y * y).sum() + h.sum()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        torch.testing.assert_close(step(x).to_torch(), loss.detach().to_torch())
    assert "lstm_layer" in str(step.job)


def test_weights_by_layer_and_direction() -> None:
    options = {"num_layers": 2, "bidirectional": True, "proj_size": 2}
    shapes = [
        [[tuple(w.shape) for w in ws] for ws in lib.nn.LSTM(4, 5, **options).all_weights] for lib in (torch, flow)
    ]
    assert shapes[0] == shapes[1] and len(shapes[0]) == 4


@pytest.mark.parametrize(
    ("name", "options"), [("LSTM", {"bidirectional": True}), ("GRU", {"bias": False}), ("RNN", {})]
)
def test_a_penalty_on_gradients_goes_through_time(name: str, options: dict[str, Any]) -> None:
    torch.manual_seed(0)
    theirs = getattr(torch.nn, name)(3, 4, **options)
    ours = getattr(flow.nn, name)(3, 4, **options)
    ours.load_state_dict({k: of_torch(v.clone()) for k, v in theirs.state_dict().items()})
    x = torch.randn(5, 2, 3)

    def penalised(lib: Any, layer: Any, x: Any) -> list[Any]:
        x.requires_grad_()
        y, last = layer(x)
        loss = (y * y).sum() + sum((s**3).sum() for s in flat(last))
        (gradient,) = lib.autograd.grad(loss, x, create_graph=True)
        (gradient * gradient).sum().backward()
        return [gradient.detach(), x.grad, *(p.grad for p in layer.parameters())]

    for a, b in zip(penalised(flow, ours, of_torch(x.clone())), penalised(torch, theirs, x), strict=True):
        torch.testing.assert_close(a.to_torch(), b, rtol=1e-4, atol=1e-5)


def test_under_autocast_a_layer_computes_in_the_short_dtype() -> None:
    layer = flow.nn.LSTM(3, 4)
    with flow.autocast("cpu", dtype=flow.bfloat16):
        y, (h, c) = layer(flow.ones(2, 1, 3))
    assert {t.dtype for t in (y, h, c)} == {flow.bfloat16}
    y.float().sum().backward()
    assert layer.weight_hh_l0.grad.dtype is flow.float32
