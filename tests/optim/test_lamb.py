"""LAMB against its formula in numpy; global parameters, in any layout, as local ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import weft as flow
from weft.core.errors import OptionError

START = np.array([[1.0, -2.0, 0.5], [0.0, 3.0, -1.0]])
GRADS = [np.array([[0.1, -0.2, 0.3], [1.0, -1.0, 0.5]]) * k for k in (1.0, -0.5, 2.0)]


def expected(lr: float, decay: float, adam_w: bool, correct: bool) -> np.ndarray:
    p, m, v = START.copy(), np.zeros_like(START), np.zeros_like(START)
    for t, g in enumerate(GRADS, 1):
        g = g if adam_w else g + decay * p
        m, v = 0.9 * m + 0.1 * g, 0.99 * v + 0.01 * g * g
        a, b = (m / (1 - 0.9**t), v / (1 - 0.99**t)) if correct else (m, v)
        d = a / (np.sqrt(b) + 1e-6) + (decay * p if adam_w else 0)
        p = p - lr * np.linalg.norm(p) / np.linalg.norm(d) * d
    return p


@pytest.mark.parametrize("options", [(0.1, 0.0, True, True), (0.1, 0.3, True, False), (0.05, 0.3, False, True)])
@pytest.mark.parametrize("sbp", [None, flow.sbp.broadcast, flow.sbp.split(0)])
def test_steps_follow_the_formula(options: tuple[Any, ...], sbp: Any) -> None:
    def made(value: np.ndarray) -> flow.Tensor:
        t = flow.tensor(value, dtype=flow.float64)
        return t if sbp is None else t.to_global(placement=flow.placement("cpu", [0]), sbp=sbp)

    lr, decay, adam_w, correct = options
    w = flow.nn.Parameter(made(START))
    optimizer = flow.optim.LAMB(
        [w], lr, (0.9, 0.99), 1e-6, decay, adam_w_mode=adam_w, do_bias_correction=correct
    )  # fmt: skip
    for g in GRADS:
        w.grad = made(g)
        optimizer.step()
    np.testing.assert_allclose(w.detach().numpy(), expected(*options), rtol=1e-5)


def test_what_has_no_length_moves_by_the_rate_alone() -> None:
    w = flow.nn.Parameter(flow.zeros(2))
    w.grad = flow.tensor([1.0, -1.0])
    flow.optim.LAMB([w], lr=0.1).step()
    assert w.tolist() == pytest.approx([-0.1, 0.1], rel=1e-4)
    with pytest.raises(OptionError, match="beta parameter"):
        flow.optim.LAMB([w], betas=(1.0, 0.9))
