"""== and != of what others have: arrays, torch's tensors, numbers; and of what is no operand."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import weft as flow

X = np.array([[1.0, 2.0], [3.0, 4.0]], dtype=np.float32)
Y = np.array([[1.0, 0.0], [3.0, 9.0]], dtype=np.float32)
COMPARE = [operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge]


@pytest.mark.parametrize("compare", COMPARE)
@pytest.mark.parametrize("other", [Y, Y[0], torch.from_numpy(Y), flow.tensor(Y), np.float32(3.0), 3.0, 3])
def test_element_by_element(compare: Callable[[Any, Any], Any], other: Any) -> None:
    expected = compare(X, np.asarray(other))
    got = compare(flow.tensor(X), other)
    assert isinstance(got, flow.Tensor) and got.dtype is flow.bool and got.tolist() == expected.tolist()
    if not isinstance(other, torch.Tensor):
        turned = compare(other, flow.tensor(X))
        assert isinstance(turned, flow.Tensor) and turned.tolist() == compare(np.asarray(other), X).tolist()


@pytest.mark.parametrize("other", [None, "x", [1.0, 2.0], {}, object()])
def test_what_is_no_operand_is_not_equal(other: Any) -> None:
    assert (flow.tensor(X) == other) is False and (flow.tensor(X) != other) is True
