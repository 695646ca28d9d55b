"""What programs ask of the machine, and catch: devices, versions, memory, random numbers of devices."""

from __future__ import annotations

import importlib
import math
from typing import Any

import pytest
import torch

import weft as flow
from weft.core.errors import DeviceError, OpError, ShapeError


def test_an_accelerator_is_what_cuda_says() -> None:
    there = flow.cuda.is_available()
    assert flow.accelerator.is_available() is there and flow.accelerator.device_count() == flow.cuda.device_count()
    assert flow.accelerator.current_accelerator() == (flow.device("cuda") if there else None)
    flow.accelerator.synchronize()
    assert importlib.import_module("weft.accelerator") is flow.accelerator


def test_without_an_accelerator(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    monkeypatch.setattr("torch.cuda.device_count", lambda: 0)
    for call in (flow.accelerator.current_device_index, lambda: flow.accelerator.set_device_index(0)):
        with pytest.raises(DeviceError, match="is_available"):
            call()
    assert flow.cuda.get_rng_state_all() == [] and flow.cuda.memory_stats() == {}
    flow.cuda.set_rng_state_all([])
    assert "no CUDA device" in flow.cuda.memory_summary()
    with pytest.raises(DeviceError):
        flow.cuda.get_rng_state()


def test_versions_and_layouts_of_memory() -> None:
    assert flow.version.__version__ == flow.__version__ and flow.version.cuda == torch.version.cuda
    assert flow.channels_last_3d is torch.channels_last_3d and flow.GradScaler is flow.amp.GradScaler
    assert flow.autograd.grad_mode.no_grad is flow.no_grad


def test_more_memory_than_there_is() -> None:
    with pytest.raises(flow.OutOfMemoryError, match="GiB") as caught:
        flow.ones(2**45)
    assert isinstance(caught.value, ShapeError) and flow.cuda.OutOfMemoryError is flow.OutOfMemoryError
    freed = flow.ones(3, 3)
    freed.to_torch().untyped_storage().resize_(0)  # of which torch says how one "will actually allocate memory"
    with pytest.raises(OpError, match="not allocated yet") as caught:
        flow.matmul(freed, freed)
    assert not isinstance(caught.value, flow.OutOfMemoryError)


def test_questions_with_one_answer() -> None:
    x: Any = flow.ones(2)
    for name in ("is_sparse", "is_sparse_csr", "is_quantized", "is_mkldnn", "is_mps", "is_xpu", "is_nested"):
        assert getattr(x, name) is False is getattr(torch.ones(2), name)
    assert x.to_dense() is x and x.storage().nbytes() == 8
    flow.manual_seed(0)
    layer = flow.nn.utils.skip_init(flow.nn.Linear, 2, 3, bias=False)
    assert layer.weight.shape == (3, 2) and layer.bias is None and layer.weight.device.type == "cpu"
    torch.manual_seed(0)
    assert flow.rand(1).item() == torch.rand(1).item()  # nothing was drawn for it


def test_marks_for_a_compiler_change_nothing() -> None:
    @flow.jit.unused
    def double(x: Any) -> Any:
        return x * 2

    class Marked(flow.nn.Module):
        fast: flow.jit.Final[bool] = True

        @flow.jit.export
        def forward(self, x: Any) -> Any:
            return double(flow.jit.annotate(flow.Tensor, x)) if not flow.jit.is_scripting() else x

    assert flow.jit.script(Marked())(flow.ones(1)).item() == 2.0 and not flow.jit.is_tracing()
    assert flow.nn.utils.clip_grad_norm is flow.nn.utils.clip_grad_norm_


@pytest.mark.parametrize("channels", [False, True])
def test_quantised_as_torchs(channels: bool) -> None:
    def run(m: Any) -> list[Any]:
        x = m.tensor([[-3.0, -0.26, 0.0], [0.31, 0.9, 5.0]], requires_grad=True)
        if channels:
            scale, zero = m.tensor([0.1, 0.5, 0.25]), m.tensor([0, 1, 2], dtype=m.int32)
            y = m.fake_quantize_per_channel_affine(x, scale, zero, 1, -4, 3)
        else:
            y = m.fake_quantize_per_tensor_affine(x, 0.25, 1, -4, 3)
        (y * y).sum().backward()
        return [y.tolist(), x.grad.tolist()]

    assert run(flow) == run(torch)


@pytest.mark.parametrize("channels", [False, True])
@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("scale", [0.0, 1e-6, 1.0])
def test_quantised_by_running_extremes_as_torchs(channels: bool, symmetric: bool, scale: float) -> None:
    def run(m: Any) -> list[Any]:
        low, high = (m.zeros(0), m.zeros(0)) if channels else (m.tensor(math.inf), m.tensor(-math.inf))
        flag, found = m.ones(1), []
        states = [low, high, m.ones(1), m.zeros(1, dtype=m.int32)]
        for i, bounds in enumerate([(-128, 127), (0, 255), (-128, 127)]):
            x = (m.tensor([[-3.0, -0.26, 0.0], [0.31, 0.9, 5.0]]) + i - 1).mul(scale).requires_grad_()
            y = m.fused_moving_avg_obs_fake_quant(x, flag, flag, *states, 0.01, *bounds, 0, channels, symmetric)
            (y * y).sum().backward()
            found += [y, x.grad, *states]
        return [t.clone().double().reshape(-1).tolist() for t in found]

    for ours, theirs in zip(run(flow), run(torch), strict=True):
        assert ours == pytest.approx(theirs, rel=1e-5, abs=1e-12)
