"""Forms of calls that are rare, with their gradients: positions named twice, numbers for rows, borders below zero."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import weft as flow

DRAW = np.random.default_rng(0)
ROWS = DRAW.normal(size=(4, 6)).astype(np.float32)
SQUARE = DRAW.normal(size=(4, 4)).astype(np.float32)
IMAGE = DRAW.normal(size=(1, 2, 4, 4)).astype(np.float32)
NUMBER = np.array(-0.7, np.float32)
SLOPE = np.array([0.25], np.float32)

CALLS: dict[str, tuple[Any, ...]] = {
    "filled twice": (lambda f, x, i, v: f.index_fill(x, 1, i, v), ROWS, np.array([0, 2, 2, 5]), NUMBER),
    "filled along the first": (lambda f, x, i, v: x.index_fill(0, i, v), ROWS, np.array([1, 1]), NUMBER),
    "triangles of wide": (lambda f, x: f.linalg.lu(x)[1:], ROWS),
    "triangles of tall": (lambda f, x: f.linalg.lu(x)[1:], ROWS.T.copy()),
    "triangles of many": (lambda f, x: f.linalg.lu_factor(x)[0], np.stack([ROWS, ROWS[::-1]])),
    "undone, of one size": (lambda f, x: f.linalg.pinv(x), np.eye(3, dtype=np.float32) * 2),
    "undone, of lesser rank": (lambda f, x: f.linalg.pinv(x), np.array([[1, 2], [2, 4], [0, 0]], np.float32)),
    "undone, a triangle": (lambda f, x: f.linalg.pinv(x, hermitian=True), SQUARE),
    "undone, nothing": (lambda f, x: f.linalg.pinv(x), np.zeros((0, 0), np.float32)),
    "circular, cut at the left": (lambda f, x: f.nn.functional.pad(x, (-1, 1, -2, 1), mode="circular"), IMAGE),
    "circular, cut at the right": (lambda f, x: f.nn.functional.pad(x, (2, -1), mode="circular"), IMAGE[0]),
    "circular, cut at both": (lambda f, x: f.nn.functional.pad(x, (-1, -1, 1, 0), mode="circular"), IMAGE),
    "along, from the last": (
        lambda f, x, i: f.take_along_dim(x, i, 1),
        ROWS,
        np.array([[-1, 0], [2, -6], [1, 1], [5, -2]]),
    ),
    "prelu of a number": (lambda f, x, w: f.nn.functional.prelu(x, w), NUMBER, SLOPE),
    "prelu by a number": (lambda f, x, w: f.nn.functional.prelu(x, w), ROWS, SLOPE[0]),
    "quantile of a number": (lambda f, x: f.quantile(x, 0.5, dim=0), NUMBER),
    "quantiles of a number": (lambda f, x: f.quantile(x, f.tensor([0.2, 0.5]), dim=-1, keepdim=True), NUMBER),
    "logcumsumexp of a number": (lambda f, x: f.logcumsumexp(x, 0), NUMBER),
    "powers of a number": (lambda f, x: f.linalg.vander(x, N=3), NUMBER),
    "largest of bags, padded from the last": (
        lambda f, w, i, o: f.nn.functional.embedding_bag(i, w, o, mode="max", padding_idx=-1),
        SQUARE,
        np.array([0, 3, 1, 3, 3, 2]),
        np.array([0, 3]),
    ),
    "sums of bags, padded from the last": (
        lambda f, w, i, o: f.nn.functional.embedding_bag(i, w, o, mode="sum", padding_idx=-1),
        SQUARE,
        np.array([0, 3, 1, 3, 3, 2]),
        np.array([0, 3]),
    ),
}


def results(lib: Any, call: Callable[..., Any], data: list[np.ndarray]) -> list[np.ndarray]:
    given = [lib.tensor(d, requires_grad=d.dtype == np.float32) for d in data]
    found = call(lib, *given)
    found = list(found) if isinstance(found, (tuple, list)) else [found]
    loss: Any = sum((y * y + y * 2).sum() for y in found)
    loss.backward()
    return [t.detach().numpy() for t in (*found, *(t.grad for t in given if t.requires_grad))]


@pytest.mark.parametrize(("call", "data"), [(c, d) for c, *d in CALLS.values()], ids=CALLS.keys())
def test_values_and_gradients_are_those_of_torch(call: Callable[..., Any], data: list[np.ndarray]) -> None:
    for got, expected in zip(results(flow, call, data), results(torch, call, data), strict=True):
        assert got.shape == expected.shape
        np.testing.assert_allclose(got, expected, rtol=1e-3, atol=1e-4)


def test_pairs_that_differ_are_counted() -> None:
    found, expected = (f.nn.functional.pdist(f.tensor(ROWS), 0.0).tolist() for f in (flow, torch))
    assert found == expected
