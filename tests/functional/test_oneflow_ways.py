"""Ways in which programs written for OneFlow 0.9 differ from those for PyTorch: what OneFlow 0.9 itself answered."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import weft as flow


@pytest.fixture
def leaf() -> Any:
    return flow.tensor([1.0, 2.0], requires_grad=True)


def test_numpy_gives_the_values_of_what_requires_a_gradient(leaf: Any) -> None:
    assert leaf.numpy().tolist() == [1.0, 2.0] == leaf.to_numpy().tolist() == leaf.numpy(force=True).tolist()
    assert (leaf * 2).numpy().tolist() == [2.0, 4.0]
    leaf.numpy()[0] = 7.0  # the memory is shared
    assert leaf.tolist() == [7.0, 2.0] and np.asarray(leaf).tolist() == [7.0, 2.0]
    (leaf * leaf).sum().backward()
    assert leaf.grad.numpy().tolist() == [14.0, 4.0]
    assert flow.nn.Linear(2, 3).weight.numpy().shape == (3, 2)
