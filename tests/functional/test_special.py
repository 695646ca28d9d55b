"""`flow.special` has torch's names and values, of tensors and numbers alike."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import weft as flow
from weft.tensor.tensor import of_torch

X = torch.linspace(-0.9, 2.1, 6)
POLYNOMIALS = [n for n in torch.special.__all__ if "polynomial" in n]
FUNCTIONS = [n for n in torch.special.__all__ if "bessel" in n or n == "airy_ai"]


def test_every_name_is_here() -> None:
    assert not [n for n in torch.special.__all__ if not hasattr(flow.special, n)]


@pytest.mark.parametrize("name", POLYNOMIALS)
def test_a_polynomial_is_torchs(name: str) -> None:
    theirs, ours = getattr(torch.special, name), getattr(flow.special, name)
    degrees = torch.arange(6)
    for x, n in ((X, 3), (X, degrees), (0.5, degrees.float())):
        mine = [of_torch(t) if isinstance(t, torch.Tensor) else t for t in (x, n)]
        torch.testing.assert_close(ours(*mine).to_torch(), theirs(x, n))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_is_torchs(name: str) -> None:
    x = X.abs() if "_k" in name or "_y" in name else X
    torch.testing.assert_close(getattr(flow.special, name)(of_torch(x)).to_torch(), getattr(torch.special, name)(x))


def test_zeta_falls_with_its_shift() -> None:
    q = of_torch(X.abs()).requires_grad_()
    y: Any = flow.special.zeta(3.0, q)
    torch.testing.assert_close(y.detach().to_torch(), torch.special.zeta(3.0, X.abs()))
    theirs = X.abs().requires_grad_()
    torch.special.zeta(torch.tensor(3.0), theirs).sum().backward()
    y.sum().backward()
    assert q.grad is not None
    torch.testing.assert_close(q.grad.to_torch(), theirs.grad)


@pytest.mark.parametrize("name", ["gammainc", "gammaincc", "zeta"])
def test_a_derivative_that_nobody_has_is_refused(name: str) -> None:
    found = []
    for lib in (flow, torch):
        order = lib.tensor([2.0], requires_grad=True)
        with pytest.raises(RuntimeError, match=r"the derivative for '.*' is not implemented") as caught:
            (getattr(lib.special, name)(order, lib.tensor([1.5])) + order).sum().backward()
        found.append(str(caught.value)[:30])
    assert found[0] == found[1]


def test_quantiles_of_the_tails_are_exact() -> None:
    p = torch.tensor([1e-30, 1e-10, 0.5, 1 - 1e-12], dtype=torch.float64, requires_grad=True)
    mine = of_torch(p.detach()).requires_grad_()
    expected, found = torch.special.ndtri(p), flow.special.ndtri(mine)
    torch.testing.assert_close(found.detach().to_torch(), expected.detach(), rtol=1e-15, atol=0.0)
    expected.sum().backward()
    found.sum().backward()
    assert mine.grad is not None and p.grad is not None
    torch.testing.assert_close(mine.grad.to_torch(), p.grad, rtol=1e-12, atol=0.0)
