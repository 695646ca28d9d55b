"""On two ranks, in any layout, what these helpers do is what they do on one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import weft as flow
from weft import nn
from weft.launch.threads import spawn_threads
from weft.nn import functional as F

B, S = flow.sbp.broadcast, flow.sbp.split


def trained(layer: Any, where: Any, optimizer: Callable[..., Any] = flow.optim.SGD) -> list[Any]:
    layer = layer if where is None else layer.to_global(**where)
    optimizer_ = optimizer(layer.parameters(), lr=0.1)
    x = flow.arange(8.0).reshape(2, 4) / 4 - 1
    x = x if where is None else x.to_global(where["placement"], B)
    results = []
    for _ in range(2):
        loss = (layer(x) - 1).square().mean()
        optimizer_.zero_grad()
        loss.backward()
        optimizer_.step()
        results.append(loss.item())
    return [*results, layer.weight.detach().numpy().tolist()]


def programs(where: Any) -> list[Any]:
    flow.manual_seed(3)
    forms = nn.utils.parametrizations
    results = [trained(form(nn.Linear(4, 4)), where) for form in (forms.weight_norm, forms.spectral_norm)]
    results.append(trained(forms.orthogonal(nn.Linear(4, 4)), where))
    results.append(trained(nn.Linear(4, 4, bias=False), where, flow.optim.Muon))
    results.append(trained(nn.utils.prune.l1_unstructured(nn.Linear(4, 4), "weight", amount=3), where))
    model = nn.Linear(4, 4)
    mean = flow.optim.swa_utils.AveragedModel(model if where is None else model.to_global(**where))
    for value in (1.0, 4.0):
        nn.init.constant_(model.weight, value)
        mean.update_parameters(model)
    x = flow.arange(96.0).reshape(2, 3, 4, 4).sin()
    x = x if where is None else x.to_global(where["placement"], B).to_global(sbp=S(1))
    results += [
        mean.module.weight.detach().numpy().tolist(),
        F.interpolate(x, size=(3, 2), mode="bicubic", antialias=True).numpy().tolist(),
        F.interpolate(x, scale_factor=1.5, mode="nearest-exact").numpy().tolist(),
        flow.logcumsumexp(x, 1).numpy().tolist(), x.repeat(1, 2, 1, 1).numpy().tolist(),
        flow.func.grad(lambda x: (x * x * x).sum())(x).numpy().tolist(),
    ]  # fmt: skip
    return results


def flat(tree: Any) -> list[float]:
    return [x for part in tree for x in flat(part)] if isinstance(tree, list) else [tree]


@pytest.mark.filterwarnings("ignore:.*has no layout rule")
@pytest.mark.parametrize("sbp", [B, S(0)])
def test_the_same_as_on_one_rank(sbp: Any) -> None:
    expected = flat(programs(None))

    def body() -> list[float]:
        return flat(programs({"placement": flow.placement("cpu", ranks=[0, 1]), "sbp": sbp}))

    for got in spawn_threads(2, body):
        assert got == pytest.approx(expected, rel=1e-4, abs=1e-5)


def test_what_is_dropped_does_not_depend_on_the_layout() -> None:
    def body() -> list[Any]:
        everywhere, results = flow.placement("cpu", ranks=[0, 1]), []
        for sbp in (B, S(0), S(1)):
            flow.manual_seed(5)
            x = flow.ones(4, 6, 2, placement=everywhere, sbp=sbp)
            results.append([f(x, 0.5, True).numpy().tolist() for f in (F.alpha_dropout, F.feature_alpha_dropout)])
        return results

    for whole, *others in spawn_threads(2, body):
        assert all(flat(other) == pytest.approx(flat(whole)) for other in others)
