"""numpy's functions of tensors: what numpy gives for the same array, and no gradient lost without a word."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft as flow
from weft.core.errors import AutogradError

X = np.arange(12, dtype=np.float32).reshape(3, 4) - 4.5
FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    **{name: getattr(np, name) for name in (
        "sum", "mean", "max", "min", "std", "var", "ptp", "prod", "median", "argmax", "argsort", "sort", "cumsum",
        "all", "any", "nonzero", "ravel", "squeeze", "transpose", "flip", "diff", "unique", "shape", "size", "ndim",
        "copy", "count_nonzero", "average", "trace", "diagonal", "zeros_like", "argwhere", "isreal", "nanmean",
    )},
    **{f"{name} of rows": lambda x, f=getattr(np, name): f(x, axis=1) 
       for name in ("sum", "max", "min", "std", "cumsum")},
    "repeat": lambda x: np.repeat(x, 2), "take": lambda x: np.take(x, [2, 0], axis=0), "tile": lambda x: np.tile(x, 2),
    "concatenate": lambda x: np.concatenate([x, x], axis=1), "stack": lambda x: np.stack((x, x)),
    "where": lambda x: np.where(x > 0, x, X), "clip": lambda x: np.clip(x, -1, 1), "dot": lambda x: np.dot(x, X.T),
    "einsum": lambda x: np.einsum("ij->ji", x), "split": lambda x: np.split(x, 2, axis=1), "norm": np.linalg.norm,
    "allclose": lambda x: np.allclose(x, X), "reshape": lambda x: np.reshape(x, (4, 3)), "pad": lambda x: np.pad(x, 1),
    "percentile": lambda x: np.percentile(x, 30), "histogram": lambda x: np.histogram(x, bins=3), "fft": np.fft.fft,
}  # fmt: skip


def plain(y: Any) -> Any:
    assert not isinstance(y, flow.Tensor)
    return [plain(v) for v in y] if isinstance(y, (list, tuple)) else np.asarray(y)


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("requires_grad", [False, True])
def test_functions_give_what_they_give_for_the_array(name: str, requires_grad: bool) -> None:
    found, expected = plain(FUNCTIONS[name](flow.tensor(X, requires_grad=requires_grad))), plain(FUNCTIONS[name](X))
    pairs = zip(found, expected, strict=True) if isinstance(expected, list) else [(found, expected)]
    for f, e in pairs:
        np.testing.assert_array_equal(f, e)
        assert f.dtype == e.dtype


@pytest.mark.parametrize("f", [np.abs, np.sqrt, np.exp, lambda x: np.add(x, X), lambda x: np.maximum(X, x)])
def test_elementwise_functions_give_tensors_and_lose_no_gradient(f: Callable[[Any], Any]) -> None:
    with np.errstate(invalid="ignore"):
        y = f(flow.tensor(X))
        np.testing.assert_array_equal(y.numpy(), f(X))
        w = flow.tensor(X, requires_grad=True)
        with pytest.raises(AutogradError, match=r"np\.\w+\(\) computes on arrays.*x\.detach\(\)"):
            f(w)
        with flow.no_grad():
            np.testing.assert_array_equal(f(w).numpy(), f(X))


def test_operators_are_the_tensors() -> None:
    w = flow.tensor(X, requires_grad=True)
    for y in (X * w, w * X, X + w, X - w, X @ w.T, np.float32(2) * w):
        assert isinstance(y, flow.Tensor) and y.requires_grad
