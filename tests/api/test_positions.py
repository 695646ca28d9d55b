"""Places where PyTorch and OneFlow take different things: refused, or read as PyTorch with a warning."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest

import weft as flow
from weft.core.errors import OptionError
from weft.nn import functional as F

schedules = flow.optim.lr_scheduler
A, B = flow.tensor([1000.0]), flow.tensor([1000.5])


def sgd() -> flow.optim.Optimizer:
    return flow.optim.SGD([flow.nn.Parameter(flow.ones(1))], lr=1.0)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: schedules.PolynomialLR(sgd(), 4, 0.1), r"power=0\.1, or decay_batch=4, end_learning_rate=0\.1"),
        (lambda: schedules.PolynomialLR(sgd(), 4, 0.1, 2.0), "Name it"),
        (lambda: schedules.CosineAnnealingWarmRestarts(sgd(), 4, 1, 0.0, 1.0), "last_epoch, and OneFlow decay_rate"),
        (lambda: F.gumbel_softmax(flow.zeros(2, 2), 1.0, False, 0), "dim=0"),
        (lambda: F.cross_entropy(flow.zeros(2, 3), flow.tensor([0, 1]), None, False), 'reduction="mean" or "sum"'),
        (lambda: F.nll_loss(flow.zeros(2, 3), flow.tensor([0, 1]), None, True), 'reduction="mean" or "sum"'),
        (lambda: flow.nn.CrossEntropyLoss(None, False), 'reduction="mean" or "sum"'),
        (lambda: flow.nn.MSELoss(False)(A, B), "valid value for reduction"),
        (lambda: flow.nn.NLLLoss(None, None, 5)(flow.zeros(2, 3), flow.tensor([0, 1])), "class's number"),
    ],
)
def test_what_could_mean_either_is_refused(call: Callable[[], Any], says: str) -> None:
    with pytest.raises(OptionError, match=says):
        call()


@pytest.mark.parametrize("close", [flow.allclose, flow.isclose, flow.Tensor.allclose, flow.Tensor.isclose])
def test_tolerances_are_read_as_torch_reads_them(close: Any) -> None:
    with pytest.warns(UserWarning, match=r"read as rtol, atol, as in PyTorch.*rtol=0\.001"):
        assert bool(close(A, B, 1e-3))
    with pytest.warns(UserWarning, match="OneFlow reads atol, rtol"):
        assert not bool(close(A, B, 0.0, 1e-3))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert bool(close(A, B, rtol=1e-3)) and bool(close(A, B, 1.0, 1.0)) and not bool(close(A, B))
