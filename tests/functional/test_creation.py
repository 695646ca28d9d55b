"""New tensors against torch's: sizes, values, dtypes, memory shared or copied, and global ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import weft as flow

P = flow.placement("cpu", [0])
B, S = flow.sbp.broadcast, flow.sbp.split


def same(got: flow.Tensor, expected: torch.Tensor) -> None:
    assert tuple(got.shape) == tuple(expected.shape) and got.dtype.torch == expected.dtype
    assert torch.equal(got.to_torch(), expected)


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("ones", (2, 3)), ("ones", ((2, 3),)), ("zeros", ((),)), ("full", ((2,), 7)),
        ("full", ((2,), 7.5)), ("full", ((2,), True)), ("arange", (5,)), ("arange", (1, 6, 2)),
        ("arange", (0, 1, 0.25)),
        ("linspace", (0, 1, 5)), ("logspace", (0, 2, 3)), ("eye", (3,)), ("eye", (2, 3)), ("tensor", (1,)),
        ("tensor", (1.5,)), ("tensor", ([[1, 2], [3, 4]],)), ("tensor", (True,)), ("tensor", ([],)),
        ("tensor", (np.arange(3, dtype=np.int16),)), ("as_tensor", ([1.0, 2.0],)),
    ],
)  # fmt: skip
def test_values_and_dtypes_are_torchs(name: str, args: tuple[Any, ...]) -> None:
    same(getattr(flow, name)(*args), getattr(torch, name)(*args))
    if name != "as_tensor" and not isinstance(args[0], np.ndarray):
        wanted = getattr(torch, name)(*args, dtype=torch.float64)
        same(getattr(flow, name)(*args, dtype=flow.float64), wanted)
        split = wanted.dim() and wanted.shape[0]
        g = getattr(flow, name)(*args, dtype=flow.float64, placement=P, sbp=S(0) if split else B)
        assert g.is_global and torch.equal(torch.from_numpy(g.numpy()), wanted)
        assert getattr(flow, name)(*args, dtype=flow.float64, requires_grad=True).requires_grad


def test_the_default_dtype_is_torchs() -> None:
    assert flow.get_default_dtype() is flow.float32
    flow.set_default_dtype(flow.float64)
    try:
        assert flow.ones(2).dtype is flow.tensor(1.5).dtype is flow.rand(1).dtype is flow.float64
    finally:
        flow.set_default_dtype(flow.float32)


def test_what_shares_memory_and_what_copies() -> None:
    array = np.zeros(3, dtype=np.float32)
    for make, shared in (
        (flow.from_numpy, True),
        (flow.as_tensor, True),
        (flow.from_dlpack, True),
        (flow.tensor, False),
    ):
        array[0] = 0
        x = make(array)
        array[0] = 5
        assert (x[0].item() == 5) is shared
    t = torch.zeros(2)
    x = flow.from_torch(t)
    x += 1
    assert t.tolist() == [1.0, 1.0]
    assert np.shares_memory(x.numpy(), t.numpy()) and torch.from_dlpack(x).data_ptr() == t.data_ptr()
    assert flow.as_tensor(x) is x


def test_arrays_that_run_backwards_are_copied() -> None:
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    for make in (flow.tensor, flow.Tensor, flow.FloatTensor):
        assert np.array_equal(make(array[::-1]).numpy(), array[::-1])
        assert np.array_equal(make(array[:, ::-1]).numpy(), array[:, ::-1])
    for share in (flow.as_tensor, flow.from_numpy):
        with pytest.raises(ValueError, match="negative"):
            share(array[::-1])


def test_tensors_inside_lists() -> None:
    assert flow.tensor([flow.tensor(1.0), flow.tensor(2.0)]).tolist() == [1.0, 2.0]
    x = flow.tensor([1.0, 2.0], requires_grad=True)
    y = flow.tensor(x)
    assert not y.requires_grad and y.data_ptr() != x.data_ptr()


def test_likeness() -> None:
    x = flow.ones(2, 3, dtype=flow.float64)
    for name in ("ones_like", "zeros_like", "empty_like", "rand_like", "randn_like"):
        y = getattr(flow, name)(x)
        assert y.shape == x.shape and y.dtype is x.dtype and not y.requires_grad
        assert getattr(flow, name)(x, dtype=flow.float32, requires_grad=True).requires_grad
    assert flow.full_like(x, 3).tolist() == [[3.0] * 3] * 2
    assert flow.randint_like(x, 3, 4).tolist() == [[3.0] * 3] * 2
    assert flow.randint_like(x, high=1).tolist() == [[0.0] * 3] * 2
    g = flow.ones(2, 3, placement=P, sbp=flow.sbp.split(0))
    assert flow.zeros_like(g).placement is P
    for y in (flow.rand_like(g), flow.full_like(g, 2), g.new_zeros(2, 3), g.new_full((2, 3), 1)):
        assert y.placement is P and y.sbp == g.sbp
    for y, shape in ((x.new_ones(4), (4,)), (x.new_zeros((2, 1)), (2, 1)), (x.new_empty(0), (0,))):
        assert tuple(y.shape) == shape and y.dtype is x.dtype
    assert x.new_tensor([1]).dtype is flow.float64


def test_random_numbers() -> None:
    flow.manual_seed(3)
    a = flow.rand(100)
    flow.manual_seed(3)
    assert flow.equal(a, flow.rand(100)) and not flow.equal(a, flow.rand(100))
    torch.manual_seed(3)
    assert torch.equal(a.to_torch(), torch.rand(100)), "a seed gives what it gives in torch"
    assert a.numpy().min() >= 0 and a.numpy().max() < 1
    assert sorted(flow.randperm(10).tolist()) == list(range(10))
    r = flow.randint(5, (200,))
    assert set(r.tolist()) == set(range(5)) and r.dtype is flow.int64
    assert set(flow.randint(3, 5, (50,)).tolist()) == {3, 4}
    assert abs(flow.normal(5.0, 0.1, (1000,)).mean().item() - 5) < 0.05


def test_generators() -> None:
    g = flow.Generator().manual_seed(7)
    a, b = flow.rand(3, generator=g), flow.rand(3, generator=g)
    state = g.get_state()
    c = flow.rand(3, generator=g)
    g.set_state(state)
    assert flow.equal(c, flow.rand(3, generator=g)) and not flow.equal(a, b)
    assert g.initial_seed() == 7
    assert flow.equal(a, flow.rand(3, generator=flow.Generator().manual_seed(7)))


def test_the_ranks_own_generator_is_one() -> None:
    ours = flow.default_generator
    assert isinstance(ours, flow.Generator) and ours.manual_seed(3) is ours and ours.device.type == "cpu"
    flow.rand(2)
    other = ours.clone_state()
    assert flow.equal(flow.rand(3), flow.rand(3, generator=other))


def test_the_state_of_random_numbers_is_kept_and_put_back() -> None:
    flow.manual_seed(11)
    assert flow.initial_seed() == flow.default_generator.initial_seed() == 11
    flow.rand(2)
    flow.rand(2, placement=P, sbp=B)
    state = flow.get_rng_state()
    local, whole = flow.rand(5), flow.rand(5, placement=P, sbp=B)
    flow.set_rng_state(state)
    assert flow.equal(local, flow.rand(5))
    assert np.array_equal(whole.numpy(), flow.rand(5, placement=P, sbp=B).numpy())
    assert flow.seed() == flow.initial_seed() != 11
    with pytest.raises(TypeError, match="takes what get_rng_state"):
        flow.set_rng_state(flow.ones(2))


def test_limits_and_questions() -> None:
    assert flow.finfo(flow.float16).max == torch.finfo(torch.float16).max
    assert flow.iinfo(flow.int8).min == -128
    for call in (lambda: flow.finfo(flow.int8), lambda: flow.iinfo(flow.float32)):
        with pytest.raises(TypeError):
            call()
    assert flow.is_tensor(flow.ones(1)) and not flow.is_tensor(torch.ones(1))
    assert flow.result_type(flow.ones(2, dtype=flow.int32), 1.5) is flow.float32
    assert flow.promote_types(flow.int8, flow.float16) is flow.float16
    assert flow.allclose(flow.ones(2), flow.ones(2) + 1e-9) and flow.equal(flow.ones(2), flow.ones(2))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: flow.ones(2, placement=P), "needs an sbp"),
        (lambda: flow.ones(2, sbp=B), "give placement"),
        (lambda: flow.ones(2, placement=P, sbp=S(1)), "splits dimension 1"),
        (lambda: flow.ones(2, placement=flow.placement("cpu", [0, 1]), sbp=B), "names rank 1"),
        (lambda: flow.ones(2, placement=0, sbp=B), "must be a flow.placement"),
        (lambda: flow.ones(2, device="cpu", placement=P, sbp=B), "give one of them"),
        (lambda: flow.ones("a"), "a size is ints"),
        (lambda: flow.ones(2, device="tpu"), "is not a device"),
        (lambda: flow.ones(2, device="mps"), "mps:0 was asked for, and Weft computes on"),
        (lambda: flow.randint(4, 4, (2,)), "there is none"),
    ],
)
def test_errors_teach(call: Any, message: str) -> None:
    with pytest.raises(flow.errors.WeftError, match=message):
        call()


@pytest.mark.parametrize("name", ["rand_like", "randn_like", "ones_like"])
def test_its_own_device_changes_nothing(name: str) -> None:
    x = flow.arange(6.0).reshape(2, 3).t()
    for device in ("cpu", "cpu:0", x.device, torch.device("cpu")):
        flow.manual_seed(0), torch.manual_seed(0)
        y, expected = getattr(flow, name)(x, device=device), getattr(torch, name)(torch.empty(2, 3).t(), device="cpu")
        assert y.stride() == expected.stride() and y.tolist() == expected.tolist()
