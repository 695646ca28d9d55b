"""torch's tensors are taken wherever Weft's are, not by ops alone; what torch would train is refused by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import weft as flow
from weft import nn
from weft.autograd.trees import leaves
from weft.core.errors import ArgumentError

OTHERS: Any = torch.tensor([[1.0, 2.0], [3.0, 4.0]])


def assigned(name: str) -> Any:
    p = nn.Parameter(flow.zeros(2, 2))
    setattr(p, name, OTHERS)
    return getattr(p, name)


def buffered(again: bool) -> Any:
    module = nn.Module()
    module.register_buffer("b", flow.zeros(1) if again else OTHERS)
    if again:
        module.b = OTHERS
    assert module.state_dict()["b"] is not None
    return module.b


def backward(gradient: Any) -> Any:
    x = flow.zeros(2, 2, requires_grad=True)
    (x * 1).backward(gradient)
    return x.grad


def of_grad(gradient: Any) -> Any:
    x = flow.zeros(2, 2, requires_grad=True)
    return flow.autograd.grad(x * 1, x, gradient)[0]


TAKERS: dict[str, Callable[[], Any]] = {
    "x.data =": lambda: assigned("data"),
    "x.grad =": lambda: assigned("grad"),
    "register_buffer": lambda: buffered(False),
    "module.buffer =": lambda: buffered(True),
    "backward": lambda: backward(OTHERS),
    "backward of an array": lambda: backward(OTHERS.numpy()),
    "grad": lambda: of_grad(OTHERS),
    "grad of a list": lambda: of_grad([OTHERS]),
    "TensorDataset": lambda: flow.stack([flow.utils.data.TensorDataset(OTHERS)[i][0] for i in range(2)]),
    "a result that was given": lambda: flow.positive(flow.real(flow.atleast_2d(OTHERS))),
    "among several results": lambda: flow.broadcast_tensors(OTHERS, flow.ones(2, 1))[0],
    "split_with_sizes": lambda: flow.cat(flow.split_with_sizes(OTHERS, [1, 1])),
    "layers of views": lambda: nn.Sequential(nn.Identity(), nn.Flatten(0), nn.Unflatten(0, (2, 2)))(OTHERS),
    "a dropout that is over": lambda: nn.Dropout().eval()(OTHERS),
    "a layer that returns it": lambda: nn.Identity()(OTHERS),
    "layer of a view": lambda: nn.Unflatten(0, (2, 2))(OTHERS.flatten()),
    "Flatten": lambda: flow.reshape(nn.Flatten(0)(OTHERS), (2, 2)),
    "Tensor of a list": lambda: flow.Tensor([[flow.tensor(1), 2], [OTHERS[1, 0], 4]]),
}


@pytest.mark.parametrize("take", TAKERS)
def test_a_tensor_of_torchs_is_taken(take: str) -> None:
    got = TAKERS[take]()
    assert isinstance(got, flow.Tensor) and got.detach().tolist() == OTHERS.tolist()


class Net(nn.Module):
    def __init__(self, inner: Any) -> None:
        super().__init__()
        self.inner = inner


class OfBatch(torch.nn.Linear):
    def forward(self, batch: Any) -> torch.Tensor:
        return super().forward(batch["x"][0])


HEAD, NESTED = flow.from_torch(torch.nn.Linear(2, 2)), flow.from_torch(OfBatch(2, 2))


@pytest.mark.parametrize(
    "make",
    [
        Net, nn.Sequential, lambda m: nn.ModuleList([m]), lambda m: Net(m.weight),
        lambda m: nn.ParameterList([m.weight]), lambda m: flow.optim.SGD(m.parameters(), lr=0.1),
        lambda m: HEAD(m(torch.ones(1, 2))), lambda m: HEAD(input=m.weight), lambda m: HEAD.forward(m.weight * 1),
        lambda m: NESTED({"x": [m.weight * 1]}),
    ],
)  # fmt: skip
def test_what_torch_trains_is_refused_with_what_to_write(make: Any) -> None:
    with pytest.raises(ArgumentError, match=r"flow\.from_torch\(module\)"):
        make(torch.nn.Linear(2, 2))


def test_what_is_not_trained_may_be_torchs() -> None:
    assert list(Net(torch.nn.MSELoss()).parameters()) == []
    with torch.no_grad():
        assert HEAD(torch.nn.Linear(2, 2)(torch.ones(1, 2)).requires_grad_()).shape == (1, 2)
    assert Net(torch.nn.Linear(2, 2).requires_grad_(False)).inner(flow.ones(1, 2)).shape == (1, 2)
    assert len(nn.Sequential(flow.from_torch(torch.nn.Linear(2, 2)))) == 1
    assert [n for n, _ in Net(flow.from_torch(torch.nn.Linear(2, 2))).named_parameters()] == [
        "inner.weight", "inner.bias",
    ]  # fmt: skip


def test_clipping_of_torchs_gradients_is_refused() -> None:
    theirs: Any = torch.nn.Linear(2, 2).parameters()
    with pytest.raises(ArgumentError, match=r"torch\.nn\.utils clips those"):
        nn.utils.clip_grad_norm_(theirs, 1.0)


def test_dtypes_and_devices_equal_torchs() -> None:
    x = flow.zeros(1)
    assert x.dtype == torch.float32 and torch.float32 == x.dtype and x.dtype in (torch.float16, torch.float32)
    assert x.dtype != torch.float64 and x.dtype != flow.float64 and x.dtype != "float32"
    assert x.device == torch.device("cpu") and torch.device("cpu") == x.device and x.device != torch.device("meta")
    assert {x.dtype: 1, x.device: 2}[flow.float32] == 1 and x.device != flow.device("meta")


class Result:
    def __init__(self, value: torch.Tensor) -> None:
        self.value = value


class Gives(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> Result:
        return Result(x * 2)


def test_what_an_own_object_of_a_torch_module_holds_is_taken() -> None:
    held = flow.from_torch(Gives())(flow.arange(3.0)).value
    for take in (flow.tensor, flow.as_tensor, flow.from_torch, lambda t: flow.tensor([t[1] - 2, t[1], t[2]])):
        y: Any = take(held)
        assert type(y) is flow.Tensor and type(y.to_torch()) is torch.Tensor and y.tolist() == [0, 2, 4]


PADS = torch.tensor([[False, True], [False, False]])
STEPS, LOGITS = torch.linspace(-1, 1, 16).reshape(2, 2, 4), torch.linspace(-1, 1, 6).reshape(2, 3)
LAYERS: dict[str, tuple[Callable[[Any], Any], tuple[Any, ...]]] = {
    "LSTM": (lambda nn: nn.LSTM(4, 3), (STEPS,)),
    "GRU with a state": (lambda nn: nn.GRU(4, 3), (STEPS, torch.ones(1, 2, 3))),
    "LSTM of a packed sequence": (
        lambda nn: lambda x: nn.LSTM(4, 3)(nn.utils.rnn.pack_padded_sequence(x, torch.tensor([2, 1])))[1],
        (STEPS,),
    ),
    "MultiheadAttention": (lambda nn: nn.MultiheadAttention(4, 2), (STEPS, STEPS, STEPS, PADS)),
    "TransformerEncoderLayer": (lambda nn: nn.TransformerEncoderLayer(4, 2, 8, 0.0), (STEPS, torch.zeros(2, 2))),
    "SyncBatchNorm": (lambda nn: nn.SyncBatchNorm(2).eval(), (STEPS,)),
    "HuberLoss": (lambda nn: nn.HuberLoss(), (LOGITS, -LOGITS)),
    "huber_loss": (lambda nn: nn.functional.huber_loss, (LOGITS, -LOGITS)),
}


@pytest.mark.parametrize("name", LAYERS)
def test_layers_take_tensors_of_torchs(name: str) -> None:
    """Also layers that ask their input for what only Weft's have."""
    make, given = LAYERS[name]
    results = []
    for convert in (flow.from_torch, lambda x: x):
        flow.manual_seed(0)
        results.append(list(leaves(make(nn)(*map(convert, given)))))
    for ours, theirs in zip(*results, strict=True):
        assert ours is theirs is None or (type(theirs) is flow.Tensor and flow.allclose(ours, theirs))
