"""Which dtype ops run in under autocast, what is cached, and gradients: torch's, where it has the same rules."""

from __future__ import annotations

import pytest
import torch

import weft as flow
from weft.core.errors import OptionError
from weft.nn import functional as F
from weft.tensor.tensor import of_torch


def test_products_run_short_and_sums_in_full() -> None:
    x, w = flow.randn(4, 8), flow.randn(8, 8)
    with flow.autocast("cpu"):
        y = x @ w
        assert y.dtype is flow.bfloat16
        assert F.linear(x, w).dtype is flow.bfloat16
        assert F.conv1d(flow.ones(1, 2, 5), flow.ones(3, 2, 2)).dtype is flow.bfloat16
        q = x[None, None]
        assert F.scaled_dot_product_attention(q, q, q).dtype is flow.bfloat16
        assert F.softmax(y, -1).dtype is flow.float32
        assert F.layer_norm(y, (8,)).dtype is flow.float32
        assert F.cross_entropy(y, flow.tensor([0, 1, 2, 3])).dtype is flow.float32
        assert F.mse_loss(y, x).dtype is flow.float32
        assert F.relu(y).dtype is flow.bfloat16, "what costs no digits runs as it comes"
        assert (y + x[:, :8]).dtype is flow.float32
        assert (x.double() @ w.double()).dtype is flow.float64
        assert (x @ y.T).dtype is flow.bfloat16, "mixed operands"
    assert (x @ w).dtype is flow.float32


def test_a_networks_outputs_and_gradients_are_torchs() -> None:
    torch.manual_seed(0)
    theirs = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4))
    ours = flow.nn.Sequential(flow.nn.Linear(8, 16), flow.nn.ReLU(), flow.nn.Linear(16, 4))
    ours.load_state_dict({k: of_torch(v.clone()) for k, v in theirs.state_dict().items()})
    x, target = torch.randn(32, 8), torch.randint(0, 4, (32,))
    with torch.autocast("cpu"):
        expected = torch.nn.functional.cross_entropy(theirs(x), target)
    expected.backward()
    with flow.autocast("cpu"):
        loss = F.cross_entropy(ours(of_torch(x)), of_torch(target))
    loss.backward()
    torch.testing.assert_close(loss.detach().to_torch().float(), expected.detach().float(), rtol=1e-2, atol=1e-2)
    for p, q in zip(theirs.parameters(), ours.parameters(), strict=True):
        assert p.grad is not None and q.grad is not None and q.grad.dtype is flow.float32
        torch.testing.assert_close(q.grad.to_torch(), p.grad, rtol=2e-2, atol=2e-3)


def test_a_parameter_is_cast_once_in_a_context() -> None:
    layer, x = flow.nn.Linear(4, 4, bias=False), flow.ones(2, 4)
    with flow.autocast("cpu") as cast:
        layer(x), layer(x)
        assert len(cast._casts) == 1
        with flow.no_grad():
            layer(x)  # a cast without a tape must not serve calls that are recorded
        layer(x).float().sum().backward()
        first = layer.weight.grad
        assert first is not None
        layer(x).float().sum().backward()  # the first backward has released the cast
        assert layer.weight.grad.equal(2 * flow.ones(4, 4) * 2)  # type: ignore[union-attr]
        flow.optim.SGD(layer.parameters(), lr=1.0).step()
        assert layer(x).allclose((x @ layer.weight.T).bfloat16(), atol=0.1), "a parameter that moved is cast anew"
        flow.clear_autocast_cache()
        assert not cast._casts
        layer(x)
    assert not cast._casts


def test_the_innermost_decides() -> None:
    x = flow.ones(2, 2)
    assert not flow.is_autocast_enabled()
    with flow.autocast("cpu"):
        with flow.autocast("cpu", enabled=False):
            assert (x @ x).dtype is flow.float32 and not flow.is_autocast_enabled()
        with flow.autocast("cpu", dtype=flow.float16):
            assert (x @ x).dtype is flow.float16 and flow.get_autocast_cpu_dtype() is flow.float16
        with flow.autocast("cuda"):
            assert (x @ x).dtype is flow.bfloat16, "this one is for another device: each has its own"
        assert flow.is_autocast_enabled() and flow.is_autocast_cache_enabled()
    assert flow.get_autocast_gpu_dtype() is flow.float16


def test_it_decorates() -> None:
    @flow.autocast("cpu", dtype=flow.bfloat16)
    def product(x: flow.Tensor) -> flow.Tensor:
        """Its own text."""
        return x @ x

    assert product(flow.ones(2, 2)).dtype is flow.bfloat16
    assert product.__doc__ == "Its own text."
    assert flow.autocast_decorator("cpu")(lambda x: x @ x)(flow.ones(2, 2)).dtype is flow.bfloat16


def test_global_tensors_are_cast_too() -> None:
    here = flow.placement("cpu", ranks=[0])
    x = flow.ones(2, 2, placement=here, sbp=flow.sbp.broadcast)
    with flow.autocast("cpu"):
        assert (x @ x).dtype is flow.bfloat16


def test_what_cannot_be_is_said() -> None:
    with pytest.raises(OptionError, match="device types cpu, cuda"):
        flow.autocast("tpu")
    with pytest.raises(OptionError, match="16-bit dtype"):
        flow.autocast("cpu", dtype=flow.float64)


def test_what_an_autocast_takes_can_be_set_and_told() -> None:
    try:
        flow.set_autocast_cpu_dtype(flow.float16)
        assert flow.get_autocast_cpu_dtype() is flow.float16
        with flow.autocast("cpu"):
            assert (flow.ones(2, 2) @ flow.ones(2, 2)).dtype is flow.float16
            flow.set_autocast_cache_enabled(False)
            assert not flow.is_autocast_cache_enabled()
        assert flow.is_autocast_cache_enabled() and flow.amp.is_autocast_available("cpu")
        with pytest.raises(flow.errors.OptionError, match="16-bit"):
            flow.set_autocast_cpu_dtype(flow.float32)
    finally:
        flow.set_autocast_cpu_dtype(flow.bfloat16)


def test_an_autocast_without_a_with_ends_with_the_one_around() -> None:
    with flow.autocast("cpu", enabled=False):
        flow.set_autocast_enabled("cpu", True)
        assert flow.is_autocast_enabled("cpu") and not flow.is_autocast_enabled("cuda")
        assert (flow.ones(2, 2) @ flow.ones(2, 2)).dtype is flow.bfloat16
        flow.set_autocast_enabled("cpu", False)
        assert (flow.ones(2, 2) @ flow.ones(2, 2)).dtype is flow.float32
    assert not flow.is_autocast_enabled() and (flow.ones(2, 2) @ flow.ones(2, 2)).dtype is flow.float32


def test_a_function_of_ones_own_says_its_dtype() -> None:
    seen = []

    class Double(flow.autograd.Function):
        @staticmethod
        @flow.amp.custom_fwd(device_type="cpu", cast_inputs=flow.float32)
        def forward(ctx, x):
            seen.append((x.dtype, flow.is_autocast_enabled()))
            return x * 2

        @staticmethod
        @flow.amp.custom_bwd(device_type="cpu")
        def backward(ctx, dy):
            seen.append((dy.dtype, flow.is_autocast_enabled()))
            return dy * 2

    x = flow.ones(2, requires_grad=True)
    with flow.autocast("cpu"):
        y = Double.apply(x.bfloat16())
    y.sum().backward()
    assert seen == [(flow.float32, False), (flow.float32, True)] and x.grad.tolist() == [2.0, 2.0]
