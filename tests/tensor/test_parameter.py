"""A parameter is a tensor that modules train."""

from __future__ import annotations

import copy

import pytest

import weft as flow


def test_a_parameter_shares_memory_and_requires_a_gradient() -> None:
    x = flow.ones(2)
    p = flow.nn.Parameter(x)
    assert isinstance(p, flow.Tensor) and p.requires_grad and p.data_ptr() == x.data_ptr() and p.is_leaf
    assert not flow.nn.Parameter(x, requires_grad=False).requires_grad
    (p * 3).sum().backward()
    assert p.grad.tolist() == [3.0, 3.0] and x.grad is None


def test_a_global_parameter() -> None:
    P, B = flow.placement("cpu", [0]), flow.sbp.broadcast
    p = flow.nn.Parameter(flow.ones(2, placement=P, sbp=B))
    assert p.is_global and p.placement is P and p.sbp == (B,)


def test_a_copy_is_a_parameter() -> None:
    p, x = flow.nn.Parameter(flow.ones(2)), flow.ones(2, requires_grad=True)
    (p * x).sum().backward()
    q = copy.deepcopy(p)
    assert type(q) is type(p) and q.requires_grad and q.data_ptr() != p.data_ptr()
    assert q.grad is None and copy.deepcopy(x).grad.tolist() == [1.0, 1.0]  # type: ignore[union-attr]


def test_integers_have_no_gradient() -> None:
    with pytest.raises(TypeError, match="floating point"):
        flow.nn.Parameter(flow.ones(2, dtype=flow.int64))
