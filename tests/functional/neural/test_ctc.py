"""CTC against torch's: losses and gradients, for padded and joined targets."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import weft as flow
from weft.core.errors import OptionError, ShapeError
from weft.tensor.tensor import of_torch

TARGETS = torch.tensor([[1, 2, 2, 3], [3, 1, 0, 0], [2, 0, 0, 0]])
SIZES, TIMES = (4, 2, 1), (8, 8, 5)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("joined", [False, True])
def test_losses_and_gradients(reduction: str, joined: bool) -> None:
    torch.manual_seed(0)
    targets = torch.cat([row[:n] for row, n in zip(TARGETS, SIZES, strict=True)]) if joined else TARGETS
    x = torch.randn(8, 3, 5, requires_grad=True)
    y = of_torch(x.detach().clone()).requires_grad_()
    expected = torch.nn.CTCLoss(reduction=reduction)(x.log_softmax(-1), targets, TIMES, SIZES)
    got = flow.nn.CTCLoss(reduction=reduction)(flow.log_softmax(y, -1), of_torch(targets), TIMES, SIZES)
    torch.testing.assert_close(got.detach().to_torch(), expected.detach())
    expected.sum().backward()
    got.sum().backward()
    torch.testing.assert_close(y.grad.to_torch(), x.grad, rtol=1e-4, atol=1e-5)  # type: ignore[union-attr]


def test_one_sequence_and_another_blank() -> None:
    x = torch.randn(6, 4).log_softmax(-1)
    given: tuple[Any, Any] = (torch.tensor(6), torch.tensor(2))
    expected = torch.nn.functional.ctc_loss(x, torch.tensor([0, 1]), *given, blank=3, reduction="none")
    got = flow.nn.functional.ctc_loss(of_torch(x), flow.tensor([0, 1]), 6, 2, blank=3, reduction="none")
    torch.testing.assert_close(got.to_torch(), expected)


@pytest.mark.parametrize("zero", [False, True])
def test_a_target_that_is_too_long_cannot_be(zero: bool) -> None:
    x = flow.log_softmax(flow.randn(2, 1, 3), -1)
    loss = flow.nn.CTCLoss(zero_infinity=zero)(x, flow.tensor([[1, 1]]), [2], [2])
    assert loss.item() == (0.0 if zero else float("inf"))


def test_what_cannot_be_is_said() -> None:
    x, loss = flow.zeros(4, 1, 3), flow.nn.CTCLoss()
    with pytest.raises(ShapeError, match="go up to 5, but log_probs has 4 steps"):
        loss(x, flow.tensor([[1]]), [5], [1])
    with pytest.raises(ShapeError, match=r"targets of shape \[1, 1\] for target_lengths \[2\]"):
        loss(x, flow.tensor([[1]]), [4], [2])
    with pytest.raises(OptionError, match="labels are int64, int32 or whole floats; got"):
        loss(x, flow.ones(1, 1).bool(), [4], [1])


def test_labels_may_be_floats_as_in_oneflow() -> None:
    x, loss = flow.randn(4, 2, 3).log_softmax(-1), flow.nn.CTCLoss()
    labels = flow.tensor([[1, 2], [2, 1]])
    assert loss(x, labels.double(), [4, 4], [2, 1]) == loss(x, labels.float(), [4, 4], [2, 1])
    assert loss(x, labels.float(), [4, 4], [2, 1]) == loss(x, labels, [4, 4], [2, 1])
