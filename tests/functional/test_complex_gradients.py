"""Gradients of functions of complex numbers are torch's: of holomorphic ones, the derivative's conjugate."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import weft as flow

BY_NAME = """exp log sqrt rsqrt square tanh sigmoid sin cos tan sinh cosh asin acos atan asinh acosh atanh expm1 log1p
    log2 log10 reciprocal sinc abs angle conj"""
FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    **{name: lambda m, a, name=name: getattr(m, name)(a * 0.3) for name in BY_NAME.split()},
    "pow": lambda m, a: a**2.5, "squared": lambda m, a: a**2, "power": lambda m, a: a**a, "base": lambda m, a: 2.0**a,
    "div": lambda m, a: 1 / a, "mean": lambda m, a: a.mean(), "prod": lambda m, a: a.prod(0),
    "cumprod": lambda m, a: a.cumprod(0), "matmul": lambda m, a: a @ a.t(),
    "linear": lambda m, a: m.nn.functional.linear(a, a),
    "einsum": lambda m, a: m.einsum("ij,kj->ik", a, a * 2), "inv": lambda m, a: m.linalg.inv(a),
    "det": lambda m, a: m.linalg.det(a), "solve": lambda m, a: m.linalg.solve(a, a + 1),
    "matrix_exp": lambda m, a: m.matrix_exp(a * 0.1), "cross": lambda m, a: m.linalg.cross(a, a + 1),
    "fft": lambda m, a: m.fft.fft(a), "real": lambda m, a: a.real * 2, "imag": lambda m, a: a.imag * 3,
    "var": lambda m, a: a.var(0), "std": lambda m, a: a.std(), "norm": lambda m, a: a.norm(dim=1),
    "sgn": lambda m, a: m.sgn(a), "norm with zeros": lambda m, a: (a - a[:1]).norm(),
    "norm3": lambda m, a: m.linalg.vector_norm(a, 3), "logsumexp": lambda m, a: a.logsumexp(0),
    "softsign": lambda m, a: m.nn.functional.softsign(a), "rms_norm": lambda m, a: m.rms_norm(a, (3,), a[0], 0.5),
    "slogdet": lambda m, a: m.linalg.slogdet(a)[0], "logabsdet": lambda m, a: m.linalg.slogdet(a)[1],
    "q": lambda m, a: m.linalg.qr(a)[0], "r": lambda m, a: m.linalg.qr(a)[1],
    "eigvals": lambda m, a: m.linalg.eigvals(a), "eig": lambda m, a: m.linalg.eig(a)[1].abs(),
}  # fmt: skip


@pytest.mark.parametrize("name", list(FUNCTIONS))
def test_as_torch(name: str) -> None:
    torch.manual_seed(0)
    x = torch.randn(3, 3, dtype=torch.complex128)
    theirs, mine = x.clone().requires_grad_(), flow.from_torch(x.clone()).requires_grad_()
    wanted, found = FUNCTIONS[name](torch, theirs), FUNCTIONS[name](flow, mine)
    torch.testing.assert_close(found.detach().to_torch(), wanted.detach())
    dy, along = torch.randn_like(wanted), torch.randn_like(x)
    gradient = torch.autograd.grad(wanted, theirs, dy, create_graph=True)[0]
    own = flow.autograd.grad(found, mine, flow.from_torch(dy), create_graph=True)[0]
    torch.testing.assert_close(own.detach().to_torch(), gradient.detach())
    assert own.requires_grad == gradient.requires_grad
    if gradient.requires_grad:
        second = flow.autograd.grad(own, mine, flow.from_torch(along))[0]
        torch.testing.assert_close(second.to_torch(), torch.autograd.grad(gradient, theirs, along)[0])
