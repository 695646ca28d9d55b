"""Jacobians, Hessians and their products, beside torch's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import weft as flow
from weft.core.errors import ArgumentError, AutogradError

theirs, ours = torch.autograd.functional, flow.autograd.functional
A, B = np.arange(1, 7).reshape(2, 3) / 4.0, np.array([0.5, -1.0, 2.0])

FUNCTIONS: dict[str, Any] = {
    "one to one": (lambda x: x.exp() * x, (A,)),
    "a number": (lambda x: (x * x * x).sum(), (A,)),
    "two to one": (lambda x, y: (x * y).sin(), (A, B)),
    "two to two": (lambda x, y: (x.sum(1), x * y + y * y), (A, B)),
    "two to a number": (lambda x, y: (x * x * y).sum() + (y * y * y).sum(), (A, B)),
    "without one of them": (lambda x, y: (y * y).sum(), (A, B)),
}
NUMBERS = ["a number", "two to a number", "without one of them"]


def flat(found: Any) -> list[np.ndarray]:
    if isinstance(found, (tuple, list)):
        return [a for f in found for a in flat(f)]
    return [found.detach().numpy()]


def given(name: str, lib: Any) -> tuple[Any, Any]:
    f, arrays = FUNCTIONS[name]
    tensors = tuple(torch.from_numpy(a.copy()) if lib is torch else flow.tensor(a) for a in arrays)
    return f, tensors if len(tensors) > 1 else tensors[0]


def like(given: Any, lib: Any) -> Any:
    rand = np.random.default_rng(0)

    def one(t: Any) -> Any:
        a = rand.normal(size=tuple(t.shape))
        return torch.from_numpy(a) if lib is torch else flow.tensor(a)

    return tuple(map(one, given)) if isinstance(given, tuple) else one(given)


def same(a: Any, b: Any) -> None:
    assert isinstance(a, tuple) == isinstance(b, tuple)
    for x, y in zip(flat(a), flat(b), strict=True):
        assert x.shape == y.shape
        np.testing.assert_allclose(x, y, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_jacobians_and_products_with_them(name: str) -> None:
    (f, x), (_, y) = given(name, flow), given(name, torch)
    same(ours.jacobian(f, x), theirs.jacobian(f, y))
    out_x, out_y = f(*x) if isinstance(x, tuple) else f(x), f(*y) if isinstance(y, tuple) else f(y)
    same(ours.vjp(f, x, like(out_x, flow)), theirs.vjp(f, y, like(out_y, torch)))
    same(ours.jvp(f, x, like(x, flow)), theirs.jvp(f, y, like(y, torch)))


@pytest.mark.parametrize("name", NUMBERS)
def test_hessians_and_products_with_them(name: str) -> None:
    (f, x), (_, y) = given(name, flow), given(name, torch)
    same(ours.hessian(f, x), theirs.hessian(f, y))
    same(ours.vhp(f, x, like(x, flow)), theirs.vhp(f, y, like(y, torch)))
    same(ours.hvp(f, x, like(x, flow)), theirs.hvp(f, y, like(y, torch)))
    same(ours.vjp(f, x), theirs.vjp(f, y))


def test_derivatives_can_be_derived_again() -> None:
    x = flow.tensor([1.0, 2.0], requires_grad=True)
    j = ours.jacobian(lambda t: t * t * t, x, create_graph=True)
    j.sum().backward()
    assert x.grad.tolist() == [6.0, 12.0]
    assert not ours.jacobian(lambda t: t * t, x).requires_grad
    with flow.no_grad():
        assert ours.vjp(lambda t: (t * t).sum(), x)[1].tolist() == [2.0, 4.0]


def test_what_can_not_be_derived_is_refused() -> None:
    x = flow.ones(3)
    with pytest.raises(AutogradError, match="can only be None"):
        ours.vjp(lambda t: t * 2, x)
    with pytest.raises(AutogradError, match="invalid size"):
        ours.vjp(lambda t: t * 2, x, flow.ones(2))
    with pytest.raises(AutogradError, match="single element"):
        ours.hessian(lambda t: t * 2, x)
    with pytest.raises(AutogradError, match="independent of input 1"):
        ours.jacobian(lambda a, b: a * 2, (x, x), strict=True)
    with pytest.raises(ArgumentError, match="must be either a Tensor or a tuple of Tensors"):
        ours.jacobian(lambda t: 3, x)
