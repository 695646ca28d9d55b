"""Schedules against torch's, over more steps than they have phases."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pytest
import torch
from torch.optim import lr_scheduler as theirs

import weft as flow
from weft.core.errors import OptionError
from weft.optim import lr_scheduler as ours

ROWS: list[tuple[str, dict[str, Any]]] = [
    ("StepLR", {"step_size": 3}),
    ("MultiStepLR", {"milestones": [2, 5, 5, 9], "gamma": 0.5}),
    ("ExponentialLR", {"gamma": 0.9}),
    ("ConstantLR", {"factor": 0.5, "total_iters": 4}),
    ("LinearLR", {"start_factor": 0.2, "end_factor": 0.8, "total_iters": 6}),
    ("LambdaLR", {"lr_lambda": lambda t: 1 / (1 + t)}),
    ("MultiplicativeLR", {"lr_lambda": lambda t: 0.95}),
    ("CosineAnnealingLR", {"T_max": 4, "eta_min": 0.01}),
    ("CosineAnnealingWarmRestarts", {"T_0": 3, "T_mult": 2, "eta_min": 0.01}),
    ("CosineAnnealingWarmRestarts", {"T_0": 4}),
    ("PolynomialLR", {"total_iters": 6, "power": 2.0}),
    ("CyclicLR", {"base_lr": 0.1, "max_lr": 0.5, "step_size_up": 3, "cycle_momentum": False}),
    ("CyclicLR", {"base_lr": 0.1, "max_lr": 0.5, "step_size_up": 2, "step_size_down": 4, "mode": "triangular2"}),
    ("CyclicLR", {"base_lr": 0.1, "max_lr": 0.5, "step_size_up": 4, "mode": "exp_range", "gamma": 0.9}),
    ("OneCycleLR", {"max_lr": 0.5, "total_steps": 14}),
    ("OneCycleLR", {"max_lr": 0.5, "total_steps": 14, "three_phase": True, "anneal_strategy": "linear"}),
]


def optimizers() -> tuple[torch.optim.Optimizer, flow.optim.Optimizer]:
    options: dict[str, Any] = {"lr": 0.3, "momentum": 0.9}
    a, b = torch.nn.Parameter(torch.ones(1)), torch.nn.Parameter(torch.ones(1))
    x, y = flow.nn.Parameter(flow.ones(1)), flow.nn.Parameter(flow.ones(1))
    return (
        torch.optim.SGD([{"params": [a]}, {"params": [b], "lr": 0.1}], **options),
        flow.optim.SGD([{"params": [x]}, {"params": [y], "lr": 0.1}], **options),
    )


def rates(optimizer: Any, scheduler: Any, steps: int) -> list[list[float]]:
    seen = []
    for _ in range(steps):
        seen.append([g["lr"] for g in optimizer.param_groups] + [g["momentum"] for g in optimizer.param_groups])
        optimizer.step()
        scheduler.step()
    return seen


@pytest.mark.parametrize("row", ROWS, ids=lambda r: r[0])
def test_a_schedule_is_torchs(row: tuple[str, dict[str, Any]]) -> None:
    name, options = row
    a, b = optimizers()
    expected = rates(a, getattr(theirs, name)(a, **options), 14)
    got = rates(b, getattr(ours, name)(b, **options), 14)
    assert got == [pytest.approx(e, rel=1e-12) for e in expected]


@pytest.mark.parametrize("row", ROWS, ids=lambda r: r[0])
def test_a_schedule_goes_on_where_it_was_saved(row: tuple[str, dict[str, Any]]) -> None:
    name, options = row
    _, a = optimizers()
    whole = getattr(ours, name)(a, **options)
    rates(a, whole, 5)
    state, groups = whole.state_dict(), a.state_dict()
    _, b = optimizers()
    again = getattr(ours, name)(b, **options)
    b.load_state_dict(groups)
    again.load_state_dict(state)
    assert rates(b, again, 6) == rates(a, whole, 6)


@pytest.mark.filterwarnings("ignore:The epoch parameter")
@pytest.mark.parametrize("row", ROWS, ids=lambda r: r[0])
def test_a_schedule_is_torchs_where_it_begins_later_or_is_told_the_step(row: tuple[str, dict[str, Any]]) -> None:
    name, options = row
    found: list[list[list[float]]] = []
    for optimizer, module in zip(optimizers(), (theirs, ours), strict=True):
        first = getattr(module, name)(optimizer, **options)
        rates(optimizer, first, 4)
        seen = rates(optimizer, getattr(module, name)(optimizer, **options, last_epoch=first.last_epoch), 3)
        optimizer.step()
        first.step(5)
        found.append([*seen, first.get_last_lr()])
    assert found[1] == [pytest.approx(e, rel=1e-12) for e in found[0]]


def test_a_state_of_torchs_is_taken() -> None:
    a, b = optimizers()
    for name, options in ROWS:
        if name in ("CosineAnnealingWarmRestarts", "LambdaLR", "MultiplicativeLR"):  # the first has more state here
            continue
        kept, taken = getattr(theirs, name)(a, **options), getattr(ours, name)(b, **options)
        kept.last_epoch = 5
        taken.load_state_dict({k: v for k, v in kept.state_dict().items() if not callable(v)})
        assert taken.last_epoch == 5


def test_one_after_another() -> None:
    def make(module: Any, optimizer: Any) -> Any:
        parts = [
            module.LinearLR(optimizer, 0.1, total_iters=4),
            module.ExponentialLR(optimizer, 0.9),
            module.CosineAnnealingLR(optimizer, 5),
        ]
        return module.SequentialLR(optimizer, parts, [4, 8])

    a, b = optimizers()
    expected, got = rates(a, make(theirs, a), 14), rates(b, make(ours, b), 14)
    assert got == [pytest.approx(e) for e in expected]


def test_several_at_once() -> None:
    def make(module: Any, optimizer: Any) -> Any:
        return module.ChainedScheduler(
            [module.ConstantLR(optimizer, 0.1, total_iters=3), module.ExponentialLR(optimizer, 0.9)]
        )

    a, b = optimizers()
    expected, got = rates(a, make(theirs, a), 8), rates(b, make(ours, b), 8)
    assert got == [pytest.approx(e) for e in expected]


def test_on_a_plateau() -> None:
    a, b = optimizers()
    x = theirs.ReduceLROnPlateau(a, patience=1, cooldown=1, factor=0.5)
    y = ours.ReduceLROnPlateau(b, patience=1, cooldown=1, factor=0.5)
    for loss in (3.0, 2.0, 2.0, 2.0, 2.0, 1.9, 1.9, 1.9, 1.9, 1.9):
        x.step(loss)
        y.step(flow.tensor(loss))
        assert [g["lr"] for g in b.param_groups] == [g["lr"] for g in a.param_groups]


def test_oneflows_own() -> None:
    """Formulas as OneFlow documents them."""
    _, b = optimizers()
    got = [r[0] for r in rates(b, ours.CosineDecayLR(b, 4, alpha=0.1), 6)]
    expected = [0.3 * (0.9 * 0.5 * (1 + math.cos(math.pi * min(t, 4) / 4)) + 0.1) for t in range(6)]
    assert got == pytest.approx(expected)
    _, b = optimizers()
    got = [r[0] for r in rates(b, ours.PolynomialLR(b, decay_batch=4, end_learning_rate=0.1), 6)]
    assert got == pytest.approx([0.3, 0.25, 0.2, 0.15, 0.1, 0.1])
    _, b = optimizers()
    assert got == pytest.approx([r[0] for r in rates(b, ours.PolynomialLR(b, 4, end_learning_rate=0.1), 6)])
    _, b = optimizers()
    got = [r[0] for r in rates(b, ours.PolynomialLR(b, steps=2, end_learning_rate=0.1, cycle=True), 5)]
    assert got == pytest.approx([0.2, 0.2, 0.1, 0.15, 0.1])  # the first step is made twice, as there
    _, b = optimizers()
    assert got == pytest.approx([r[0] for r in rates(b, ours.PolynomialLR(b, 2, 0.1, 1.0, True), 5)])
    _, b = optimizers()
    got = [r[0] for r in rates(b, ours.WarmUpLR(b, 0.5, 4), 6)]
    assert got == pytest.approx([0.15, 0.1875, 0.225, 0.2625, 0.3, 0.3])
    _, b = optimizers()
    warm = ours.WarmUpLR(ours.StepLR(b, 3, 0.1), 0.5, 2, "constant")
    assert [r[0] for r in rates(b, warm, 7)] == pytest.approx([0.15, 0.15, 0.3, 0.03, 0.03, 0.03, 0.003])
    _, b = optimizers()
    warm = ours.WarmUpLR(ours.ExponentialLR(b, 0.5), 0.5, 2, warmup_prefix=True)
    assert [r[0] for r in rates(b, warm, 5)] == pytest.approx([0.15, 0.225, 0.3, 0.15, 0.075])


@pytest.mark.parametrize(
    "make",
    [
        lambda o: ours.StepLR(o, 0),
        lambda o: ours.ConstantLR(o, 2.0),
        lambda o: ours.OneCycleLR(o, 0.1),
        lambda o: ours.SequentialLR(o, [ours.ExponentialLR(o, 0.9)], [3]),
        lambda o: ours.WarmUpLR(o, warmup_method="slow"),
        lambda o: ours.PolynomialLR(o, decay_batch=0),
        lambda o: ours.LambdaLR(o, [lambda t: 1.0]),
        lambda o: ours.StepLR(None, 3),  # type: ignore[arg-type]
    ],
)
def test_a_schedule_refuses_what_it_cannot_be(make: Any) -> None:
    with pytest.raises(flow.errors.OptionError):
        make(optimizers()[1])


def test_a_schedule_without_rates_cannot_be_made() -> None:
    class Unfinished(flow.optim.lr_scheduler.LRScheduler):
        pass

    with pytest.raises(TypeError, match="get_lr"):
        Unfinished(flow.optim.SGD([flow.nn.Parameter(flow.ones(1))], lr=0.1))  # type: ignore[abstract]


def test_a_schedule_begins_under_either_name_and_tells_of_itself_if_asked(capsys: pytest.CaptureFixture[str]) -> None:
    optimizer = optimizers()[1]
    ours.StepLR(optimizer, 3)
    assert not capsys.readouterr().out

    schedule = ours.StepLR(optimizer, 3, last_step=1, verbose=True)
    assert schedule.last_step == schedule.last_epoch == 2
    assert "StepLR" in capsys.readouterr().out

    class Halved(ours.LRScheduler):
        def __init__(self, optimizer: flow.optim.Optimizer, last_epoch: int = -1, verbose: bool = False) -> None:
            super().__init__(optimizer, last_epoch, verbose)

        def get_lr(self) -> list[float]:
            return [rate / 2 for rate in self.base_lrs]

    assert Halved(optimizers()[1], verbose=True).get_last_lr() == [0.15, 0.05]
    assert "0.15" in capsys.readouterr().out


@pytest.mark.parametrize(("name", "own"), [
    ("StepLR", (2, 0.5)), ("MultiStepLR", ([2, 4], 0.5)), ("ExponentialLR", (0.5,)), ("CosineAnnealingLR", (5, 0.1)),
    ("CosineDecayLR", (5, 0.1)), ("LambdaLR", (lambda step: 1 / (step + 1),)), ("ConstantLR", (0.5, 3)),
    ("LinearLR", (0.0, 1.0, 3)), ("LinearLR", (0.5, 1.0, 3)), ("PolynomialLR", (5,)), ("WarmUpLR", (0.5, 3)),
    ("CosineAnnealingWarmRestarts", (3,)),
])  # fmt: skip
def test_a_subclass_passes_on_oneflows_arguments(
    name: str, own: tuple[Any, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    kind = getattr(ours, name)

    class Mine(kind):
        def __init__(self, optimizer: Any, last_step: int = -1, verbose: bool = False) -> None:
            super().__init__(optimizer, *own, last_step=last_step, verbose=verbose)

    class Placed(kind):
        def __init__(self, optimizer: Any) -> None:
            super().__init__(optimizer, *own, -1, True)

    expected = steps_of(kind(one(), *own), 6)
    assert steps_of(Mine(one()), 6) == expected and not capsys.readouterr().out
    assert steps_of(Mine(one(), verbose=True), 6) == expected and "Mine" in capsys.readouterr().out
    if name not in (
        "PolynomialLR",
        "WarmUpLR",
        "CosineAnnealingWarmRestarts",
    ):  # of which not all that precedes is given
        assert steps_of(Placed(one()), 6) == expected and "Placed" in capsys.readouterr().out


@pytest.mark.parametrize(("name", "own", "expected"), [
    ("StepLR", (2, 0.5), [2, 2, 1, 1, 0.5, 0.5]), ("MultiStepLR", ([2, 4], 0.5), [2, 2, 1, 1, 0.5, 0.5]),
    ("ExponentialLR", (0.5,), [2, 1, 0.5, 0.25, 0.125, 0.0625]), ("ConstantLR", (0.5, 3), [1, 1, 1, 2, 2, 2]),
    ("CosineAnnealingLR", (5, 0.1), [2, 1.8186, 1.3436, 0.7564, 0.2814, 0.1]),
    ("CosineDecayLR", (5, 0.1), [2, 1.8281, 1.3781, 0.8219, 0.3719, 0.2]),
    ("LinearLR", (0.5, 1.0, 3), [1, 1.3333, 1.6667, 2, 2, 2]),
    ("PolynomialLR", (5, 0.1, 1.0, False), [2, 1.62, 1.24, 0.86, 0.48, 0.1]),
])  # fmt: skip
def test_a_schedule_tells_the_rate_of_a_group_at_a_step(name: str, own: tuple[Any, ...], expected: list[float]) -> None:
    """Figures of OneFlow 0.9."""
    kind = getattr(ours, name)

    class Twice(kind):
        def get_lr(self, base_lr: float, step: int) -> float:
            return 2 * super().get_lr(base_lr, step)

    schedule = kind(one(), *own)
    assert [schedule.get_lr(2.0, step) for step in range(6)] == pytest.approx(expected, abs=1e-4)
    assert steps_of(Twice(one(), *own), 6) == pytest.approx([2 * schedule.get_lr(1.0, step) for step in range(6)])


def test_restarts_from_lower_and_lower_until_there_are_no_more() -> None:
    options: dict[str, Any] = {"eta_min": 0.25, "decay_rate": 0.5, "restart_limit": 2}
    optimizer = flow.optim.SGD([flow.nn.Parameter(flow.ones(1))], lr=1.0)
    schedule = ours.CosineAnnealingWarmRestarts(optimizer, 2, **options)
    seen = []
    for _ in range(6):
        seen += schedule.get_last_lr()
        schedule.step()
    assert seen == pytest.approx([1.0, 0.625, 0.5, 0.375, 0.25, 0.25])  # OneFlow 0.9's figures


def test_the_parts_of_a_sequence_begin_at_their_own_zero_or_go_on_at_the_common_step() -> None:
    def rates(*given: Any, **named: Any) -> list[float]:
        o = flow.optim.SGD([flow.zeros(1, requires_grad=True)], lr=1.0)
        decay = lib.PolynomialLR(o, decay_batch=10, end_learning_rate=0, power=2.0)
        parts = [lib.LinearLR(o, 0, 1, 4), decay, lib.StepLR(o, 2, 0.5)]
        return steps_of(lib.SequentialLR(o, parts, [3, 6], *given, **named), 9)

    lib = flow.optim.lr_scheduler
    own = [0.0, 0.25, 0.5, 1.0, 0.81, 0.64, 1.0, 1.0, 0.5]
    assert rates() == rates(True) == rates([True, True]) == rates(interval_rescaling=True) == pytest.approx(own)
    common = [0.0, 0.25, 0.5, 0.49, 0.36, 0.25]  # OneFlow 0.9's figures
    assert rates(False) == pytest.approx([*common, 0.125, 0.125, 0.0625])
    assert rates([False, True]) == rates(interval_rescaling=(False, True)) == pytest.approx([*common, *own[6:]])
    for wrong in ([True], [1, 0], "no"):
        with pytest.raises(OptionError, match="one for each of the 2 milestones"):
            rates(interval_rescaling=wrong)


def one() -> flow.optim.Optimizer:
    """Of one group, whose rate is 1."""
    return flow.optim.SGD([flow.nn.Parameter(flow.ones(1))], lr=1.0)


def steps_of(schedule: Any, count: int) -> list[float]:
    """The rates of the first group, of count steps."""
    found = []
    for _ in range(count):
        found.append(schedule.optimizer.param_groups[0]["lr"])
        schedule.step()
    return found


def test_a_factor_of_zero_gives_oneflows_rates_also_in_a_sequence() -> None:
    """Figures of OneFlow 0.9."""
    o = one()
    assert steps_of(ours.LinearLR(o, 0.0, 1.0, 4), 6) == [0, 0.25, 0.5, 0.75, 1, 1]
    assert steps_of(ours.LinearLR(one(), 0, 0.5, 0), 3) == [0.5, 0.5, 0.5]
    assert steps_of(ours.LinearLR(one(), 0, 0.0, 2), 4) == [0, 0, 0, 0]
    assert steps_of(ours.ConstantLR(one(), 0.0, 3), 5) == [0, 0, 0, 1, 1]
    o = one()
    parts = [ours.LinearLR(o, 0.0, 1.0, 2), ours.ConstantLR(o, 0.0, 2)]
    assert steps_of(ours.SequentialLR(o, parts, [3]), 7) == [0, 0.5, 1, 0, 0, 1, 1]
    o = one()
    parts = [ours.ConstantLR(o, 0.0, 2), ours.LinearLR(o, 0.0, 1.0, 2)]
    assert steps_of(ours.SequentialLR(o, parts, [3]), 7) == [0, 0, 1, 0, 0.5, 1, 1]
    for factors in ((0.0, 1.5), (-0.5, 1.0)):
        with pytest.raises(OptionError, match="multiplicative factor"):
            ours.LinearLR(one(), *factors)


class Power(ours.LRScheduler):
    """Written for OneFlow: the rate of one group."""

    def __init__(self, optimizer: flow.optim.Optimizer, gamma: float, last_step: int = -1, verbose: bool = False):
        self.gamma = gamma
        super().__init__(optimizer, last_step=last_step, verbose=verbose)

    def get_lr(self, base_lr: float, step: int) -> float:  # type: ignore[override]
        return base_lr * self.gamma**step


class Doubled(Power):
    def get_lr(self, base_lr: float, step: int) -> float:  # type: ignore[override]
        return 2 * super().get_lr(base_lr, step=step)


class Telling(Power):
    def update_lrs(self, rates: Sequence[float]) -> None:
        self._last_lr = list(rates)
        for i, (group, lr) in enumerate(zip(self.optimizer.param_groups, rates, strict=True)):
            group["lr"] = lr
            self.print_lr(i, lr)


class Stepping(ours.LRScheduler):
    def step(self, epoch: int | None = None) -> None:
        self.last_step += 1
        self.update_lrs([base / (1 + self.last_step) for base in self.base_lrs])


def test_a_schedule_written_for_oneflow(capsys: pytest.CaptureFixture[str]) -> None:
    _, optimizer = optimizers()
    schedule = Power(optimizer, 0.5)
    assert rates(optimizer, schedule, 3) == [[0.3, 0.1, 0.9, 0.9], [0.15, 0.05, 0.9, 0.9], [0.075, 0.025, 0.9, 0.9]]
    assert schedule.get_lr(8.0, 2) == 2.0
    assert steps_of(Doubled(optimizers()[1], 0.5), 2) == [0.6, 0.3]
    assert steps_of(Telling(optimizers()[1], 0.5), 2) == [0.3, 0.15] and "0.15" in capsys.readouterr().out
    assert steps_of(Stepping(optimizers()[1]), 3) == pytest.approx([0.3, 0.15, 0.1])

    _, o = optimizers()
    one_after_another = ours.SequentialLR(o, [Power(o, 0.5), Doubled(o, 0.25)], [2])
    assert steps_of(one_after_another, 4) == pytest.approx([0.3, 0.15, 0.6, 0.15])
    _, o = optimizers()
    assert steps_of(ours.WarmUpLR(Power(o, 0.5), 0.0, 2), 4) == pytest.approx([0, 0.0375, 0.075, 0.0375])

    again = Power(optimizers()[1], 0.5)
    state = {k: v for k, v in schedule.state_dict().items() if k != "last_epoch"}
    again.load_state_dict({**state, "last_step": 3})  # as OneFlow keeps it
    assert again.last_epoch == 3
    again.step()
    assert again.get_last_lr() == [0.3 / 16, 0.1 / 16]
