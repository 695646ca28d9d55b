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
        d = a / (np.sqrt(b) + 1e-6)
        p = p - lr * np.linalg.norm(p) / np.linalg.norm(d) * (d + (decay * p if adam_w else 0))
    return p


@pytest.mark.parametrize("options", [(0.1, 0.0, True, True), (0.1, 0.3, True, False), (0.05, 0.3, False, True)])
@pytest.mark.parametrize("sbp", [None, flow.sbp.broadcast, flow.sbp.split(0)])
def test_steps_follow_the_formula(options: tuple[Any, ...], sbp: Any) -> None:
    def made(value: np.ndarray) -> flow.Tensor:
        t = flow.tensor(value, dtype=flow.float64)
        return t if sbp is None else t.to_global(placement=flow.placement("cpu", [0]), sbp=sbp)

    lr, decay, adam_w, correct = options
    w = flow.nn.Parameter(made(START))
    optimizer = flow.optim.LAMB([w], lr, (0.9, 0.99), 1e-6, decay, adam_w_mode=adam_w, do_bias_correction=correct)
    for g in GRADS:
        w.grad = made(g)
        optimizer.step()
    np.testing.assert_allclose(w.detach().numpy(), expected(*options), rtol=1e-5)


# what OneFlow 0.9 makes of START by GRADS in float32, with lr 0.1, betas (0.9, 0.99), eps 1e-6
ONEFLOW = {
    (0.1, True, True): [0.450462, -1.354549, -0.001586, -0.453632, 3.165901, -1.357721],
    (0.1, True, False): [0.465568, -1.392078, 0.002280, -0.460992, 3.240577, -1.387517],
    (0.9, True, True): [0.131434, -0.539800, -0.072752, -0.276937, 1.502042, -0.685305],
    (0.9, True, False): [0.197641, -0.711614, -0.059368, -0.316366, 1.858320, -0.830348],
    (0.1, False, True): [0.399219, -1.390215, 0.059013, -0.381528, 3.222954, -1.273582],
    (0.1, False, False): [0.399228, -1.390212, 0.059012, -0.381534, 3.222955, -1.273583],
    (0.9, False, True): [0.510970, -1.507688, 0.054448, -0.286375, 2.537619, -0.602844],
    (0.9, False, False): [0.510970, -1.507687, 0.054450, -0.286376, 2.537617, -0.602846],
}


@pytest.mark.parametrize(("decay", "adam_w", "correct"), ONEFLOW)
def test_steps_are_oneflows(decay: float, adam_w: bool, correct: bool) -> None:
    w = flow.nn.Parameter(flow.tensor(START, dtype=flow.float32))
    optimizer = flow.optim.LAMB([w], 0.1, (0.9, 0.99), 1e-6, decay, adam_w_mode=adam_w, do_bias_correction=correct)
    for g in GRADS:
        w.grad = flow.tensor(g, dtype=flow.float32)
        optimizer.step()
    assert w.detach().numpy().ravel() == pytest.approx(ONEFLOW[decay, adam_w, correct], rel=1e-5, abs=5e-6)


def test_what_has_no_length_moves_by_the_rate_alone() -> None:
    w = flow.nn.Parameter(flow.zeros(2))
    w.grad = flow.tensor([1.0, -1.0])
    flow.optim.LAMB([w], lr=0.1).step()
    assert w.tolist() == pytest.approx([-0.1, 0.1], rel=1e-4)
    with pytest.raises(OptionError, match="beta parameter"):
        flow.optim.LAMB([w], betas=(1.0, 0.9))
