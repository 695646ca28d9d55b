"""Draws with a gradient, images read at places and unaligned sequences, against torch."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as TF

import weft as flow
from tests.functional.test_values import agree, rand

F = flow.nn.functional


@pytest.mark.parametrize("align", [False, True])
@pytest.mark.parametrize("dims", [2, 3])
def test_grids_and_what_is_read_at_them(dims: int, align: bool) -> None:
    theta, x = rand(2, dims, dims + 1) * 0.5, rand(2, 3, *(4, 5, 3)[:dims])
    size = (2, 3, *(2, 4, 3)[:dims])

    def through(functional: Any) -> Any:
        return lambda t, x: functional.grid_sample(
            x, functional.affine_grid(t, size, align_corners=align), align_corners=align
        )

    agree(through(TF), through(F), (theta, x))


@pytest.mark.parametrize("align", [False, True])
@pytest.mark.parametrize("size", [(2, 1, 28, 7), (2, 1, 1, 5), (2, 1, 3, 6, 11)])
def test_grids_are_rounded_as_torchs(size: tuple[int, ...], align: bool) -> None:
    """The identity reads exactly at pixels, where a gradient jumps."""
    theta = torch.eye(len(size) - 2, len(size) - 1).repeat(2, 1, 1)
    theirs = TF.affine_grid(theta, list(size), align_corners=align)
    assert torch.equal(F.affine_grid(flow.from_torch(theta), size, align_corners=align).to_torch(), theirs)


@pytest.mark.parametrize("padding_mode", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
def test_ways_of_reading(mode: str, padding_mode: str) -> None:
    options = {"mode": mode, "padding_mode": padding_mode, "align_corners": False}
    agree(lambda x, g: TF.grid_sample(x, g, **options), lambda x, g: F.grid_sample(x, g, **options),
          (rand(1, 2, 4, 5), rand(1, 3, 2, 2)))  # fmt: skip


def test_a_second_gradient_of_reading_is_refused() -> None:
    x = flow.tensor(rand(1, 1, 3, 3), requires_grad=True)
    y = F.grid_sample(x, flow.tensor(rand(1, 2, 2, 2)))
    with pytest.raises(flow.errors.AutogradError, match="no second derivative"):
        flow.autograd.grad((y * y).sum(), x, create_graph=True)


LABELS = torch.tensor([[1, 2, 3], [2, 2, 1]])


def test_ctc_loss_of_the_impossible_can_be_zero() -> None:
    lengths: Any = [2, 2]
    counts: Any = [3, 1]
    agree(
        lambda x: TF.ctc_loss(x.log_softmax(-1), LABELS, lengths, counts, zero_infinity=True),
        lambda x: flow._C.ctc_loss(x.log_softmax(-1), flow.tensor(LABELS), lengths, counts, zero_infinity=True),
        (rand(2, 2, 4),),
    )


def test_gumbel_softmax_draws_by_the_logits() -> None:
    flow.manual_seed(0)
    logits = flow.tensor([0.0, 1.0, 2.0], requires_grad=True)
    many = F.gumbel_softmax(logits.expand(20000, 3), hard=True)
    assert set(many.detach().flatten().tolist()) <= {0.0, 1.0}
    torch.testing.assert_close(
        many.detach().mean(0).to_torch(), torch.tensor([0.09, 0.2447, 0.6652]), rtol=0, atol=0.02
    )
    soft = F.gumbel_softmax(logits.reshape(3, 1), tau=0.5, dim=0)
    assert abs(soft.sum().item() - 1) < 1e-6
    (F.gumbel_softmax(logits, hard=True) * flow.tensor([1.0, 2.0, 3.0])).sum().backward()
    assert logits.grad is not None and logits.grad.abs().sum().item() > 0


def test_sparse_softmax_cross_entropy() -> None:
    labels = torch.tensor([2, 0, 1])
    agree(
        lambda x: TF.cross_entropy(x, labels, reduction="none"),
        lambda x: F.sparse_softmax_cross_entropy(flow.tensor(labels), x),
        (rand(3, 4),),
    )


def test_draws_have_no_derivative_by_their_mean_and_deviation() -> None:
    """As torch's: whoever wants one by the pathwise estimate writes Normal(mean, std).rsample()."""
    for given in ((True, True), (True, False), (False, True)):
        found = []
        for lib in (torch, flow):
            lib.manual_seed(0)
            made: list[Any] = [lib.tensor([1.0, float("inf")], requires_grad=g) for g in given]
            y = lib.normal(made[0], made[1].clamp(max=3.0))
            y.sum().backward()
            found.append((y.tolist(), [None if m.grad is None else m.grad.tolist() for m in made]))
        assert found[0] == found[1]


def test_bernoulli_by_a_tensor_that_broadcasts_draws_for_each_element() -> None:
    for made in (flow.empty(99).bernoulli_(flow.tensor(0.5)), flow.empty(99, 2).bernoulli_(flow.full((2,), 0.5))):
        assert 0 < made.sum().item() < made.numel()
