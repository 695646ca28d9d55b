"""`.grad` takes a tensor like the one whose gradient it is, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import weft as flow
from tests.ranks import on

TAKEN: dict[str, Callable[[Any], Any]] = {
    "None": lambda f: None,
    "the same form": lambda f: f.ones(2, 3),
    "transposed": lambda f: f.ones(3, 2).t(),
    "expanded": lambda f: f.ones(1).expand(2, 3),
    "computed": lambda f: f.ones(2, 3, requires_grad=True) * 2,
}
REFUSED: dict[str, Callable[[Any], Any]] = {
    "float64": lambda f: f.ones(2, 3, dtype=f.float64),
    "int64": lambda f: f.ones(2, 3, dtype=f.int64),
    "fewer dimensions": lambda f: f.ones(3),
    "other sizes": lambda f: f.ones(3, 2),
    "one element": lambda f: f.ones(1, 1),
    "no elements": lambda f: f.ones(0, 3),
    "another device": lambda f: f.ones(2, 3, device="meta"),
    "a number": lambda f: 1.0,
    "a list": lambda f: [[1.0] * 3] * 2,
    "an array": lambda f: np.ones((2, 3), "f"),
}
PHRASES = (
    "attempting to assign a gradient with dtype",
    "attempting to assign a gradient with device type",
    "attempting to assign a gradient of size '[3]' to a tensor of size '[2, 3]'. Please ensure that the gradient and "
    "the tensor are the same size",
    "assigned grad expected to be a Tensor or None but got grad of type float",
    "can't assign Variable as its own grad",
)


@pytest.mark.parametrize("given", TAKEN)
def test_it_takes_what_torch_takes(given: str) -> None:
    for f in (torch, flow):
        p = f.nn.Parameter(f.zeros(2, 3))
        p.grad = TAKEN[given](f)
        assert (p.grad is None) is (given == "None")
        del p.grad
        assert p.grad is None


@pytest.mark.parametrize("given", REFUSED)
def test_it_refuses_what_torch_refuses(given: str) -> None:
    said = {}
    for f in (torch, flow):
        p = f.nn.Parameter(f.zeros(2, 3))
        p.grad = before = f.ones(2, 3)
        with pytest.raises((RuntimeError, TypeError)) as raised:
            p.grad = REFUSED[given](f)
        said[f] = str(raised.value)
        assert p.grad is before
    held = [phrase for phrase in PHRASES if phrase in said[torch]]
    assert all(phrase in said[flow] for phrase in held)


def test_it_is_not_its_own() -> None:
    p = flow.nn.Parameter(flow.zeros(2))
    with pytest.raises(RuntimeError, match="can't assign Variable as its own grad"):
        p.grad = p


@on(2)
def test_a_global_gradient_lies_where_its_tensor_does_in_any_layout() -> None:
    P, B = flow.placement("cpu", [0, 1]), flow.sbp.broadcast
    ones = flow.ones(4, 4, placement=P, sbp=B)
    p = flow.nn.Parameter(ones.to_global(sbp=flow.sbp.split(0)))
    for other, words in (
        (flow.ones(4, 4), "data of a different type: the tensor is global"),
        (flow.ones(4, 4, placement=flow.placement("cpu", [0]), sbp=B), "data of a different type: it lies on"),
        (ones.double(), "with dtype 'weft.float64'"),
        (ones[:2], "a gradient of size '\\[2, 4\\]'"),
        (2.0, "expected to be a Tensor or None"),
    ):
        with pytest.raises((RuntimeError, TypeError), match=words):
            p.grad = other
    local = flow.nn.Parameter(flow.ones(4, 4))
    with pytest.raises(RuntimeError, match="the gradient is global"):
        local.grad = ones
    assert p.grad is None and local.grad is None
    for sbp in (B, flow.sbp.split(0), flow.sbp.split(1), flow.sbp.partial_sum):
        q = flow.nn.Parameter(p.detach().clone())
        q.grad = (ones * 2).to_global(sbp=sbp)
        flow.optim.SGD([q], lr=0.25).step()
        assert (q.numpy() == 0.5).all()


def test_inside_a_graph_too() -> None:
    class G(flow.nn.Graph):
        def __init__(self) -> None:
            super().__init__()
            self.net = flow.nn.Linear(2, 1)

        def build(self, x: flow.Tensor) -> flow.Tensor:
            self.net.weight.grad = x
            return self.net(x)

    with pytest.raises(RuntimeError, match="a gradient of size '\\[5, 2\\]' to a tensor of size '\\[1, 2\\]'"):
        G()(flow.ones(5, 2))
