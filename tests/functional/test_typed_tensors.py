"""Typed tensors by their old names, and settings of the whole program."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import weft as flow

TYPES = {"FloatTensor": "float32", "DoubleTensor": "float64", "LongTensor": "int64", "IntTensor": "int32",
         "HalfTensor": "float16", "BoolTensor": "bool", "ByteTensor": "uint8", "CharTensor": "int8"}  # fmt: skip


@pytest.mark.parametrize(("name", "kind"), TYPES.items())
def test_typed_tensors_come_from_data_or_a_size(name: str, kind: str) -> None:
    make, dtype = getattr(flow, name), getattr(torch, kind)
    assert torch.equal(make([1, 0]).to_torch(), getattr(torch, name)([1, 0]))
    assert torch.equal(make(np.array([[1.0], [0.0]])).to_torch(), torch.tensor([[1], [0]], dtype=dtype))
    empty = make(2, 3)
    assert tuple(empty.shape) == (2, 3) and empty.to_torch().dtype == dtype
    assert make().numel() == 0
    assert flow.tensor([1]).type(f"flow.{name}").to_torch().dtype == dtype
    assert flow.tensor([1]).type(make).to_torch().dtype == dtype


@pytest.mark.parametrize("name", TYPES)
def test_a_type_knows_its_tensors(name: str) -> None:
    kind, there = getattr(flow, name), getattr(flow.cuda, name)
    for other in TYPES:
        assert isinstance(getattr(flow, other)(2), kind) is (other == name)
    assert not isinstance(kind(2), there) and not isinstance(np.ones(2), kind)
    assert repr(kind) == f"<class 'weft.{name}'>" and repr(there) == f"<class 'weft.cuda.{name}'>"
    assert (kind.dtype, kind.is_cuda, there.is_cuda) == (kind(2).dtype, False, True)


@pytest.mark.skipif(torch.cuda.is_available(), reason="says what happens without a device")
def test_a_type_on_a_device_that_is_not_there_is_refused() -> None:
    for make in (lambda: flow.cuda.FloatTensor(2), lambda: flow.ones(2).type(flow.cuda.FloatTensor)):
        with pytest.raises(flow.errors.DeviceError, match="no CUDA devices"):
            make()
    with pytest.raises(flow.errors.ArgumentError, match="unexpected argument 'devic'"):
        flow.FloatTensor([1.0], **{"devic": "cpu"})


def test_the_default_type_is_set_by_name() -> None:
    try:
        flow.set_default_tensor_type("flow.DoubleTensor")
        assert flow.ones(1).dtype is flow.float64
        flow.set_default_tensor_type(flow.FloatTensor)
        assert flow.ones(1).dtype is flow.float32
        with pytest.raises(flow.errors.ArgumentError, match="FloatTensor"):
            flow.set_default_tensor_type("flow.LongTensor")
    finally:
        torch.set_default_dtype(torch.float32)


def test_threads() -> None:
    before = flow.get_num_threads()
    try:
        flow.set_num_threads(1)
        assert flow.get_num_threads() == 1 == torch.get_num_threads()
        with pytest.raises(flow.errors.ArgumentError, match="at least 1"):
            flow.set_num_threads(0)
    finally:
        flow.set_num_threads(before)


def test_dtypes_of_numpy() -> None:
    assert flow.convert_oneflow_dtype_to_numpy_dtype(flow.float32) == np.float32
    assert flow.convert_oneflow_dtype_to_numpy_dtype(flow.int8) == np.int8
    assert flow.convert_oneflow_dtype_to_numpy_dtype(flow.bool) == np.bool_


def test_names_of_the_layers_are_reached_from_tensors_and_the_root() -> None:
    assert flow.pad(flow.ones(1, 1), (1, 0)).tolist() == [[0.0, 1.0]]
    x = flow.empty(200, 300)
    assert x.xavier_uniform_() is x and x.abs().max().item() <= (6 / 500) ** 0.5
    assert abs(x.trunc_normal_(std=0.5).std().item() - 0.5) < 0.1
    torch.testing.assert_close((x.orthogonal_() @ x.T).to_torch(), torch.eye(200), rtol=0, atol=1e-4)


SIZED = """
    lib.FloatTensor(s); lib.Tensor(s); v.new(s); v.new(s[1:]); v.new(*s); v.new(); v.new([2, 3]); v.new((2, 3));
    v.new(m); lib.Tensor([2, 3]); lib.LongTensor((2, 3)); lib.IntTensor(*s); lib.Tensor(s[1]); lib.tensor(s);
    lib.as_tensor(s); lib.zeros(s); lib.zeros(*s); lib.empty(s + (2,)); lib.ones(s[:1]); lib.full(s, 2.);
    lib.rand(s); lib.randint(0, 2, s); v.new_zeros(s); v.new_full(s, 1); v.expand(s); v.expand(*s);
    v.broadcast_to(s); v.broadcast_to(*s); m.view(*s); m.reshape(s); m.repeat(s); m.view(s[::-1]);
    m.sum_to_size(s[:0] + (1, 3)); m.view(m.size(0), -1); m.reshape(s.numel())
"""


@pytest.mark.parametrize("call", [call.strip() for call in SIZED.split(";")])
def test_a_size_is_torchs_and_makes_what_it_makes_there(call: str) -> None:
    def made(lib: Any) -> Any:
        m = lib.ones(2, 3)
        return eval(call, {"lib": lib, "m": m, "v": lib.zeros(3), "s": m.size()})

    ours, theirs = made(flow), made(torch)
    assert type(ours.shape) is torch.Size is flow.Size and ours.shape == theirs.shape
    assert str(ours.dtype).replace("weft", "torch") == str(theirs.dtype)
