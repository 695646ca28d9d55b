"""Making tensors by their class."""

from __future__ import annotations

import pytest

import weft as flow
from weft.core.errors import DtypeError


def test_the_class_takes_sizes_or_numbers() -> None:
    for given, shape in ((((2, 3)), (2, 3)), ((5,), (5,)), ((), (0,)), ((flow.Size([2, 2]),), (2, 2))):
        assert tuple(flow.Tensor(*given).shape) == shape
    assert flow.Tensor([1, 2]).tolist() == flow.Tensor((1, 2)).tolist() == [1.0, 2.0]
    assert flow.Tensor(flow.ones(2)).dtype is flow.float32


def test_the_class_takes_a_device() -> None:
    assert flow.Tensor([[1.0]], device="cpu").tolist() == [[1.0]]
    assert tuple(flow.Tensor(2, 3, device=flow.device("cpu")).shape) == (2, 3)
    assert flow.Tensor(2, device="meta").device.type == "meta"


def test_a_hook_on_the_accumulated_gradient_may_give_another() -> None:
    x = flow.zeros(2, requires_grad=True)
    seen = []
    x._register_post_grad_accumulation_hook(lambda grad: grad * 2 + 1)
    x._register_post_grad_accumulation_hook(lambda grad: seen.append(grad.tolist()))
    (x.sum() + (x * 2).sum()).backward()
    assert x.grad is not None and x.grad.tolist() == [7.0, 7.0]
    assert seen == [[7.0, 7.0]]


def test_a_list_is_repeated_by_a_tensor_of_one_integer() -> None:
    n = flow.tensor(2)
    assert [0] * n == n * [0] == [0, 0] and (1, 2) * n == (1, 2, 1, 2) and "ab" * n == "abab"
    for wrong in (flow.tensor(2.0), flow.tensor([1, 2])):
        with pytest.raises(DtypeError, match="integer tensor of one element"):
            [0] * wrong
