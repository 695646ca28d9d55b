"""Places where PyTorch and OneFlow take different things: refused, or read as PyTorch with a warning."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch

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
        (lambda: F.poisson_nll_loss(A, B, True, False, False), 'reduction="mean" or "sum"'),
        (lambda: flow.nn.PoissonNLLLoss(True, False, True)(A, B), 'reduction="mean" or "sum"'),
        (lambda: flow.nn.MSELoss(False)(A, B), "valid value for reduction"),
        (lambda: flow.nn.NLLLoss(None, None, 5)(flow.zeros(2, 3), flow.tensor([0, 1])), "class's number"),
    ],
)
def test_what_could_mean_either_is_refused(call: Callable[[], Any], says: str) -> None:
    with pytest.raises(OptionError, match=says):
        call()


def names(layer: Any) -> list[str]:
    """By position, without what torch no longer wants said."""
    kinds = [p for p in inspect.signature(layer).parameters.values() if p.kind is p.POSITIONAL_OR_KEYWORD]
    return [p.name for p in kinds if p.name not in ("size_average", "reduce", "min_value")]


LAYERS = sorted(
    n for n in set(dir(flow.nn)) & set(dir(torch.nn)) if isinstance(getattr(torch.nn, n), type) and "Base" not in n
)


@pytest.mark.parametrize("name", LAYERS)
def test_a_layers_options_stand_where_torchs_do(name: str) -> None:
    ours, theirs = names(getattr(flow.nn, name)), names(getattr(torch.nn, name))
    both = [n for n in ours if n in theirs]
    assert both == [n for n in theirs if n in ours] and ours[: len(both)] == both, (ours, theirs)


@pytest.mark.parametrize("close", [flow.allclose, flow.isclose, flow.Tensor.allclose, flow.Tensor.isclose])
def test_tolerances_are_read_as_torch_reads_them(close: Any) -> None:
    with pytest.warns(UserWarning, match=r"read as rtol, atol, as in PyTorch.*rtol=0\.001"):
        assert bool(close(A, B, 1e-3))
    with pytest.warns(UserWarning, match="OneFlow reads atol, rtol"):
        assert not bool(close(A, B, 0.0, 1e-3))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert bool(close(A, B, rtol=1e-3)) and bool(close(A, B, 1.0, 1.0)) and not bool(close(A, B))


def test_flags_of_max_pooling_are_read_as_torch_reads_them() -> None:
    x = flow.arange(9.0).reshape(1, 1, 3, 3)
    with pytest.warns(UserWarning, match="read as ceil_mode, return_indices, as in PyTorch.*Name the one"):
        assert F.max_pool2d(x, 2, 2, 0, 1, True).shape == (1, 1, 2, 2)
    with pytest.warns(UserWarning, match="OneFlow has them in the other order"):
        assert F.max_pool1d(x[0], 2, 2, 0, 1, False, True)[1].tolist() == [[[1], [1], [1]]]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert (
            F.max_pool2d(x, 2, 2, 0, 1, False).shape == (1, 1, 1, 1)
            and len(F.max_pool2d(x, 2, 2, 0, 1, True, True)) == 2
        )
        assert F.max_pool2d(x, 2, ceil_mode=True).shape == (1, 1, 2, 2)
