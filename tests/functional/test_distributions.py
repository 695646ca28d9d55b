"""Laws against torch's; drawn values against their laws."""

from __future__ import annotations

import pytest
import torch

import weft as flow
from weft.core.errors import OptionError
from weft.tensor.tensor import of_torch


@pytest.mark.parametrize("kind", ["probs", "logits"])
def test_categorical(kind: str) -> None:
    given = torch.tensor([[0.1, 0.2, 0.7], [2.0, 1.0, 1.0]], requires_grad=True)
    mine = of_torch(given.detach().clone()).requires_grad_()
    theirs, ours = torch.distributions.Categorical(**{kind: given}), flow.distributions.Categorical(**{kind: mine})
    value = torch.tensor([[2, 0], [1, 1]])
    for e, g in ((theirs.log_prob(value), ours.log_prob(of_torch(value))), (theirs.entropy(), ours.entropy())):
        torch.testing.assert_close(g.detach().to_torch(), e.detach())
    theirs.log_prob(value).sum().backward()
    ours.log_prob(of_torch(value)).sum().backward()
    torch.testing.assert_close(mine.grad.to_torch(), given.grad)  # type: ignore[union-attr]
    flow.manual_seed(0)
    drawn = ours.sample((4000,))
    assert drawn.shape == (4000, 2) and not drawn.requires_grad
    shares = torch.nn.functional.one_hot(drawn.to_torch(), 3).float().mean(0)
    torch.testing.assert_close(shares, theirs.probs.detach(), atol=0.03, rtol=0)
    assert ours.sample().shape == (2,) and ours.batch_shape == (2,)


def test_normal() -> None:
    loc, scale = flow.tensor([1.0, -2.0], requires_grad=True), flow.tensor(0.5, requires_grad=True)
    ours = flow.distributions.Normal(loc, scale)
    theirs = torch.distributions.Normal(torch.tensor([1.0, -2.0]), torch.tensor(0.5))
    value = torch.tensor([[0.5, 3.0]])
    torch.testing.assert_close(ours.log_prob(of_torch(value)).detach().to_torch(), theirs.log_prob(value))
    torch.testing.assert_close(ours.entropy().detach().to_torch(), theirs.entropy())
    flow.manual_seed(0)
    drawn = ours.sample((4000,)).to_torch()
    torch.testing.assert_close(drawn.mean(0), theirs.mean, atol=0.03, rtol=0)
    torch.testing.assert_close(drawn.std(0), theirs.stddev, atol=0.03, rtol=0)
    ours.rsample((3,)).sum().backward()
    assert loc.grad is not None and loc.grad.tolist() == [3.0, 3.0] and scale.grad is not None


def test_what_cannot_be_is_said() -> None:
    with pytest.raises(OptionError, match="one of them"):
        flow.distributions.Categorical()
    with pytest.raises(OptionError, match="last dimension"):
        flow.distributions.Categorical(flow.tensor(1.0))


def test_script_and_ignore_change_nothing() -> None:
    def double(x: flow.Tensor) -> flow.Tensor:
        return x + x

    assert flow.jit.script(double) is double
    assert flow.jit.ignore(double) is double and flow.jit.ignore()(double) is double
