"""Tensors and ops on a CUDA device: what they give is what the CPU gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import weft as flow
from weft.core.errors import DeviceError
from weft.ops import OPS
from weft.ops.declaration import Op
from weft.tensor.tensor import of_torch
from weft.testing import registry
from weft.testing.cases import copied
from weft.testing.layouts import replaced, tensors

pytestmark = pytest.mark.cuda
DEVICE = "cuda"
SIGNED = ("eigh", "svd")  # vectors that may have either sign
WITHOUT = {*SIGNED, *registry.WITHOUT_SAMPLES, *registry.UNDERIVED}
NAMES = [
    name for name, op in sorted(OPS.items())
    if not (op.random or op.rejection or name in WITHOUT) and registry.cases(op)
]  # fmt: skip


def on(device: str, op: Op, args: tuple[Any, ...]) -> tuple[tuple[Any, ...], list[flow.Tensor]]:
    """The arguments with Weft's tensors on a device, and those of them that want gradients."""
    made = [of_torch(t.to(device)) for t in tensors(op, copied(op, args))]
    for t in made:
        t.requires_grad = t.dtype.differentiable and op.vjp is not None
    placed = replaced(op, args, made)
    if "device" in op.names:
        at = op.names.index("device")
        placed = (*placed[:at], flow.device(device), *placed[at + 1 :])
    return placed, [t for t in made if t.requires_grad]


def results(device: str, op: Op, args: tuple[Any, ...]) -> list[torch.Tensor]:
    """Outputs and gradients, on the CPU."""
    placed, wanting = on(device, op, args)
    n = len(placed) - len(op.keywords)
    found = op(*placed[:n], **dict(zip(op.keywords, placed[n:], strict=True)))
    outputs = list(found) if isinstance(found, (tuple, list)) else [found]
    assert all(y.device.type == torch.device(device).type for y in outputs)
    loss = [y for y in outputs if y.requires_grad]
    if loss:
        sum((y * y).sum() for y in loss).backward()  # type: ignore[union-attr]
    grads = [t.grad for t in wanting if t.grad is not None]
    return [y.detach().cpu().to_torch() for y in (*outputs, *grads)]


@pytest.mark.parametrize("name", NAMES)
def test_an_op_gives_what_the_cpu_gives(name: str) -> None:
    op = OPS[name]
    for args in registry.cases(op):
        expected, got = results("cpu", op, args), results(DEVICE, op, args)
        assert len(expected) == len(got)
        for e, g in zip(expected, got, strict=True):
            torch.testing.assert_close(g, e, rtol=1e-6, atol=1e-8)


def test_making_and_moving() -> None:
    x = flow.arange(6, device=DEVICE).view(2, 3)
    assert x.device.type == DEVICE and x.is_cuda == (DEVICE == "cuda") and x[1].device is x.device
    assert x.cpu().device.type == "cpu" and x.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert np.array_equal(x.numpy(), np.arange(6).reshape(2, 3))
    y = flow.ones(2, 3)
    assert y.to(DEVICE).device is x.device and y.to(x).dtype is x.dtype
    assert flow.zeros_like(x).device is x.device and x.new_ones(2).device is x.device
    assert f"device='{DEVICE}:0'" in repr(x) or DEVICE == "cpu"
    assert flow.tensor([1.0], device=f"{DEVICE}:0").item() == 1.0


def test_a_gradient_crosses_devices() -> None:
    x = flow.ones(3, requires_grad=True)
    (x.to(DEVICE) * 2).sum().to("cpu").backward()
    assert x.grad is not None and x.grad.device.type == "cpu" and x.grad.tolist() == [2.0] * 3


def test_in_place_ops_and_views() -> None:
    x = flow.zeros(2, 3, device=DEVICE)
    x[0].add_(1)
    x[:, 2] = 5
    flow.nn.functional.relu(x, inplace=True)
    assert x.tolist() == [[1, 1, 5], [0, 0, 5]]


def test_shapes_that_only_data_tells() -> None:
    x = flow.tensor([1, 0, 2, 0], device=DEVICE)
    assert flow.nonzero(x).tolist() == [[0], [2]] and x[x > 0].tolist() == [1, 2]
    assert flow.unique(x).tolist() == [0, 1, 2]


def test_a_seed_repeats_draws() -> None:
    def draw() -> list[Any]:
        flow.manual_seed(3)
        x = flow.randn(4, device=DEVICE)
        return [x.tolist(), flow.nn.functional.dropout(flow.ones(8, device=DEVICE), 0.5).tolist()]

    assert draw() == draw()


@pytest.mark.hardware
def test_two_devices_in_one_op_are_refused() -> None:
    with pytest.raises(DeviceError, match=r"(?s)operands are on cpu and cuda:0.*x\.to"):
        flow.add(flow.ones(2), flow.ones(2, device=DEVICE))
    with pytest.raises(DeviceError, match="cuda:99 was asked for"):
        flow.ones(2, device="cuda:99")


def test_a_global_tensor_of_one_rank() -> None:
    place = flow.placement(DEVICE, ranks=[0])
    x = flow.ones(4, 4, placement=place, sbp=flow.sbp.split(0)).requires_grad_()
    (x @ x.t()).sum().backward()
    assert x.grad is not None and x.grad.placement == place and x.to_local().device.type == DEVICE
    assert x.grad.numpy().tolist() == [[8.0] * 4] * 4
    flow.manual_seed(0)
    a = flow.randn(3, placement=place, sbp=flow.sbp.broadcast)
    flow.manual_seed(0)
    assert flow.randn(3, placement=place, sbp=flow.sbp.broadcast).numpy().tolist() == a.numpy().tolist()
    on_cpu = a.to_global(placement=flow.placement("cpu", ranks=[0]), sbp=flow.sbp.broadcast)
    assert on_cpu.to_local().device.type == "cpu" and on_cpu.numpy().tolist() == a.numpy().tolist()


def test_what_is_kept_for_backward_can_lie_on_the_host() -> None:
    x = flow.full((64, 64), 0.5, device=DEVICE, requires_grad=True)
    for pin in (False, True):
        with flow.autograd.graph.save_on_cpu(pin_memory=pin):
            y = (x * x).exp()
        kept = [p.kept[0] for p in y.node.saved]
        assert all(t.device.type == "cpu" for t in kept)
        y.sum().backward()
    torch.testing.assert_close(x.grad.cpu().to_torch(), torch.full((64, 64), 2 * torch.tensor(0.25).exp().item()))  # type: ignore[union-attr]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(("t", "s", "width"), [(64, 64, 32), (33, 70, 64), (128, 128, 24), (5, 5, 7)])
@pytest.mark.parametrize("mask", ["none", "causal", "rows", "added", "kept"])
def test_attention_by_fused_kernels(dtype: torch.dtype, t: int, s: int, width: int, mask: str) -> None:
    if mask == "causal":
        s = t
    rng = torch.Generator().manual_seed(0)
    shapes = [(2, 3, t, width), (2, 3, s, width), (2, 3, s, width), (2, 3, t, width)]
    q, k, v, dy = (torch.randn(shape, generator=rng).to(dtype).double() for shape in shapes)
    masks = {"rows": torch.randn(t, s, generator=rng), "added": torch.randn(2, 1, 1, s, generator=rng),
             "kept": torch.rand(2, 3, t, s, generator=rng) > 0.3}  # fmt: skip
    chosen = masks.get(mask)

    def run(to: Any) -> list[torch.Tensor]:
        given = [of_torch(to(x.clone())) for x in (q, k, v)]
        for x in given:
            x.requires_grad = True
        kept = chosen if chosen is None or chosen.dtype == torch.bool else to(chosen.to(dtype))
        kept = None if kept is None else of_torch(kept if kept.dtype != torch.bool or to is exact else kept.to(DEVICE))
        y = flow.nn.functional.scaled_dot_product_attention(*given, attn_mask=kept, is_causal=mask == "causal")
        y.backward(of_torch(to(dy.clone())))
        return [x.detach().cpu().to_torch().double() for x in (y, *(g.grad for g in given))]  # type: ignore[union-attr]

    def exact(x: torch.Tensor) -> torch.Tensor:
        return x.double()

    expected, got = run(exact), run(lambda x: x.to(DEVICE, dtype))
    for e, g in zip(expected, got, strict=True):
        assert (e - g).norm() <= (2e-2 if dtype == torch.bfloat16 else 1e-5) * e.norm()


@pytest.mark.hardware
@pytest.mark.parametrize("dtype", [flow.float32, flow.float16, flow.bfloat16])
def test_attention_takes_no_memory_for_scores(dtype: flow.dtype) -> None:
    q = flow.randn(2, 8, 2048, 64, device=DEVICE, dtype=dtype, requires_grad=True)
    flow.cuda.synchronize()
    before = flow.cuda.memory_allocated()
    flow.cuda.reset_peak_memory_stats()
    flow.nn.functional.scaled_dot_product_attention(q, q, q, is_causal=True).sum().backward()
    assert flow.cuda.max_memory_allocated() - before < 2 * 8 * 2048 * 2048 * 4 // 2  # half of the scores
