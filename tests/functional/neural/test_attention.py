"""Forms of nn.functional that are more than an op, beside torch's."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import weft as flow
from weft import nn
from weft.core.errors import ArgumentError, ShapeError

F, TF = nn.functional, torch.nn.functional


@pytest.mark.parametrize("shape", [(4, 5), (2, 5, 3), (5,)])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("weighted", [False, True])
def test_cross_entropy_with_probabilities(
    shape: tuple[int, ...], reduction: str, smoothing: float, weighted: bool
) -> None:
    rand = np.random.default_rng(0)
    scores, shares = rand.normal(size=shape), rand.random(size=shape)
    weights = rand.random(5) if weighted else None
    x, p = torch.tensor(scores, requires_grad=True), torch.tensor(shares, requires_grad=True)
    w = None if weights is None else torch.tensor(weights)
    expected = TF.cross_entropy(x, p, w, reduction=reduction, label_smoothing=smoothing)
    expected.sum().backward()
    y, q = flow.tensor(scores, requires_grad=True), flow.tensor(shares, requires_grad=True)
    v = None if weights is None else flow.tensor(weights)
    got = F.cross_entropy(y, q, v, reduction=reduction, label_smoothing=smoothing)
    got.sum().backward()
    for mine, theirs in ((got, expected), (y.grad, x.grad), (q.grad, p.grad)):
        np.testing.assert_allclose(mine.detach().numpy(), theirs.detach().numpy(), rtol=1e-9, atol=1e-12)


def test_the_layer_takes_probabilities_too_and_refuses_what_is_neither() -> None:
    x, p = flow.randn(3, 4), flow.softmax(flow.randn(3, 4), 1)
    assert nn.CrossEntropyLoss()(x, p).item() == F.cross_entropy(x, p).item()
    with pytest.raises(ShapeError, match=r"probabilities of the same shape.*float32\[3\]"):
        F.cross_entropy(x, flow.ones(3))
    with pytest.raises(ArgumentError, match="'mean', 'sum' or 'none'"):
        F.cross_entropy(x, p, reduction="median")


def test_a_column_of_labels_is_one() -> None:
    x, labels = flow.randn(4, 3), flow.tensor([0, 2, 1, 1])
    for loss in (F.cross_entropy, lambda s, t: F.nll_loss(F.log_softmax(s, 1), t)):
        assert loss(x, labels.view(4, 1)).item() == loss(x, labels).item()
    each = F.cross_entropy(x, labels.view(4, 1), reduction="none")
    assert each.view(4).equal(F.cross_entropy(x, labels, reduction="none")) and each.shape == (4, 1)  # as in OneFlow
    x, labels = flow.randn(2, 3, 5), flow.randint(0, 3, (2, 5))
    each = F.cross_entropy(x, labels.view(2, 1, 5), reduction="none")
    assert each.view(2, 5).equal(F.cross_entropy(x, labels, reduction="none")) and each.shape == (2, 1, 5)
    with pytest.raises(ShapeError, match="take labels of shape"):
        F.cross_entropy(x, labels.view(5, 2))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("kind", ["booleans", "numbers", "numbers with a gradient"])
@pytest.mark.parametrize("dropout", [0.0, 0.5])
@pytest.mark.parametrize("width", [8, 5])
def test_attention_gives_zeros_where_all_keys_are_hidden(
    dtype: torch.dtype, kind: str, dropout: float, width: int
) -> None:
    torch.manual_seed(0)
    q, k, v = (torch.randn(2, 3, 4, w).to(dtype) for w in (8, 8, width))
    mask = torch.ones(4, 4, dtype=torch.bool).tril()
    mask[2] = False
    if kind != "booleans":
        mask = torch.zeros(4, 4, dtype=dtype).masked_fill(~mask, -torch.inf)
    dy = torch.randn(*q.shape[:-1], width).to(dtype)
    answers = []
    for library, take in ((torch, torch.clone), (flow, flow.from_torch)):
        given = [take(t).requires_grad_() for t in (q, k, v)]
        hidden = take(mask).requires_grad_(kind == "numbers with a gradient")
        library.manual_seed(1)
        y = library.nn.functional.scaled_dot_product_attention(*given, hidden, dropout)
        y.backward(take(dy))
        answers.append([y.detach(), *(t.grad for t in (*given, hidden) if t.requires_grad)])
    if dropout:  # in steps, which round as torch's
        assert all(torch.equal(a, b.to_torch()) for a, b in zip(*answers, strict=True))
    digits = {"rtol": 2e-2, "atol": 1e-2} if dtype is torch.bfloat16 else {}
    for a, b in zip(*answers, strict=True):
        torch.testing.assert_close(b.to_torch(), a, **digits)
