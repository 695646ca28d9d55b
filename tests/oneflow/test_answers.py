"""What OneFlow 0.9 answered to calls in its own forms. What is answered differently is in docs/from-oneflow.md."""

from __future__ import annotations

import math
import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import weft as flow

LINES = [line.split(" -> ") for line in Path(__file__).with_name("answers.txt").read_text().splitlines()]


def of_kind(dtype: str, shape: tuple[int, ...], k: int = 0) -> flow.Tensor:
    """The input number k of a dtype and shape."""
    values = np.sin(np.arange(math.prod(shape)) * 1.7 + k * 0.9 + 0.3) * 2 + 0.05
    whole = values > 0 if dtype == "bool" else np.round(values * 3)
    whole = np.abs(whole) if dtype == "uint8" else whole
    data = values if dtype.startswith("float") else whole
    return flow.tensor(data.reshape(shape).astype(dtype))


def indices(shape: tuple[int, ...], n: int) -> flow.Tensor:
    return flow.tensor((np.arange(math.prod(shape)) * 7 % n).reshape(shape))


def written(x: Any, place: str, value: Any) -> Any:
    exec(f"x[{place}] = value", {**NAMES, "x": x, "value": value})
    return x


def squares() -> tuple[flow.Tensor, flow.Tensor]:
    w = of_kind("float32", (3,)).requires_grad_()
    return (w * w).sum(), w


def told(answer: Any) -> str:
    """A tensor's dtype, shape, sum and weighted sum, and how many values aren't finite; or a number."""
    if isinstance(answer, flow.Tensor):
        values = answer.detach().double().numpy().ravel()
        finite = values[np.isfinite(values)]
        sums = f"{finite.sum():.3f} {(finite * np.arange(1, finite.size + 1)).sum():.3f}"
        odd = f" {values.size - finite.size} odd" if finite.size < values.size else ""
        return f"{str(answer.dtype).rpartition('.')[2]}{list(answer.shape)} {sums}{odd}".replace(", ", ",")
    if isinstance(answer, (tuple, list)):
        return f"({'; '.join(map(told, answer))})"
    return f"{answer:.4g}" if isinstance(answer, float) else str(answer)


NAMES: dict[str, Any] = {
    "flow": flow, "np": np, "nn": flow.nn, "F": flow.nn.functional, "X": of_kind, "I": indices, "gr": squares,
    "x": lambda shape, k=0: of_kind("float32", shape, k), "B": lambda shape: of_kind("bool", shape), "setx": written,
}  # fmt: skip
NUMBER = re.compile(r"-?(?:\d+\.?\d*(?:e[-+]?\d+)?|inf|nan)")


def equal(found: str, expected: str) -> bool:
    a, b = ([float(n) for n in NUMBER.findall(text)] for text in (found, expected))
    return a == pytest.approx(b, rel=2e-3, abs=2e-3, nan_ok=True) and NUMBER.sub("", found) == NUMBER.sub("", expected)


def test_calls_answer_as_oneflows_do() -> None:
    wrong = []
    with warnings.catch_warnings(action="ignore"):
        for call, expected in LINES:
            try:
                found = told(eval(call, dict(NAMES)))
            except Exception as error:
                found = repr(error)[:100]
            if not equal(found, expected):
                wrong.append(f"{call} -> {found}, not {expected}")
    assert len(LINES) > 600 and not wrong, "\n".join(wrong)
