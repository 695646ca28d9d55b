"""What OneFlow's graphs saved, in the form of Weft's: their optimizers' states stand beside the modules, by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import torch

from weft.core.errors import GraphError
from weft.nn.module.module import Module
from weft.optim import Optimizer
from weft.optim.lr_scheduler import LRScheduler
from weft.tensor.tensor import of_torch

STEPS: Final = "System-Train-TrainStep"  # the number of training steps
SLOTS: Final = {
    "momentum": "momentum_buffer", "m": "exp_avg", "v": "exp_avg_sq", "max_v": "max_exp_avg_sq", "sum": "sum",
    "mean_square": "square_avg", "mean_gradient": "grad_avg", "square_avgs": "square_avg", "acc_deltas": "acc_delta",
}  # fmt: skip


def training_of(
    state: Mapping[str, Any], modules: Mapping[str, Module], parts: Sequence[Any]
) -> tuple[dict[str, Any], list[Any]]:
    """The state without the optimizers' (`linear.weight-momentum`), and the states of these optimizers and schedules
    that they and the number of steps make; none if there is no such name, unless no optimizer here has states."""
    params = {f"{name}.{n}": p for name, m in modules.items() for n, p in m.named_parameters(remove_duplicate=False)}
    named = {k: k.rpartition("-") for k in state}
    slots = {k: (params[path], SLOTS[slot]) for k, (path, _, slot) in named.items() if path in params and slot in SLOTS}
    optimizers = [part for part in parts if isinstance(part, Optimizer)]
    kept = {id(o): {slot for group in o.param_groups for slot in o.states_of(group)} for o in optimizers}
    if STEPS not in state or not (slots or (optimizers and not any(kept.values()))):
        return dict(state), []
    steps = int(state[STEPS])
    for part in parts:
        if isinstance(part, LRScheduler):
            if part.last_epoch:
                raise GraphError(
                    "load_state_dict: load what OneFlow saved into a new graph; this one's rates have moved"
                )
            counted = part.optimizer.counted
            for _ in range(steps):
                counted.step()
    trained, step = [part.state_dict() for part in parts], of_torch(torch.tensor(float(steps)))
    for part, its in zip(parts, trained, strict=True):
        if isinstance(part, Optimizer):
            groups = zip(its["param_groups"], part.param_groups, strict=True)
            numbers = {id(p): n for theirs, own in groups for n, p in zip(theirs["params"], own["params"], strict=True)}
            its["state"] = {n: {"step": step} for n in numbers.values()}
            for key, (p, slot) in slots.items():
                if id(p) in numbers:
                    if slot not in kept[id(part)]:
                        raise GraphError(
                            f"load_state_dict: {key!r} isn't a state of {type(part).__name__}, as it is here"
                        )
                    its["state"][numbers[id(p)]][slot] = state[key]
    return {k: v for k, v in state.items() if k not in slots}, trained
