"""What layers print is what torch's print."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
import torch

import weft as flow

LAYERS = """
    Linear(2, 3) Bilinear(2, 3, 4, bias=False) Identity() Flatten() Unflatten(1, (2, 3)) Embedding(3, 4, padding_idx=1)
    Conv1d(2, 3, 3) Conv2d(2, 4, 3, stride=2, padding=1, dilation=2, groups=2, bias=False, padding_mode="reflect")
    ConvTranspose2d(2, 3, 3, output_padding=1, stride=2) ConvTranspose3d(2, 3, 3) EmbeddingBag(3, 4)
    Embedding(3, 4, max_norm=1.0, norm_type=1.0, scale_grad_by_freq=True)
    EmbeddingBag(3, 4, 1.0, 1.0, True, mode="sum", padding_idx=-1)
    MaxPool1d(2) MaxPool2d((2, 3), return_indices=True) MaxUnpool2d(2) AvgPool1d(2, 3, 1) AvgPool2d(2) AvgPool3d(2)
    LPPool1d(2, 3) LPPool2d(2, 3) AdaptiveAvgPool2d((2, 3)) AdaptiveMaxPool1d(2) FractionalMaxPool2d(2, output_size=3)
    ReflectionPad2d(2) ReplicationPad3d(1) ZeroPad2d((1, 2, 3, 4)) ConstantPad1d(2, 1.5) CircularPad2d(1)
    ELU() ELU(inplace=True) Hardshrink() Hardsigmoid() Hardtanh() Hardswish() LeakyReLU(0.2) LogSigmoid() PReLU()
    ReLU(True) ReLU6(True) RReLU() RReLU(inplace=True) SELU() CELU(2.0, True) GELU() GELU("tanh") Sigmoid() SiLU(True)
    Mish() Softplus() Softshrink() Softsign() Tanh() Tanhshrink() Threshold(0.1, 20) GLU() Softmin(1) Softmax(1)
    LogSoftmax(1) Softmax2d() Dropout() Dropout2d(0.2, True) AlphaDropout(0.3) FeatureAlphaDropout()
    BatchNorm1d(3) BatchNorm2d(3, affine=False) BatchNorm3d(3, bias=False) SyncBatchNorm(3) GroupNorm(2, 4)
    GroupNorm(2, 4, bias=False) InstanceNorm1d(3) InstanceNorm2d(3, affine=True) LayerNorm(3)
    LayerNorm((3, 4), bias=False) RMSNorm(3) LocalResponseNorm(2) RNN(2, 3) GRU(2, 3, bias=False)
    LSTM(2, 3, num_layers=2, bidirectional=True)
    RNNCell(2, 3) RNNCell(2, 3, nonlinearity="relu", bias=False) LSTMCell(2, 3) GRUCell(2, 3)
    MSELoss() CrossEntropyLoss() CTCLoss() GaussianNLLLoss() BCEWithLogitsLoss() TripletMarginWithDistanceLoss()
    PixelShuffle(2) PixelUnshuffle(2) Upsample(scale_factor=2) Upsample(size=(2, 3), mode="bilinear") ChannelShuffle(2)
    LazyLinear(3, bias=False) LazyConv2d(3, 2) LazyBatchNorm1d()
    Fold((4, 5), (2, 2)) Unfold((2, 3)) CosineSimilarity() PairwiseDistance()
    ModuleList([nn.Linear(1, 1), nn.Linear(1, 1), nn.ReLU()]) ModuleDict({"a": nn.Sequential(nn.Tanh(), nn.Tanh())})
"""


BIASED = "bias" in inspect.signature(torch.nn.GroupNorm).parameters


def calls() -> list[str]:
    """The layers of the table, one string each: they begin with a name and end where the parentheses do."""
    found, depth, start = [], 0, 0
    for i, c in enumerate(LAYERS):
        depth += (c == "(") - (c == ")")
        if c == ")" and not depth:
            found.append(LAYERS[start : i + 1].strip())
            start = i + 1
    return found


@pytest.mark.parametrize("call", calls())
def test_a_layer_prints_as_torchs(call: str) -> None:
    if call.startswith(("BatchNorm", "GroupNorm")) and "bias" in call and not BIASED:
        pytest.skip("norms of this torch always have a bias")
    ours, theirs = (repr(eval(f"nn.{call}", {"nn": lib.nn})) for lib in (flow, torch))
    assert ours == theirs


def test_parameters_in_containers_print_as_torchs() -> None:
    def made(lib: Any) -> str:
        p = lib.nn.Parameter(lib.ones(2, 3))
        return repr(lib.nn.ParameterList([p, p]))

    assert made(flow).replace("weft", "torch") == made(torch)
