"""Every function of torch's that goes element by element, at zeros, ones, bounds, infinities and NaN: its values, and
its gradients where they are numbers, are torch's.
"""

from __future__ import annotations

import math
import warnings
from typing import Any

import pytest
import torch

import weft as flow
from bench import fuzz

VALUES = [0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 0.5, -0.5, 3.0, 6.0, -3.0, 20.0, -20.0, 1e300, math.inf, -math.inf, math.nan]
ONE = [torch.tensor(VALUES, dtype=torch.float64)]
TWO = [t.flatten() for t in torch.meshgrid(ONE[0], ONE[0], indexing="ij")]
NUMBERS = (0, 1, 2, 3, 0.5, -1, -2.0)
# where the two differ, and why that is as well
APART = {
    "acosh": "no slope where there is no value", "arccosh": "no slope where there is no value",
    "copysign": "the limit, where torch's is NaN", "softsign": "the limit, where torch's is NaN",
    "log_ndtr": "the limit, where torch's is NaN", "softmax": "asks for a dimension",
    "log_softmax": "asks for a dimension", "softmin": "asks for a dimension",
    "entr": "no slope at zero, where torch's is infinite", "xlog1py": "no slope at the ends of what log takes",
}  # fmt: skip
if torch.__version__ < "2.12":
    APART["asarray"] = "has its operand's gradient, as torch's from 2.12 on"


def elementwise() -> list[tuple[str, int]]:
    """Functions that torch answers with as many float64 as it is given, and how many tensors they take."""
    found = []
    for name, (_, theirs) in fuzz.functions().items():
        place, _, last = name.partition(".")
        raw = place == "flow" and hasattr(torch.nn.functional, last)  # torch's, with other arguments
        if place in ("flow", "neural", "special") and not raw and not last.endswith("_") and last not in APART:
            for given in (ONE, TWO):
                try:
                    y = theirs(*(t.clone() for t in given))
                except Exception:
                    continue
                if isinstance(y, torch.Tensor) and y.shape == given[0].shape and y.dtype == torch.float64:
                    found.append((name, len(given)))
    return found


WORDS = """
    bessel_j0 bessel_j1 bessel_y0 bessel_y1 hermite_polynomial_h hermite_polynomial_he modified_bessel_i0
    modified_bessel_i1 modified_bessel_k0 modified_bessel_k1 scaled_modified_bessel_k0 scaled_modified_bessel_k1
    spherical_bessel_j0
"""
MORE = frozenset(WORDS.split())  # torch has no derivative of these


def answer(m: Any, f: Any, given: list[torch.Tensor], *rest: Any) -> list[torch.Tensor]:
    """The value, and the gradients, zero where there is none."""
    xs = [(t.clone() if m is torch else flow.from_torch(t.clone())).requires_grad_() for t in given]
    y = f(*xs, *rest)
    found = m.autograd.grad(y.sum(), xs, allow_unused=True) if y.requires_grad else [None] * len(xs)
    gradients = (m.zeros_like(x) if g is None else g for g, x in zip(found, xs, strict=True))
    return [t.detach() if m is torch else t.detach().to_torch() for t in (y, *gradients)]


def assert_same(name: str, given: list[torch.Tensor], *rest: Any) -> None:
    ours, theirs = fuzz.functions()[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            wanted = answer(torch, theirs, given, *rest)
        except (NotImplementedError, RuntimeError):  # it has no derivative
            return
        found = answer(flow, ours, given, *rest)
    numbers = ~torch.stack(given).isnan().any(0)
    compared = 1 if name.rpartition(".")[2] in MORE else len(found)
    for at, (a, b) in enumerate(zip(found[:compared], wanted[:compared], strict=True)):
        wrong = ~torch.isclose(a, b, rtol=1e-6, atol=1e-9, equal_nan=True)
        if at:  # what has no value has any slope
            wrong &= numbers
        where = torch.stack(given)[:, wrong].T.tolist()[:4]
        assert not wrong.any(), f"{name}{where}: {a[wrong][:4].tolist()}, not {b[wrong][:4].tolist()}"


@pytest.mark.parametrize(("name", "operands"), elementwise())
def test_as_torch(name: str, operands: int) -> None:
    assert_same(name, ONE if operands == 1 else TWO)


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("name", ["pow", "float_power", "xlogy", "clamp_min", "div", "fmod", "remainder"])
def test_with_a_number(name: str, number: float) -> None:
    assert_same(f"flow.{name}", ONE, number)
