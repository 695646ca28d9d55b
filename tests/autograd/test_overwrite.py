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


@pytest.mark.parametrize("name", [n for n in NAMES if OPS[n].vjp is not None and len(OPS[n].returns) == 1])
def test_both_ways_record_the_same(name: str) -> None:
    """Gradients and versions; once with all operands of floating numbers wanting one, once with the first alone."""
    op = OPS[name]
    overwrite = make_overwriting(op)

    def run(args: tuple[Any, ...], alone: bool, f: Any) -> Any:
        leaves = [t for t in wrapped(args) if isinstance(t, flow.Tensor)]
        given, kept = [], iter(leaves)
        for place, a in enumerate(args):
            t = next(kept) if isinstance(a, torch.Tensor) else wrapped((a,))[0]
            if isinstance(t, flow.Tensor) and t.is_floating_point() and (place == 0 or not alone):
                t = t.requires_grad_() * 1
            given.append(t)
        wanting = [t for t in leaves if t.requires_grad]
        try:
            y = f(given)
            assert y is given[0]
            return [y, *flow.autograd.grad(y, wanting, flow.ones_like(y), allow_unused=True)]
        except RuntimeError as error:
            return type(error)

    def quick(args: list[Any]) -> Any:
        keywords = {k: args[op.names.index(k)] for k in op.keywords}
        return overwrite(*args[: len(args) - len(keywords)], **keywords)

    def slow(args: list[Any]) -> Any:
        with intercept(Passing()):
            return in_place(op, tuple(args))

    for args in cases(op):
        if not isinstance(args[0], torch.Tensor) or not args[0].is_floating_point():
            continue
        for alone in (False, True):
            found, expected = run(args, alone, quick), run(args, alone, slow)
            if isinstance(expected, type):
                assert found is expected
                continue
            for a, b in zip(found, expected, strict=True):
                if a is None or b is None:
                    assert a is b
                else:
                    torch.testing.assert_close(a.detach().to_torch(), b.detach().to_torch(), equal_nan=True)


@pytest.mark.parametrize("lib", [flow, torch])
def test_parts_written_one_by_one_have_gradients(lib: Any) -> None:
    x = lib.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    y = lib.zeros(3, 2)
    before = y[2]
    for i in range(2):
        y[i] = x[i] * (i + 2)
    y[2] = y[0]
    assert before.requires_grad and before.tolist() == [2.0, 4.0]
    y[0, 1] = 5.0
    y[1, :1] = lib.ones(1)
    y[1] += 1.0
    y[:, 0] = y[:, 1]
    assert y.tolist() == [[5.0, 5.0], [13.0, 13.0], [4.0, 4.0]]
    (y * lib.tensor([[1.0], [10.0], [100.0]])).sum().backward()
    assert x.grad.tolist() == [[0.0, 400.0], [0.0, 60.0]]
    with pytest.raises(IndexError):
        y[9] = x[0]
    with pytest.raises(RuntimeError):
        y[0] = x[0, :1].expand(3)
    with pytest.raises(RuntimeError):
        x[0] = 1.0


@pytest.mark.parametrize("lib", [flow, torch])
def test_parts_changed_in_place_have_gradients(lib: Any) -> None:
    x, w = lib.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True), lib.tensor([2.0, 3.0], requires_grad=True)
    y = x * 1.0
    row, column, place = y[0], y[:, 1], y.diagonal()
    y[1] += w
    row.mul_(w)
    assert [t.tolist() for t in (y, row, column, place)] == [
        [[2.0, 6.0], [5.0, 7.0]], [2.0, 6.0], [6.0, 7.0], [2.0, 7.0],
    ]  # fmt: skip
    column.mul_(10.0)
    y.narrow(0, 0, 1).add_(1.0)
    place.mul_(-1.0)
    row[:1].sin_().mul_(0.0)
    assert y.tolist() == [[0.0, 61.0], [5.0, -70.0]]
    (row.sum() + (y * lib.tensor([[1.0, 2.0], [3.0, 4.0]])).sum() + column.sum()).backward()
    assert x.grad.tolist() == [[0.0, 120.0], [3.0, -50.0]] and w.grad.tolist() == [3.0, 30.0]


@pytest.mark.parametrize("lib", [flow, torch])
def test_hooks_and_kept_gradients_are_those_of_the_moment(lib: Any) -> None:
    x, seen = lib.ones(2, requires_grad=True), []
    y = x * 2
    y.register_hook(lambda g: seen.append(("before", g.tolist())))
    y.mul_(3.0)
    y.register_hook(lambda g: seen.append(("after", g.tolist())))
    y.retain_grad()
    y[0] = 7.0
    y.relu_()
    y.sum().backward()
    assert seen == [("after", [0.0, 1.0]), ("before", [0.0, 3.0])]
    assert y.grad.tolist() == [1.0, 1.0] and x.grad.tolist() == [0.0, 6.0]


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
