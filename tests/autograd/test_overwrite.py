"""The short way of `name_` does what the general way does, and is left where it would be wrong."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import weft as flow
from weft.autograd.inplace import in_place
from weft.autograd.overwrite import make_overwriting
from weft.core.dispatch import intercept
from weft.core.errors import AutogradError
from weft.ops import OPS
from weft.tensor.tensor import of_torch
from weft.testing.cases import Passing
from weft.testing.registry import cases

NAMES = [n for n, op in OPS.items() if op.inplace_kernel is not None and op.params[0].kind != "tensors"]


def wrapped(args: tuple[Any, ...]) -> tuple[Any, ...]:
    def wrap(v: Any) -> Any:
        return of_torch(v.clone()) if isinstance(v, torch.Tensor) else [wrap(e) for e in v] if type(v) is list else v

    return tuple(wrap(v) for v in args)


@pytest.mark.parametrize("name", NAMES)
def test_both_ways_leave_the_same(name: str) -> None:
    op = OPS[name]
    overwrite, run = make_overwriting(op), 0
    for args in cases(op):
        if not isinstance(args[0], torch.Tensor):
            continue
        quick, slow = wrapped(args), wrapped(args)
        keywords = {k: quick[op.names.index(k)] for k in op.keywords}
        positional = quick[: len(quick) - len(keywords)]
        with intercept(Passing()):
            try:
                expected = in_place(op, slow)
            except RuntimeError:
                continue  # broadcast to a larger shape: nothing to overwrite
        assert overwrite(*positional, **keywords) is quick[0]
        torch.testing.assert_close(quick[0].to_torch(), expected.to_torch(), equal_nan=True)
        run += 1
    assert run, "no sample can be overwritten"


def test_what_is_computed_keeps_its_gradient() -> None:
    def f(lib: Any) -> Any:
        x = lib.tensor([1.0, 2.0, 3.0], requires_grad=True)
        y = x * 2
        y.mul_(x).sin_()
        y[1:].add_(1.0).relu_()
        z = lib.zeros(3)
        z.add_(y)
        z.sum().backward()
        return x.grad.tolist()

    assert f(flow) == f(torch)


@pytest.mark.parametrize("exponent", [2, 2.5, flow.tensor([2.0, 3.0])])
def test_a_power_may_be_overwritten_as_its_gradient_needs_the_base(exponent: Any) -> None:
    x = flow.tensor([1.0, 3.0], requires_grad=True)
    expected, power = x.detach() ** (exponent - 1) * exponent / 2, x**exponent
    power /= 2
    power.sum().backward()
    assert x.grad is not None and flow.allclose(x.grad, expected)


def test_leaves_and_their_views_are_not_overwritten() -> None:
    leaf = flow.ones(2, requires_grad=True)
    with flow.no_grad():
        view = leaf[:1]
    for x in (leaf, view):
        with pytest.raises(AutogradError):
            x.add_(1.0)
    with flow.no_grad():
        assert view.add_(1.0) is view
    assert leaf.tolist() == [2.0, 1.0]


def test_a_kernels_complaint_names_the_op_and_its_arguments() -> None:
    with pytest.raises(flow.errors.WeftError, match=r"add.*float32\[2\].*float32\[3\]"):
        flow.ones(2).add_(flow.ones(3))
