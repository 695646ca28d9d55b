"""What OneFlow 0.9's optimizers and schedules saved after some steps, and where its next steps led."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

import weft as flow
from weft.core.errors import CheckpointError

SAVED: list[tuple[str, dict[str, Any], list[float], dict[str, list[float]], dict[str, Any], list[float]]] = [
    ("SGD", {"momentum": 0.9}, [-0.116327, -27.3044], {"momentum_buf": [3.99327, 199.524]},
     {"momentum": 0.9, "nesterov": False, "fused": False}, [-0.474933, -3547.42]),
    ("Adam", {}, [0.704152, -2.3005], {"exp_avg": [0.654223, 3.61488], "exp_avg_sq": [0.0185873, 0.529446]},
     {"bias_correction1": 0.271, "bias_correction2": 0.002997001, "do_bias_correction": True, "amsgrad": False},
     [0.611462, -2.40134]),
    ("AdamW", {}, [0.678089, -2.23807], {"exp_avg": [0.640496, 3.53894], "exp_avg_sq": [0.0179949, 0.507664]},
     {"weight_decay": 0.1}, [0.579969, -2.31627]),
    ("LAMB", {}, [0.515237, -2.50125], {"exp_avg": [0.573124, 3.84966], "exp_avg_sq": [0.0154238, 0.601224]},
     {"adam_w_mode": True}, [0.350335, -2.70139]),
    ("Adagrad", {}, [0.802512, -2.21895], {"sum": [19.4454, 517.618]}, {"lr_decay": 0.1}, [0.774215, -2.25722]),
    ("RMSprop", {"centered": True}, [-0.00508993, -4.78209],
     {"square_avg": [0.0882089, 30.1054], "grad_avg": [0.0294045, 0.848718]}, {"eps": 0.0}, [-0.00511649, -5.52507]),
    ("Adadelta", {}, [0.99903, -2.00097],
     {"square_avgs": [2.43567, 39.0507], "acc_deltas": [2.84479e-06, 2.84795e-06]}, {"rho": 0.9}, [0.998694, -2.00131]),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "given", "before", "state", "options", "after"), SAVED, ids=[s[0] for s in SAVED])
def test_an_optimizer_goes_on_where_oneflows_was(
    kind: str, given: Any, before: Any, state: Any, options: Any, after: Any
) -> None:
    w = flow.nn.Parameter(flow.tensor(before))
    optimizer = getattr(flow.optim, kind)([w], lr=9.0, **given)
    group = {"_options": {"lr": 0.05, **options}, "_enable_clip_grad": False, "params": [0]}
    tensors = {name: flow.tensor(values) for name, values in state.items()}
    optimizer.load_state_dict({"state": {"step": 3, 0: tensors}, "param_groups": [group]})
    for _ in range(2):
        optimizer.zero_grad()
        (w * w * w).sum().backward()
        optimizer.step()
    assert w.tolist() == pytest.approx(after, rel=2e-4)
    assert optimizer.param_groups[0]["lr"] == 0.05 and not any(k.startswith("_") for k in optimizer.param_groups[0])


def test_what_oneflow_saved_before_the_first_step() -> None:
    w = flow.nn.Parameter(flow.ones(2))
    optimizer = flow.optim.SGD([w], lr=9.0)
    group = {"_options": {"lr": 0.5, "initial_lr": 1.0}, "_enable_clip_grad": False, "params": [0]}
    optimizer.load_state_dict({"state": {"step": 0, 0: {}}, "param_groups": [group]})
    w.sum().backward()
    optimizer.step()
    assert w.tolist() == [0.5, 0.5] and optimizer.param_groups[0]["initial_lr"] == 1.0


def test_a_state_may_have_no_count_and_no_groups() -> None:
    w = flow.nn.Parameter(flow.ones(2))
    optimizer = flow.optim.Adam([w], lr=9.0)
    optimizer.load_state_dict({"state": {}, "param_groups": [{"_options": {"lr": 0.5}, "params": [0]}]})
    assert optimizer.param_groups[0]["lr"] == 0.5
    with pytest.raises(CheckpointError, match="different number of parameter groups"):
        optimizer.load_state_dict({"state": {}, "param_groups": []})


L = flow.optim.lr_scheduler
AT = {"last_step": 4, "verbose": False, "base_lrs": [0.1]}


def part(step: int, **options: Any) -> dict[str, Any]:
    return {**AT, "last_step": step, "_last_lr": [0.1], **options}


CONSTANT = {"milestones": [3], "interval_rescaling": [True]}
SCHEDULES: dict[str, tuple[Callable[[Any], Any], float, dict[str, Any], list[float]]] = {
    "WarmUpLR": (
        lambda o: L.WarmUpLR(L.CosineDecayLR(o, 10, 0.1), 0.1, 6, "linear"), 0.0307295,
        {"warmup_factor": 0.1, "warmup_iters": 6, "warmup_method": "linear", "warmup_prefix": False,
         "milestones": [6], "interval_rescaling": [False],
         "schedulers": [part(4, start_factor=0.1, end_factor=0.410942, total_iters=6),
                        part(0, decay_steps=10, alpha=0.1)]}, [0.0359119, 0.0410942, 0.0285497]),
    "WarmUpLR before": (
        lambda o: L.WarmUpLR(L.StepLR(o, 2, 0.5), 0.1, 3, "linear", True), 0.1,
        {"warmup_factor": 0.1, "warmup_iters": 3, "warmup_method": "linear", "warmup_prefix": True, **CONSTANT,
         "schedulers": [part(2, start_factor=0.1, end_factor=1.0, total_iters=3),
                        part(1, step_size=2, gamma=0.5)]}, [0.05, 0.05, 0.025]),
    "LambdaLR": (
        lambda o: L.LambdaLR(o, lambda e: 0.9**e), 0.06561, {"lr_lambdas": [None]}, [0.059049, 0.0531441, 0.0478297]),
    "PolynomialLR": (
        lambda o: L.PolynomialLR(o, 10, end_learning_rate=0.001), 0.0604,
        {"max_decay_steps": 10, "end_learning_rate": 0.001, "power": 1.0, "cycle": False}, [0.0505, 0.0406, 0.0307]),
    "ReduceLROnPlateau": (
        lambda o: L.ReduceLROnPlateau(o, patience=1, factor=0.5), 0.05,
        {"factor": 0.5, "min_lrs": [0], "patience": 1, "cooldown": 0, "cooldown_counter": 0, "mode": "min",
         "threshold": 1e-4, "threshold_mode": "rel", "best": 1.0, "num_bad_steps": 1, "mode_worse": math.inf,
         "eps": 1e-8}, [0.025, 0.025, 0.0125]),
    "ChainedScheduler": (
        lambda o: L.ChainedScheduler([L.ConstantLR(o, 0.1, 5), L.ExponentialLR(o, 0.9)]), 0.006561,
        {"schedulers": [part(4, factor=0.1, total_iters=5), part(4, gamma=0.9)]}, [0.059049, 0.0531441, 0.0478297]),
    "SequentialLR": (
        lambda o: L.SequentialLR(o, [L.ConstantLR(o, 0.5, 2), L.StepLR(o, 2)], [3]), 0.1,
        {**CONSTANT, "schedulers": [part(2, factor=0.5, total_iters=2), part(1, step_size=2, gamma=0.1)]},
        [0.01, 0.01, 0.001]),
}  # fmt: skip


@pytest.mark.parametrize("name", SCHEDULES)
def test_a_schedule_goes_on_where_oneflows_was(name: str) -> None:
    make, rate, state, after = SCHEDULES[name]
    optimizer = flow.optim.SGD([flow.nn.Parameter(flow.ones(1))], lr=0.1)
    schedule = make(optimizer)
    optimizer.param_groups[0]["lr"] = rate  # as the optimizer's state has it
    schedule.load_state_dict({**AT, "_last_lr": [rate], **state})
    rates = []
    for _ in after:
        schedule.step(*[1.0] * (name == "ReduceLROnPlateau"))
        rates.append(optimizer.param_groups[0]["lr"])
    assert rates == pytest.approx(after, rel=1e-4)
