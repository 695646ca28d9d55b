"""FTRL (follow the regularized leader): `flow.one_embedding.Ftrl`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from weft.ops import ops
from weft.optim.composed import Composed
from weft.optim.ranges import options


class Ftrl(Composed):
    """z += grad - s * p, where s = (new ** lr_power - sum ** lr_power) / lr and `new` is the sum of squared gradients
    by now; p is 0 where |z| <= lambda1, else (sign(z) * lambda1 - z) / ((beta + new ** lr_power) / lr + lambda2).

    As in OneFlow: the exponent is `lr_power` itself, where the papers have -lr_power.
    """

    first_values = {"accumulator_value": "initial_accumulator_value", "z": 0.0}
    nonnegative = ("lr", "weight_decay", "initial_accumulator_value", "lambda1", "lambda2", "beta")

    def __init__(
        self, params: Iterable[Any], lr: float = 1e-3, weight_decay: float = 0.0, lr_power: float = -0.5,
        initial_accumulator_value: float = 0.1, lambda1: float = 0.0, lambda2: float = 0.0, beta: float = 0.0,
    ) -> None:  # fmt: skip
        super().__init__(params, options(locals()) | {"maximize": False})

    def counts_steps(self, group: Mapping[str, Any]) -> bool:
        return False

    def move(self, group: Mapping[str, Any], p: Any, grad: Any, t: Any, lr: Any, **states: Any) -> tuple[Any, ...]:
        before, z = states["accumulator_value"], states["z"]
        after = before + grad * grad
        old, new = ops.pow(before, group["lr_power"]), ops.pow(after, group["lr_power"])
        z = z + grad - (new - old) / lr * p
        moved = (ops.sign(z) * group["lambda1"] - z) / ((new + group["beta"]) / lr + group["lambda2"])
        return ops.where(ops.abs(z) <= group["lambda1"], 0.0, moved), after, z
