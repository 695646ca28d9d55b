"""Making tensors by their class."""

from __future__ import annotations

import weft as flow


def test_the_class_takes_sizes_or_numbers() -> None:
    for given, shape in ((((2, 3)), (2, 3)), ((5,), (5,)), ((), (0,)), ((flow.Size([2, 2]),), (2, 2))):
        assert tuple(flow.Tensor(*given).shape) == shape
    assert flow.Tensor([1, 2]).tolist() == flow.Tensor((1, 2)).tolist() == [1.0, 2.0]
    assert flow.Tensor(flow.ones(2)).dtype is flow.float32
