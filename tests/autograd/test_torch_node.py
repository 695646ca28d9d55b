"""Functions that are one node of the tape, with torch's gradient; and what is left to their compositions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import weft as flow
from weft import from_torch
from weft.autograd.torch_node import TorchNode
from weft.core.errors import AutogradError

PLACES, LABELS = [2, 0], [1, 0, -1, 2]
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "pdist": lambda lib, x, y: lib.nn.functional.pdist(x * y),
    "cosine_similarity": lambda lib, x, y: lib.cosine_similarity(x, y, -1),
    "cosine of itself": lambda lib, x, y: lib.cosine_similarity(x, x),
    "cdist": lambda lib, x, y: lib.cdist(x, y, 1.5),
    "renorm": lambda lib, x, y: lib.renorm(x, 2, 0, 1.0),
    "rfft": lambda lib, x, y: lib.view_as_real(lib.fft.rfft(x)),
    "irfft2": lambda lib, x, y: lib.fft.irfft2(lib.complex(x, y), (5, 4)),
    "multi_margin_loss": lambda lib, x, y: lib.nn.functional.multi_margin_loss(x, lib.tensor([0, 3, 1]), 2, 0.7, y[0]),
    "multilabel_margin_loss": lambda lib, x, y: lib.nn.functional.multilabel_margin_loss(x, lib.tensor([LABELS] * 3)),
    "index_copy": lambda lib, x, y: x.index_copy(0, lib.tensor(PLACES), y[:2]),
    "index_fill": lambda lib, x, y: x.index_fill(1, lib.tensor(PLACES), 0.5),
    "masked_scatter": lambda lib, x, y: x.masked_scatter(x.detach() > 0, y),
    "combinations": lambda lib, x, y: lib.combinations(x[0], 3),
    "cholesky_inverse": lambda lib, x, y: lib.cholesky_inverse(x[:, :3] @ x[:, :3].t() + 4 * lib.eye(3)),
}  # fmt: skip
ONCE = ("pdist", "cdist", "multi_margin_loss", "multilabel_margin_loss")  # torch differentiates them once only


def given() -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(0)
    return torch.randn(3, 4), torch.rand(3, 4) + 0.5


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_gradient_is_torchs_to_the_last_bit_and_can_be_differentiated_again(name: str) -> None:
    found = []
    frozen = 1 if name == "multi_margin_loss" else 2  # whose weight has no gradient
    for lib in (flow, torch):
        x, y = (t if lib is torch else from_torch(t) for t in given())
        operands = [t.requires_grad_() for t in (x, y)[:frozen]]
        out = FUNCTIONS[name](lib, x, y)
        (out * out).sum().backward()
        first = [t.grad for t in operands]
        second: list[Any] = []
        if name not in ONCE:
            out = FUNCTIONS[name](lib, x, y)
            (g,) = lib.autograd.grad((out * out).sum(), x, create_graph=True)
            if g.requires_grad:
                second = list(lib.autograd.grad((g * g).sum(), operands, allow_unused=True))
        found.append([first, second])
    mine = [[g if g is None else g.to_torch() for g in part] for part in found[0]]
    for tolerance, a, b in zip((0.0, 1e-4), mine, found[1], strict=True):
        for g, expected in zip(a, b, strict=True):
            assert (g is None) == (expected is None)
            if g is not None:
                torch.testing.assert_close(g, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", ["pdist", "multi_margin_loss", "multilabel_margin_loss"])
def test_what_torch_differentiates_once_only_is_differentiated_by_ops(name: str) -> None:
    found = []
    for again in (False, True):
        x, y = map(from_torch, given())
        out = FUNCTIONS[name](flow, x.requires_grad_(), y)
        found.append(flow.autograd.grad((out * out).sum(), x, create_graph=again)[0].detach().to_torch())
    torch.testing.assert_close(*found)


def test_the_tape_has_one_node_of_it() -> None:
    y = flow.cosine_similarity(flow.ones(2, 3, requires_grad=True), flow.ones(2, 3))
    assert type(y.grad_fn) is TorchNode and y.grad_fn.name() == "cosine_similarity_backward"
    assert flow.cosine_similarity(flow.ones(2, 3), flow.ones(2, 3)).grad_fn is None


def test_gradients_in_one_memory_are_added_to_apart() -> None:
    a, b = (flow.ones(3, 3, requires_grad=True) for _ in range(2))
    for _ in range(2):
        a.masked_scatter(flow.tensor([False, True, False]), b).sum().backward()
    assert a.grad.tolist() == [[2.0, 0.0, 2.0]] * 3
    assert b.grad.tolist() == [[2.0] * 3, [0.0] * 3, [0.0] * 3]


@pytest.mark.parametrize("again", [False, True])
def test_an_operand_that_was_overwritten_is_noticed(again: bool) -> None:
    x, y = flow.ones(3, 4, requires_grad=True), flow.ones(3, 4)
    z = y * x
    out = flow.cosine_similarity(z, y)
    z.add_(1.0)
    with pytest.raises(AutogradError, match="modified by an inplace operation"):
        out.sum().backward(create_graph=again)


OVERWRITTEN: dict[str, Callable[..., Any]] = {
    "limit": lambda lib, x: (limit := lib.zeros(4), lib.clamp(x, limit)),
    "index": lambda lib, x: (index := lib.tensor([0]), x.index_copy(0, index, lib.ones(1, 4))),
    "mask": lambda lib, x: (mask := lib.zeros(3, 4) > 0, x.masked_scatter(mask, lib.ones(12))),
}


@pytest.mark.parametrize("name", OVERWRITTEN)
@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("lib", [flow, torch])
def test_what_has_no_gradient_and_was_overwritten_is_noticed(lib: Any, again: bool, name: str) -> None:
    x = lib.ones(3, 4, requires_grad=True)
    read, out = OVERWRITTEN[name](lib, x * 2)
    read.fill_(True)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        lib.autograd.grad(out.sum(), x, create_graph=again)


def test_a_second_backward_needs_what_the_first_released() -> None:
    x = flow.randn(3, 4, requires_grad=True)
    loss = flow.nn.functional.pdist(x).sum()
    loss.backward(retain_graph=True)
    first = x.grad.clone()
    loss.backward()
    assert flow.allclose(x.grad, first * 2)
    with pytest.raises(AutogradError, match="a second time"):
        loss.backward()
