"""Quantization-aware training with torch's tools: prepared by torch, trained here, converted by torch."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch.ao import quantization
from torch.ao.quantization._learnable_fake_quantize import _LearnableFakeQuantize

import weft as flow
from tests.graphs import Trains

pytestmark = pytest.mark.filterwarnings("ignore")  # torch moves these tools to another package


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.quant, self.dequant = quantization.QuantStub(), quantization.DeQuantStub()
        self.conv, self.norm, self.relu = torch.nn.Conv2d(1, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.ReLU()
        self.head = torch.nn.Linear(4, 2)

    def forward(self, x: Any) -> Any:
        return self.dequant(self.head(self.relu(self.norm(self.conv(self.quant(x)))).mean((2, 3))))


def prepared(trains: bool) -> torch.nn.Module:
    torch.manual_seed(0)
    parts = [["conv", "norm", "relu"]]
    if not trains:
        net = quantization.fuse_modules(Net().eval(), parts)
        net.qconfig = quantization.get_default_qconfig("fbgemm")
        return quantization.prepare(net)
    net = quantization.fuse_modules_qat(Net().train(), parts)
    net.qconfig = quantization.get_default_qat_qconfig("fbgemm")
    return quantization.prepare_qat(net)


def test_a_model_trained_for_eight_bits_is_converted_as_torchs() -> None:
    theirs, ours = prepared(True), flow.from_torch(prepared(True))
    a, b = torch.optim.SGD(theirs.parameters(), lr=0.1), flow.optim.SGD(ours.parameters(), lr=0.1)
    step = None
    for i in range(5):
        x = torch.randn(2, 1, 5, 5)
        a.zero_grad()
        loss = theirs(x).square().mean()
        loss.backward()
        a.step()
        if i < 2:
            b.zero_grad()
            found = ours(x).square().mean()
            found.backward()
            b.step()
        else:
            step = step or Trains(ours, b)
            found = step(x)
        assert found.item() == pytest.approx(loss.item(), rel=1e-4)
    x = torch.randn(2, 1, 5, 5)
    whole = [quantization.convert(net.eval()) for net in (theirs, flow.to_torch(ours))]
    torch.testing.assert_close(whole[1](x), whole[0](x), rtol=0, atol=0.02)


def test_calibrated_with_histograms_as_torchs() -> None:
    theirs, ours = prepared(False), flow.from_torch(prepared(False))
    x = torch.randn(3, 2, 1, 5, 5)
    for batch in x:
        theirs(batch)
        ours(batch)
    whole = [quantization.convert(net) for net in (theirs, flow.to_torch(ours))]
    torch.testing.assert_close(whole[1](x[0]), whole[0](x[0]))


@pytest.mark.parametrize("channels", [-1, 3])
def test_learned_fake_quantization_trains(channels: int) -> None:
    kind = "MovingAveragePerChannelMinMaxObserver" if channels > 0 else "MovingAverageMinMaxObserver"
    options = {"ch_axis": 1, "qscheme": torch.per_channel_affine} if channels > 0 else {}
    learned = _LearnableFakeQuantize(
        observer=getattr(quantization, kind), quant_min=0, quant_max=255, scale=0.1, zero_point=3.0,
        channel_len=channels, use_grad_scaling=True, **options,
    )  # fmt: skip
    theirs = torch.nn.Sequential(torch.nn.Linear(4, 3), learned)
    learned.enable_param_learning()
    x, ours = torch.randn(5, 4), flow.from_torch(copy.deepcopy(theirs))
    theirs(x).square().sum().backward()
    ours(flow.from_torch(x)).square().sum().backward()
    for p, q in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(p.grad.to_torch(), q.grad, rtol=1e-4, atol=1e-4)
