from __future__ import annotations

import pytest
import torch

import weft as flow
from weft.core.errors import AutogradError


def test_hook_on_a_leaf_changes_its_gradient() -> None:
    x, tx = flow.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)
    for a in (x, tx):
        a.register_hook(lambda g: g * 3)
        a.register_hook(lambda g: g + 1)
        (a * 2).sum().backward()
    assert x.grad.tolist() == tx.grad.tolist() == [7.0] * 3


def test_hook_sees_the_whole_gradient_of_a_leaf_once() -> None:
    seen: list[list[float]] = []
    x = flow.ones(2, requires_grad=True)
    x.register_hook(lambda g: seen.append(g.tolist()))
    (x * 2 + x * 3).sum().backward()
    assert seen == [[5.0, 5.0]]


def test_hook_between_changes_what_flows_on() -> None:
    x, tx = flow.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)
    for a in (x, tx):
        h = a * 2
        h.register_hook(lambda g: g * 10)
        (h * h).sum().backward()
    assert x.grad.tolist() == tx.grad.tolist()


def test_hook_can_be_removed() -> None:
    x = flow.ones(2, requires_grad=True)
    handle = x.register_hook(lambda g: g * 100)
    handle.remove()
    x.sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]


def test_hook_of_one_output_of_several() -> None:
    x = flow.ones(4, requires_grad=True)
    a, b = x.split(2)
    b.register_hook(lambda g: g * 5)
    (a.sum() + b.sum()).backward()
    assert x.grad.tolist() == [1.0, 1.0, 5.0, 5.0]


def test_hook_needs_a_gradient() -> None:
    with pytest.raises(AutogradError):
        flow.ones(2).register_hook(lambda g: g)


def test_retain_grad() -> None:
    x, tx = flow.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)
    kept = []
    for a in (x, tx):
        h = a * 2
        h.retain_grad()
        (h * h).sum().backward()
        kept.append(h.grad.tolist())
    assert kept[0] == kept[1]


def test_retained_gradient_is_own_memory_and_after_the_hook() -> None:
    x = flow.ones(3, requires_grad=True)
    h = x + 0.0
    h.register_hook(lambda g: g * 2)
    h.retain_grad()
    h.sum().backward()
    assert h.grad.tolist() == [2.0] * 3
    h.grad.mul_(9.0)
    assert x.grad.tolist() == [2.0] * 3


def test_post_accumulate_hook_sees_grad() -> None:
    x = flow.ones(2, requires_grad=True)
    seen = []
    x.register_post_accumulate_grad_hook(lambda t: seen.append((t is x, t.grad.tolist())))
    x.sum().backward()
    x.sum().backward()
    assert seen == [(True, [1.0, 1.0]), (True, [2.0, 2.0])]


def test_post_accumulate_hook_is_for_leaves() -> None:
    x = flow.ones(2, requires_grad=True)
    with pytest.raises(AutogradError):
        (x * 2).register_post_accumulate_grad_hook(lambda t: None)


def test_hook_runs_in_autograd_grad() -> None:
    x = flow.ones(2, requires_grad=True)
    x.register_hook(lambda g: g * 4)
    assert flow.autograd.grad(x.sum(), x)[0].tolist() == [4.0, 4.0]
    assert x.grad is None


def test_an_error_in_a_hook_comes_out() -> None:
    x = flow.ones(2, requires_grad=True)

    def hook(g: flow.Tensor) -> None:
        raise KeyError("mine")

    x.register_hook(hook)
    with pytest.raises(KeyError, match="mine"):
        x.sum().backward()
