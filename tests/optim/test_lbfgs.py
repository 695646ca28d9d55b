"""L-BFGS against torch's: the same path without a line search, and a valley's bottom with one."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import weft as flow
from weft.core.errors import ArgumentError, OptionError


def valley(x: Any) -> Any:
    """Rosenbrock's: a long bent valley, lowest at (1, 1)."""
    return (1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2


def bowl(x: Any) -> Any:
    return ((x - 1) ** 2).sum() + ((x[0] + x[1]) ** 4) / 8


def walk(package: Any, f: Any, steps: int, **options: Any) -> tuple[list[float], list[float], int]:
    x = package.nn.Parameter(package.tensor([-1.2, 1.0], dtype=package.float64))
    optimizer, count = package.optim.LBFGS([x], **options), 0

    def closure() -> Any:
        nonlocal count
        count += 1
        optimizer.zero_grad()
        loss = f(x)
        loss.backward()
        return loss

    losses = [optimizer.step(closure).item() for _ in range(steps)]
    return losses, x.tolist(), count


@pytest.mark.parametrize("options", [{"lr": 0.3}, {"max_iter": 3, "history_size": 2}, {"lr": 0.5, "max_eval": 4}])
def test_its_path_is_torchs(options: dict[str, Any]) -> None:
    ours, theirs = walk(flow, bowl, 4, **options), walk(torch, bowl, 4, **options)
    assert ours[0] == pytest.approx(theirs[0], rel=1e-6, abs=1e-9)
    assert ours[1] == pytest.approx(theirs[1], rel=1e-6, abs=1e-9)
    assert ours[2] == theirs[2]


def test_with_a_line_search_it_finds_the_bottom_of_a_valley() -> None:
    how = {"line_search_fn": "strong_wolfe", "tolerance_change": 1e-14}
    losses, x, count = walk(flow, valley, 5, **how)
    assert x == pytest.approx([1.0, 1.0], abs=1e-5)
    assert count <= 1.5 * walk(torch, valley, 5, **how)[2]
    assert losses == sorted(losses, reverse=True)


def test_what_cannot_be_is_said() -> None:
    x = flow.nn.Parameter(flow.ones(2))
    with pytest.raises(ArgumentError, match="give step\\(\\) a closure"):
        flow.optim.LBFGS([x]).step()
    with pytest.raises(OptionError, match="strong_wolfe"):
        flow.optim.LBFGS([x], line_search_fn="wolfe")
    with pytest.raises(OptionError, match="per-parameter options"):
        flow.optim.LBFGS([{"params": [x]}, {"params": [flow.nn.Parameter(flow.ones(1))]}])


def test_a_loaded_history_is_the_parameters_own() -> None:
    """Of its dtype, and not the memory of the state that was loaded."""

    def trained(x: flow.nn.Parameter, state: dict[str, Any] | None = None) -> flow.optim.LBFGS:
        optimizer = flow.optim.LBFGS([x], max_iter=3)
        if state is not None:
            optimizer.load_state_dict(state)

        def closure() -> flow.Tensor:
            optimizer.zero_grad()
            loss = (x.square() - 1).square().sum()
            loss.backward()
            return loss

        optimizer.step(closure)
        return optimizer

    start = [2.0, 3.0]
    x = flow.nn.Parameter(flow.tensor(start, dtype=flow.float64))
    state = trained(x).state_dict()
    before = [t.tolist() for t in state["state"][0]["old_dirs"]]
    y = flow.nn.Parameter(x.detach().float())
    found = trained(y, state).state_dict()["state"][0]["old_dirs"]
    assert {t.dtype for t in found} == {flow.float32} and len(found) > len(before)
    assert [t.tolist() for t in state["state"][0]["old_dirs"]] == before
    trained(x, state)
    assert flow.allclose(x.float(), y, atol=1e-3)
