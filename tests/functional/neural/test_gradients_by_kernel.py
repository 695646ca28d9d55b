"""Gradients that torch's kernels compute are torch's: at bends and ends too, where a composition may differ."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch

import weft as flow
from weft import from_torch
from weft.core.errors import IndexingError, ShapeError
from weft.ops import OPS

ENDS = [-6.0, -3.0, -1.0, -0.5, -0.1, 0.0, 0.1, 0.5, 1.0, 3.0, 6.0, 2.2, float("nan"), float("inf"), -float("inf")]
ACTIVATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "relu6": lambda f, x: f.relu6(x),
    "hardtanh": lambda f, x: f.hardtanh(x, -0.5, 0.5),
    "hardshrink": lambda f, x: f.hardshrink(x),
    "softshrink": lambda f, x: f.softshrink(x, 0.1),
    "threshold": lambda f, x: f.threshold(x, 0.1, 2.0),
    "hardsigmoid": lambda f, x: f.hardsigmoid(x),
    "hardswish": lambda f, x: f.hardswish(x),
    "elu": lambda f, x: f.elu(x, 1.25),
    "selu": lambda f, x: f.selu(x),
    "celu": lambda f, x: f.celu(x, 0.75),
    "softplus": lambda f, x: f.softplus(x, 2, 1),
    "mish": lambda f, x: f.mish(x),
    "silu": lambda f, x: f.silu(x),
    "leaky_relu": lambda f, x: f.leaky_relu(x, 0.2),
    "glu": lambda f, x: f.glu(x.reshape(1, -1)[:, :14], 1),
    "prelu": lambda f, x: f.prelu(x, x[7:8].detach()),
}


def both(f: Callable[[Any, Any], Any], *given: torch.Tensor) -> list[list[torch.Tensor]]:
    """The value and the gradient by the first operand, Weft's and torch's."""
    found = []
    for lib, functions in ((flow, flow.nn.functional), (torch, torch.nn.functional)):
        first, *rest = [from_torch(t.clone()) if lib is flow else t.clone() for t in given]
        y = f(functions, first.requires_grad_(), *rest)
        (y * 2).sum().backward()
        found.append([t.to_torch() if lib is flow else t for t in (y.detach(), first.grad)])
    return found


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("name", ACTIVATIONS)
def test_an_activation_gives_torchs_gradient_to_the_last_bit(name: str, dtype: torch.dtype) -> None:
    mine, theirs = both(ACTIVATIONS[name], torch.tensor(ENDS, dtype=dtype))
    torch.testing.assert_close(mine, theirs, rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("name", ["relu6", "hardshrink", "threshold", "leaky_relu"])
def test_what_is_linear_piece_by_piece_has_a_second_derivative_of_zeros(name: str) -> None:
    found = []
    for lib, f in ((flow, flow.nn.functional), (torch, torch.nn.functional)):
        x = lib.tensor(ENDS[:12], requires_grad=True)
        (g,) = lib.autograd.grad((ACTIVATIONS[name](f, x) * x.detach()).sum(), x, create_graph=True)
        found.append(lib.autograd.grad((g * g).sum(), x)[0].tolist())
    assert found[0] == found[1]


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    ("scores", "labels"), [((4, 5), (4,)), ((5,), ()), ((2, 5, 3), (2, 3)), ((2, 5, 3, 4), (2, 3, 4))]
)
def test_losses_of_labels(scores: tuple[int, ...], labels: tuple[int, ...], weighted: bool, reduction: str) -> None:
    torch.manual_seed(0)
    x, weight = torch.randn(scores), torch.rand(5) if weighted else None
    target = torch.randint(0, 5, labels)
    options = {"ignore_index": 1, "reduction": reduction}

    def given(f: Any) -> Any:
        return from_torch(weight) if f is flow.nn.functional and weighted else weight

    for loss in ("nll_loss", "cross_entropy"):
        mine, theirs = both(lambda f, x, t, loss=loss: getattr(f, loss)(x, t, given(f), **options), x, target)
        torch.testing.assert_close(mine, theirs, equal_nan=True)


@pytest.mark.parametrize("reduction", ["mean", "none"])
def test_losses_of_probabilities(reduction: str) -> None:
    torch.manual_seed(0)
    x, target = torch.rand(3, 4), torch.rand(3, 4)
    x[0, 0], x[0, 1] = 0.0, 1.0
    for loss in ("binary_cross_entropy", "binary_cross_entropy_with_logits"):
        torch.testing.assert_close(
            *both(lambda f, x, t, loss=loss: getattr(f, loss)(x, t, reduction=reduction), x, target)
        )


FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "logit": lambda lib, x: lib.logit(x / 8 + 0.5),
    "logit with an end": lambda lib, x: lib.logit(x / 8 + 0.5, 0.2),
    "logcumsumexp": lambda lib, x: lib.logcumsumexp(x * 20, 0),
    "svdvals": lambda lib, x: lib.linalg.svdvals(x),
    "eigvalsh": lambda lib, x: lib.linalg.eigvalsh(x.mT @ x),
    "nuclear norm": lambda lib, x: lib.linalg.matrix_norm(x, "nuc"),
    "singular vectors": lambda lib, x: lib.linalg.svd(x, full_matrices=False)[2].abs(),
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_gradient_and_its_gradient_are_torchs(name: str) -> None:
    found = []
    for lib in (flow, torch):
        torch.manual_seed(0)
        x = torch.randn(4, 3, dtype=torch.float64)
        x = (x if lib is torch else from_torch(x)).requires_grad_()
        y = FUNCTIONS[name](lib, x)
        y = y * lib.linspace(-1, 1, y.numel(), dtype=lib.float64).reshape(y.shape)
        (g,) = lib.autograd.grad(y.sum(), x, retain_graph=True)
        (h,) = lib.autograd.grad(y.sum(), x, create_graph=True)
        found.append([t.detach() for t in (g, h, lib.autograd.grad((h * h).sum(), x)[0])])
    for mine, theirs in zip(*found, strict=True):
        torch.testing.assert_close(mine.to_torch(), theirs)


def test_what_is_nothing_in_a_sum_of_exponentials_has_no_gradient() -> None:  # torch's is nan
    x = flow.tensor([-math.inf, -math.inf, 1.0, 2.0], requires_grad=True)
    for again in (False, True):
        (g,) = flow.autograd.grad(flow.logcumsumexp(x, 0)[2:].sum(), x, create_graph=again)
        share = math.exp(1) / (math.exp(1) + math.exp(2))
        assert g.tolist() == pytest.approx([0.0, 0.0, 1 + share, 1 - share])


@pytest.mark.filterwarnings("ignore:Using a target size")
@pytest.mark.parametrize("shapes", [((4, 5), (4, 5)), ((4, 5), (5,)), ((4, 1), (3, 1, 5))])
@pytest.mark.parametrize("loss", ["smooth_l1_loss", "huber_loss"])
def test_bent_losses_of_each_element(loss: str, shapes: tuple[tuple[int, ...], ...]) -> None:
    torch.manual_seed(0)
    given = [torch.randn(s) * 3 for s in shapes]
    given[0].view(-1)[:3] = torch.tensor([math.inf, -math.inf, math.nan])
    bend = {"smooth_l1_loss": "beta", "huber_loss": "delta"}[loss]
    for f in (
        lambda lib, x, t: getattr(lib, loss)(x, t, reduction="none", **{bend: 1.5}),
        lambda lib, t, x: getattr(lib, loss)(x, t, reduction="sum"),
    ):
        torch.testing.assert_close(*both(f, *given), equal_nan=True)


def test_each_such_gradient_is_one_op() -> None:
    named = [n for n in ACTIVATIONS if n not in ("relu6", "prelu")]
    assert [n for n in named if f"{n}_grad" not in OPS] == []


def test_labels_that_are_out_of_range_are_no_addresses() -> None:
    dy, count = flow.ones(2, dtype=flow.float64), flow.tensor(1.0, dtype=flow.float64)
    for label in (flow.tensor([0, 7]), flow.tensor([0, 156], dtype=flow.uint8)):  # -100, as bytes go
        with pytest.raises(IndexingError, match="is out of range: there are 5 classes"):
            flow._C.nll_loss_grad(dy, label, None, count, 5, -100, "none")
    steps = flow.zeros(6, 1, 4).log_softmax(-1)
    one, labels = flow.tensor([1]), flow.tensor([[1]])
    raw, alpha = flow.zeros(1), flow.zeros(1, 6, 3)
    for given, blank in ((flow.tensor([[9]]), 0), (labels, -7)):
        with pytest.raises(IndexingError, match="ctc_nll_grad"):
            flow._C.ctc_nll_grad(one.float(), steps, given, one, one, raw, alpha, blank, False)
    with pytest.raises(ShapeError, match="a dloss for each sequence"):
        flow._C.ctc_nll_grad(one.float(), steps, labels, one, one, raw, alpha[:, :3], 0, False)
    ids, starts = flow.tensor([0, 4]), flow.tensor([0, 1])
    with pytest.raises(IndexingError, match="index 4"):
        flow._C.embedding_bags_grad(flow.ones(2, 3), ids, starts, None, starts, starts, 3, "sum", None)
    with pytest.raises(ShapeError, match="a row for each bag"):
        flow._C.embedding_bags_grad(flow.ones(1, 3), ids, starts, None, starts, starts, 5, "sum", None)
