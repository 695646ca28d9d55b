"""What OneFlow 0.9's optimizers saved after three steps, and where its next two steps led."""

from __future__ import annotations

from typing import Any

import pytest

import weft as flow

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
