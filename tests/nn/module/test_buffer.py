"""Buffers by attribute, as torch's."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch

import weft as flow
from tests.graphs import Calls


@pytest.mark.parametrize("lib", [flow, torch])
def test_an_attribute_that_is_a_buffer_is_one_of_the_module(lib: Any) -> None:
    m: Any = lib.nn.Module()
    m.kept = lib.nn.Buffer(lib.ones(2))
    m.passing = lib.nn.Buffer(lib.ones(2), persistent=False)
    m.weight = lib.nn.Parameter(lib.ones(1))
    assert [n for n, _ in m.named_buffers()] == ["kept", "passing"] and list(m.state_dict()) == ["weight", "kept"]
    assert not m.kept.requires_grad and isinstance(m.kept, lib.Tensor)
    other = copy.deepcopy(m)
    assert list(other.state_dict()) == ["weight", "kept"]
    m.kept = lib.zeros(2)
    assert m.get_buffer("kept").tolist() == [0.0, 0.0] and list(m.state_dict()) == ["weight", "kept"]
    with pytest.raises(TypeError, match="as parameter 'weight'"):
        m.weight = lib.nn.Buffer(lib.ones(1))
    assert lib.nn.Buffer().shape == lib.nn.Parameter().shape == (0,)


def test_it_is_written_in_a_graph() -> None:
    class Counting(flow.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.count = flow.nn.Buffer(flow.zeros(1))

        def forward(self, x: Any) -> Any:
            self.count += 1
            return x * self.count

    net = Counting()

    run = Calls(net)
    assert [run(flow.ones(1)).item() for _ in range(3)] == [1.0, 2.0, 3.0] and net.count.item() == 3.0


def test_it_needs_a_module_that_was_made() -> None:
    class Early(flow.nn.Module):
        def __init__(self) -> None:
            self.a = flow.nn.Buffer(flow.ones(1))

    with pytest.raises(AttributeError, match=r"buffer before Module.__init__"):
        Early()
