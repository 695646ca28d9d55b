"""Second derivatives of what bends or looks for the largest: zeros where torch gives zeros, so that penalties on
gradients reach every parameter."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import weft as flow

ROWS = np.random.default_rng(0).normal(size=(2, 3, 8)).astype(np.float32)
SQUARES = np.random.default_rng(1).normal(size=(2, 3, 6, 6)).astype(np.float32)
CUBES = np.random.default_rng(2).normal(size=(1, 2, 6, 6, 6)).astype(np.float32)
TARGET = np.array([[1] * 8, [2] * 8])

CALLS: dict[str, tuple[Callable[[Any, Any], Any], np.ndarray]] = {
    "hardshrink": (lambda f, x: f.hardshrink(x, 0.5), ROWS),
    "softshrink": (lambda f, x: f.softshrink(x, 0.3), ROWS),
    "threshold": (lambda f, x: f.threshold(x, 0.1, 2.0), ROWS),
    "relu6": (lambda f, x: f.relu6(x * 4), ROWS),
    "hardtanh": (lambda f, x: f.hardtanh(x, -0.5, 0.5), ROWS),
    "prelu": (lambda f, x: f.prelu(x, abs(x[0, :, 0])), ROWS),
    "rrelu": (lambda f, x: f.rrelu(x), ROWS),
    "rrelu of one slope": (lambda f, x: f.rrelu(x, 0.3, 0.3, training=True), ROWS),
    "reflect": (lambda f, x: f.pad(x, (1, 1), "reflect"), ROWS),
    "max_pool1d": (lambda f, x: f.max_pool1d(x, 2), ROWS),
    "max_pool2d": (lambda f, x: f.max_pool2d(x, 3, 2, 1), SQUARES),
    "max_pool3d": (lambda f, x: f.max_pool3d(x, 2), CUBES),
    "avg_pool1d": (lambda f, x: f.avg_pool1d(x, 2), ROWS),
    "avg_pool2d": (lambda f, x: f.avg_pool2d(x, 3, 2, 1), SQUARES),
    "avg_pool3d": (lambda f, x: f.avg_pool3d(x, 2), CUBES),
    "adaptive_avg_pool2d": (lambda f, x: f.adaptive_avg_pool2d(x, 3), SQUARES),
    "adaptive_max_pool2d": (lambda f, x: f.adaptive_max_pool2d(x, 3), SQUARES),
    "max_unpool2d": (lambda f, x: f.max_unpool2d(*f.max_pool2d(x, 2, return_indices=True), 2), SQUARES),
}


def derivatives(lib: Any, call: Callable[[Any, Any], Any], data: np.ndarray) -> list[np.ndarray | None]:
    x = lib.tensor(data, requires_grad=True)
    y = call(lib.nn.functional, x)
    v = lib.tensor(np.linspace(-1, 2, y.numel(), dtype=np.float32).reshape(tuple(y.shape)), requires_grad=True)
    (gradient,) = lib.autograd.grad(y, [x], v, create_graph=True)
    second = lib.autograd.grad((gradient * gradient * gradient).sum(), [x, v], allow_unused=True)
    return [None if t is None else t.detach().numpy() for t in (y, gradient, *second)]


@pytest.mark.parametrize(("call", "data"), CALLS.values(), ids=CALLS.keys())
def test_second_derivatives_are_those_of_torch(call: Callable[[Any, Any], Any], data: np.ndarray) -> None:
    for got, expected in zip(derivatives(flow, call, data), derivatives(torch, call, data), strict=True):
        assert got is not None and expected is not None
        np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_of_likelihoods(reduction: str) -> None:
    def call(lib: Any) -> Any:
        return lambda f, x: f.nll_loss(x, lib.tensor(TARGET), reduction=reduction)

    for got, expected in zip(derivatives(flow, call(flow), ROWS), derivatives(torch, call(torch), ROWS), strict=True):
        assert got is not None and expected is not None
        np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)


def test_a_penalty_alone_may_be_steady() -> None:
    """The gradient of relu6 is constant nearby, yet its own gradient is zeros rather than an error."""
    x = flow.tensor(ROWS, requires_grad=True)
    (gradient,) = flow.autograd.grad(flow.nn.functional.relu6(x).sum(), [x], create_graph=True)
    assert gradient is not None
    gradient.sum().backward()
    assert x.grad is not None and not x.grad.any()


@pytest.mark.parametrize("name", ["relu6", "hardtanh"])
def test_slopes_on_the_bounds_are_zero(name: str) -> None:
    results = []
    for lib in (flow, torch):
        x = lib.tensor([-1.0, 0.0, 0.5, 1.0, 6.0], requires_grad=True)
        getattr(lib.nn.functional, name)(x).sum().backward()
        results.append(x.grad.tolist())
    assert results[0] == results[1]
