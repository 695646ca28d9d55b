"""dtypes, devices and layouts: what changes, what stays the same object, what flows back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import weft as flow
from weft.core import dtype as dtypes
from weft.core.errors import DtypeError
from weft.launch import spawn_threads

B, P, S = flow.sbp.broadcast, flow.sbp.partial_sum, flow.sbp.split


def test_to_dtype() -> None:
    x = flow.tensor([1.7, -2.2], requires_grad=True)
    assert x.to(flow.float32) is x and x.float() is x and x.to("cpu") is x
    for name in ("double", "half", "bfloat16", "long", "int", "short", "char", "bool"):
        expected = getattr(torch.tensor([1.7, -2.2]), name)()
        assert torch.equal(getattr(x, name)().to_torch(), expected)
        assert torch.equal(x.to(getattr(x, name)().dtype).to_torch(), expected)
    y = x.to(dtype=flow.float64)
    (y * y).sum().backward()
    assert x.grad.dtype is flow.float32 and np.allclose(x.grad.numpy(), [3.4, -4.4])
    assert x.to(y).dtype is flow.float64 and x.type_as(y).dtype is flow.float64
    assert x.to("cpu", flow.float16).dtype is flow.float16
    assert x.to("float64").dtype is flow.float64 and x.to(torch.float64).dtype is flow.float64
    copied = x.to(flow.float32, copy=True)
    assert copied is not x and copied.data_ptr() != x.data_ptr()


def test_type_names() -> None:
    x = flow.ones(2)
    assert x.type() == "weft.FloatTensor" and x.type(flow.int64).type() == "weft.LongTensor"
    assert x.type("weft.DoubleTensor").dtype is flow.float64


def test_a_missing_device_is_named() -> None:
    if not torch.cuda.is_available():
        with pytest.raises(flow.errors.DeviceError, match="torch sees no CUDA"):
            flow.ones(2).cuda()


def test_contiguous() -> None:
    x = flow.ones(2, 3)
    assert x.contiguous() is x
    y = x.t().contiguous()
    assert y.is_contiguous() and y.shape == (3, 2) and y.data_ptr() != x.data_ptr()
    turned = flow.randn(2, 3, 4, requires_grad=True).transpose(0, 1)
    assert turned.clone().stride() == turned.stride()  # as torch's
    y = turned.clone(memory_format=torch.contiguous_format)
    y.view(3, 8).sum().backward()
    assert y.is_contiguous() and flow.equal(y, turned)
    same = y.detach().clone(memory_format=torch.contiguous_format)
    assert same.data_ptr() != y.data_ptr() and flow.equal(same, y)


FORMATS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "to": lambda m, x, kept: x.to(memory_format=kept),
    "float": lambda m, x, kept: x.float(memory_format=kept),
    "contiguous": lambda m, x, kept: x.contiguous(memory_format=kept),
    "clone": lambda m, x, kept: x.clone(memory_format=kept),
    "empty": lambda m, x, kept: m.empty(*x.shape, memory_format=kept),
    "zeros_like": lambda m, x, kept: m.zeros_like(x, memory_format=kept),
    "rand_like": lambda m, x, kept: m.rand_like(x, memory_format=kept),
}


@pytest.mark.parametrize("kept", [torch.channels_last, torch.contiguous_format])
@pytest.mark.parametrize("shape", [(2, 1, 4, 4), (2, 3, 1, 1), (2, 3, 4, 4)], ids=str)
@pytest.mark.parametrize("name", FORMATS)
def test_memory_formats_have_torchs_strides(name: str, shape: tuple[int, ...], kept: torch.memory_format) -> None:
    """Also where those of one channel or pixel fit several formats: kernels choose by them."""
    for made in (torch.rand(shape), torch.rand(shape).to(memory_format=torch.channels_last)):
        theirs = FORMATS[name](torch, made, kept)
        ours = FORMATS[name](flow, flow.from_torch(made), kept)
        assert ours.stride() == theirs.stride()
        assert (theirs.data_ptr() == made.data_ptr()) is (ours.data_ptr() == made.data_ptr())


@pytest.mark.parametrize("kept", [torch.channels_last, torch.contiguous_format])
@pytest.mark.parametrize("name", ["to", "copy", "float", "module"])
def test_what_is_in_a_format_by_its_order_alone_is_not_copied(name: str, kept: torch.memory_format) -> None:
    of: dict[str, Callable[[Any, Any], Any]] = {
        "to": lambda m, x: x.to(memory_format=kept),
        "float": lambda m, x: x.float(memory_format=kept),
        "copy": lambda m, x: x.to(m.float32, copy=True, memory_format=kept),
        "module": lambda m, x: m.nn.ParameterList([m.nn.Parameter(x)]).to(memory_format=kept)[0],
    }
    last = torch.rand(2, 3, 4, 5).to(memory_format=torch.channels_last)
    for made in (last[:, :2], torch.rand(5, 4, 3, 2).permute(2, 3, 0, 1), torch.rand(2, 3, 4, 5)[..., ::2]):
        theirs, ours = of[name](torch, made), of[name](flow, flow.from_torch(made))
        assert ours.stride() == theirs.stride()
        assert (theirs.data_ptr() == made.data_ptr()) is (ours.data_ptr() == made.data_ptr())


def test_local_to_global_and_back_on_one_rank() -> None:
    placement = flow.placement("cpu", [0])
    x = flow.ones(2, 3)
    g = x.to_global(placement=placement, sbp=S(0))
    assert g.is_global and g.sbp == (S(0),) and g.to_local().data_ptr() == x.data_ptr()
    assert x.to_global(placement, B, copy=True).to_local().data_ptr() != x.data_ptr()
    assert g.to_global() is g
    nested = flow.to_global({"a": [x, (x, 1)], "b": None}, placement, B)
    assert nested["a"][1][0].is_global and nested["a"][1][1] == 1 and nested["b"] is None
    assert flow.to_local(nested)["a"][0].is_local


def test_conversions_refuse_what_they_cannot_do() -> None:
    x, placement = flow.ones(2), flow.placement("cpu", [0])
    with pytest.raises(flow.errors.SbpError, match="both a placement and an sbp"):
        x.to_global(sbp=B)
    with pytest.raises(flow.errors.SbpError, match="global_to_global takes a global tensor"):
        x.global_to_global(placement, B)
    with pytest.raises(flow.errors.ArgumentError, match=r"must be a flow\.placement"):
        x.to_global(0, B)
    with pytest.raises(flow.errors.SbpError, match="splits dimension 3"):
        x.to_global(placement, B).to_global(sbp=S(3))
    with pytest.raises(flow.errors.SbpError, match="is not an sbp"):
        x.to_global(placement, "split")


def test_layouts_on_two_ranks_hold_one_logical_tensor() -> None:
    def each() -> None:
        placement, rank = flow.placement("cpu", [0, 1]), flow.env.get_rank()
        x = flow.tensor([[1.0 + rank, 2.0]])
        g = x.to_global(placement, S(0))
        assert tuple(g.shape) == (2, 2) and g.numpy().tolist() == [[1.0, 2.0], [2.0, 2.0]]
        assert tuple(x.to_global(placement, S(0), check_meta=False).shape) == (2, 2)
        assert x.to_global(placement, P).numpy().tolist() == [[3.0, 4.0]]
        assert x.to_global(placement, B).numpy().tolist() == [[1.0, 2.0]]  # of the first rank
        for sbp in (B, S(0), S(1), P):
            assert g.to_global(sbp=sbp).numpy().tolist() == g.numpy().tolist()
        assert g[1].numpy().tolist() == [2.0, 2.0]
        g[1] = 5
        assert g.numpy().tolist() == [[1.0, 2.0], [5.0, 5.0]] and g.sbp == (S(0),)
        g[:, flow.tensor([1])] = 0.0
        assert g.numpy().tolist() == [[1.0, 0.0], [5.0, 0.0]]
        assert g[g > 0].numpy().tolist() == [1.0, 5.0]
        g.fill_(3.0)
        assert g.numpy().tolist() == [[3.0, 3.0], [3.0, 3.0]]

    spawn_threads(2, each, deadline=60)


def test_grad_sbp_says_how_the_gradient_comes_back() -> None:
    def each() -> None:
        placement = flow.placement("cpu", [0, 1])
        x = flow.ones(4, placement=placement, sbp=B, requires_grad=True)
        seen = []
        y = x.to_global(sbp=S(0), grad_sbp=B)
        y.register_hook(lambda g: seen.append(g.sbp))
        (y * 2).sum().backward()
        assert seen == [(B,)] and x.grad.numpy().tolist() == [2.0] * 4

    spawn_threads(2, each, deadline=60)


def test_random_global_tensors_do_not_depend_on_the_layout() -> None:
    def each() -> list[list[float]]:
        placement = flow.placement("cpu", [0, 1])
        found = []
        for sbp in (B, S(0)):
            flow.manual_seed(5)
            found.append(flow.randn(5, placement=placement, sbp=sbp).numpy().tolist())
        return found

    results = spawn_threads(2, each, deadline=60)
    assert results[0][0] == results[0][1] == results[1][0] == results[1][1]


def test_no_target_changes_nothing():
    """numpy reads None as float64."""
    x = flow.arange(3)
    assert x.to(None) is x and x.to(None, flow.int32).dtype is flow.int32
    with pytest.raises(DtypeError, match="None is not a dtype"):
        dtypes.of(None)
