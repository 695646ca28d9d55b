"""Optimizers and schedules of a user's own, written as for torch."""

from __future__ import annotations

import importlib
import math
from typing import Any

import pytest
import torch

import weft as flow
from weft.core.errors import OptionError


def own(lib: Any) -> Any:
    class Lion(lib.optim.Optimizer):
        def __init__(self, params: Any, lr: float = 1e-2, betas: Any = (0.9, 0.99)) -> None:
            super().__init__(params, {"lr": lr, "betas": betas})

        @lib.no_grad()
        def step(self, closure: Any = None) -> Any:
            loss = None
            if closure is not None:
                with lib.enable_grad():
                    loss = closure()
            for group in self.param_groups:
                for p in group["params"]:
                    if p.grad is None:
                        continue
                    state = self.state[p]
                    if not state:
                        state["count"], state["mean"], state["rows"] = 0, lib.zeros_like(p), lib.zeros(p.shape[0])
                    state["count"] += 1
                    state["rows"] += p.grad.reshape(p.shape[0], -1).square().sum(1)
                    first, second = group["betas"]
                    p.add_((state["mean"] * first + p.grad * (1 - first)).sign_(), alpha=-group["lr"])
                    state["mean"].mul_(second).add_(p.grad, alpha=1 - second)
            return loss

    class Rise(lib.optim.lr_scheduler._LRScheduler):
        def get_lr(self) -> list[float]:
            assert self._get_lr_called_within_step
            return [base * (self.last_epoch + 1) * self._step_count**-0.5 for base in self.base_lrs]

    return Lion, Rise


def program(lib: Any) -> list[Any]:
    lib.manual_seed(2)
    lion, rise = own(lib)
    model, x = lib.nn.Linear(3, 2), lib.randn(8, 3)
    optimizer = lion([{"params": [model.weight]}, {"params": [model.bias], "lr": 0.1}])
    schedule = rise(optimizer)
    results: list[Any] = []

    def loss() -> Any:
        optimizer.zero_grad()
        value = (model(x) - 1).square().mean()
        value.backward()
        return value

    for _ in range(3):
        results.append(optimizer.step(loss).item())
        schedule.step()
        results.append(schedule.get_last_lr())
    again = lion([{"params": [model.weight]}, {"params": [model.bias], "lr": 0.1}])
    again.load_state_dict(optimizer.state_dict())
    again.step()
    state = again.state[model.weight]
    return [*results, model.weight.tolist(), state["count"], state["rows"].tolist(), state["mean"].tolist()]


def flat(tree: Any) -> list[Any]:
    return [x for part in tree for x in flat(part)] if isinstance(tree, (tuple, list)) else [tree]


def test_the_same_as_torchs() -> None:
    assert flat(program(flow)) == pytest.approx(flat(program(torch)), rel=1e-5)
    assert all(map(math.isfinite, flat(program(flow))))


def counting(lib: Any) -> Any:
    """An optimizer that counts its steps beside its parameters' states: its state after a load, and a step more."""

    class Counting(lib.optim.Optimizer):
        def step(self, closure: Any = None) -> None:
            self.state["steps"] = self.state.get("steps", 0) + 1
            for p in self.param_groups[0]["params"]:
                self.state[p]["count"] = self.state["steps"]

    def made() -> Any:
        return Counting([lib.nn.Parameter(lib.ones(2))], {"lr": 0.1})

    first, again = made(), made()
    first.step()
    first.step()
    again.load_state_dict(first.state_dict())
    again.step()
    return again.state_dict()["state"]


def test_what_an_optimizer_keeps_for_itself_is_saved() -> None:
    assert counting(flow) == counting(torch) == {"steps": 3, 0: {"count": 3}}


def test_one_written_for_oneflow() -> None:
    class Momentum(flow.optim.Optimizer):
        def __init__(self, params: Any, lr: float) -> None:
            super().__init__(params, {"lr": lr})
            for group in self.param_groups:
                for p in group.parameters:  # type: ignore[attr-defined]
                    self._state[p] = {}

        @flow.no_grad()
        def step(self, closure: Any = None) -> None:
            for group in self.param_groups:
                for p in group.parameters:  # type: ignore[attr-defined]
                    m = self._state[p].setdefault("m", flow.zeros_like(p))
                    m += p.grad
                    p.sub_(m * group["lr"])
            self._state["step"] = self._state["step"] + 1

    def made() -> Momentum:
        return Momentum([flow.nn.Parameter(flow.ones(2))], 0.1)

    optimizer, again = made(), made()
    (w,) = optimizer.param_groups[0]["params"]
    w.sum().backward()
    optimizer.step()
    optimizer.step()
    assert w.tolist() == pytest.approx([0.7, 0.7]) and optimizer.state_dict()["state"]["step"] == 2  # OneFlow's answers
    again.load_state_dict(optimizer.state_dict())
    assert again._state["step"] == 2 and list(again._state) == [*again.param_groups[0]["params"], "step"]


def test_an_optimizer_without_a_step_is_told() -> None:
    class Idle(flow.optim.Optimizer):
        pass

    p = flow.nn.Parameter(flow.ones(1))
    p.grad = flow.ones(1)
    with pytest.raises(OptionError, match=r"Idle should have its own step\(\)"):
        Idle([p], {"lr": 0.1}).step()


def test_in_a_graph_a_step_of_ones_own_is_told() -> None:
    class Own(flow.optim.Optimizer):
        def step(self, closure: Any = None) -> None:
            pass

    class Training(flow.nn.Graph):
        def __init__(self) -> None:
            super().__init__()
            self.model = flow.nn.Linear(2, 1)
            self.add_optimizer(Own(self.model.parameters(), {"lr": 0.1}))

        def build(self, x: Any) -> None:
            self.model(x).sum().backward()

    with pytest.raises(OptionError, match=r"Own.step\(\) runs eagerly"):
        Training()(flow.ones(1, 2))


@pytest.mark.parametrize("lib", [torch, flow], ids=["torch", "weft"])
def test_an_option_that_each_group_must_give(lib: Any) -> None:
    """Programs' optimizers write `lr=required`, as torch's own did."""
    required = importlib.import_module(f"{lib.__name__}.optim.optimizer").required

    class Descent(lib.optim.Optimizer):
        def __init__(self, params: Any, lr: Any = required, momentum: float = 0.0) -> None:
            super().__init__(params, {"lr": lr, "momentum": momentum})

    w, b = (lib.nn.Parameter(lib.ones(2)) for _ in range(2))
    rates = [g["lr"] for g in Descent([{"params": [w], "lr": 0.2}, {"params": [b], "lr": 0.1}]).param_groups]
    assert rates == [0.2, 0.1]
    assert Descent([w], lr=0.3).param_groups[0]["lr"] == 0.3
    with pytest.raises(ValueError, match="didn't specify a value of required optimization parameter lr"):
        Descent([{"params": [w], "lr": 0.2}, {"params": [b]}])


@pytest.mark.parametrize("lib", [torch, flow], ids=["torch", "weft"])
def test_options_of_ones_own_may_be_anything(lib: Any) -> None:
    """Adafactor's `eps` is a pair in transformers and fairseq; a negative rate ascends."""

    class Own(lib.optim.Optimizer):
        def __init__(self, params: Any, **options: Any) -> None:
            super().__init__(params, options)

    given = {"lr": -0.1, "eps": (1e-30, 1e-3), "momentum": [0.9, 0.99], "weight_decay": {"bias": 0.0}}
    (group,) = Own([lib.nn.Parameter(lib.ones(2))], **given).param_groups
    assert {name: group[name] for name in given} == given


@pytest.mark.parametrize("name", ["SGD", "Adadelta", "Adagrad", "RMSprop", "Adam", "NAdam", "ASGD", "Rprop"])
def test_a_negative_rate_of_a_known_optimizer_is_refused(name: str) -> None:
    for lib in (torch, flow):
        with pytest.raises(ValueError, match=r"Invalid learning rate: -0\.1"):
            getattr(lib.optim, name)([lib.nn.Parameter(lib.ones(2))], lr=-0.1)
