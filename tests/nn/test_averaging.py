"""Averages of weights, statistics found anew, and the rate meanwhile: what torch's are."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch

import weft as flow
from weft.core.errors import OptionError


def program(lib: Any) -> list[Any]:
    lib.manual_seed(0)
    of = lib.optim.swa_utils
    model = lib.nn.Sequential(lib.nn.Linear(3, 4), lib.nn.BatchNorm1d(4), lib.nn.ReLU(), lib.nn.Linear(4, 2))
    x = lib.randn(24, 3)
    optimizer = lib.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    schedule = of.SWALR(optimizer, swa_lr=0.05, anneal_epochs=3)
    mean = of.AveragedModel(model)
    moving = of.AveragedModel(model, multi_avg_fn=of.get_ema_multi_avg_fn(0.9), use_buffers=True)
    own = of.AveragedModel(model, avg_fn=lambda averaged, current, count: 0.3 * averaged + 0.7 * current)
    results: list[Any] = []
    for _ in range(5):
        for part in x.split(8):
            optimizer.zero_grad()
            loss = model(part).square().mean()
            loss.backward()
            optimizer.step()
            moving.update_parameters(model)
            own.update_parameters(model)
        mean.update_parameters(model)
        schedule.step()
        results.append(schedule.get_last_lr())
    of.update_bn([(part,) for part in x.split(8)], mean)
    results += [m.training for m in (mean, model)]
    for averaged in (mean, moving, own):
        averaged.eval()
        results += [
            averaged(x).tolist(),
            list(averaged.state_dict()),
            [v.tolist() for v in averaged.state_dict().values()],
        ]
    again = of.AveragedModel(copy.deepcopy(model))
    again.load_state_dict(mean.state_dict())
    return [*results, again.eval()(x).tolist(), int(again.n_averaged)]


def rates(lib: Any) -> list[Any]:
    results = []
    for options in ({"anneal_epochs": 0}, {"anneal_epochs": 4, "anneal_strategy": "linear"}):
        groups = [{"params": [lib.zeros(1, requires_grad=True)], "lr": lr} for lr in (1.0, 0.3)]
        optimizer = lib.optim.SGD(groups, lr=1.0)
        schedule = lib.optim.swa_utils.SWALR(optimizer, swa_lr=[0.5, 0.1], **options)
        for _ in range(6):
            results.append(schedule.get_last_lr())
            optimizer.step()
            schedule.step()
    return results


def flat(tree: Any) -> list[Any]:
    return [x for part in tree for x in flat(part)] if isinstance(tree, (tuple, list)) else [tree]


@pytest.mark.parametrize("which", [program, rates])
def test_the_same_as_torchs(which: Any) -> None:
    for ours, theirs in zip(flat(which(flow)), flat(which(torch)), strict=True):
        assert ours == (theirs if isinstance(theirs, str) else pytest.approx(theirs, rel=1e-4, abs=1e-6))


def test_what_cannot_be_is_said() -> None:
    of, model = flow.optim.swa_utils, flow.nn.Linear(1, 1)
    with pytest.raises(OptionError, match="one of them"):
        of.AveragedModel(model, avg_fn=of.get_swa_avg_fn(), multi_avg_fn=of.get_swa_multi_avg_fn())
    with pytest.raises(OptionError, match="from 0 to 1; got 2"):
        of.get_ema_avg_fn(2)
    with pytest.raises(OptionError, match="'cos' or 'linear'"):
        of.SWALR(flow.optim.SGD(model.parameters(), lr=1.0), 0.1, anneal_strategy="sine")
