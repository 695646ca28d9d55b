"""Adagrad, RMSprop and Adadelta: steps scaled by past gradients.

`fused`, `foreach`, `capturable` and `contiguous_params` are accepted and ignored: updates are always fused.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from weft.ops.update.optimizer import adadelta_update, adagrad_update, rmsprop_update
from weft.optim.fast_call import fast_call
from weft.optim.optimizer import Bucket, Optimizer
from weft.optim.ranges import below_one, options
from weft.tensor.tensor import Tensor

_adadelta, _adagrad, _rmsprop = fast_call(adadelta_update), fast_call(adagrad_update), fast_call(rmsprop_update)


class Adagrad(Optimizer):
    """Divides by the root of the sum of squared gradients."""

    first_values = {"sum": "initial_accumulator_value"}
    nonnegative = ("lr", "lr_decay", "weight_decay", "eps", "initial_accumulator_value")

    def __init__(
        self, params: Iterable[Any], lr: float = 1e-2, lr_decay: float = 0.0, weight_decay: float = 0.0,
        initial_accumulator_value: float = 0.0, eps: float = 1e-10, *, maximize: bool = False,
        fused: Any = None, foreach: Any = None, contiguous_params: bool = False, differentiable: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(params, options(locals()))

    def is_by_rows(self, group: Mapping[str, Any]) -> bool:
        return not group["weight_decay"]

    def update(self, group: Mapping[str, Any], bucket: Bucket, grads: list[Tensor], lr: Any) -> None:
        _adagrad(
            bucket.params, grads, bucket.states["sum"], bucket.step, lr, group["lr_decay"], group["weight_decay"],
            group["eps"], group["maximize"],
        )  # fmt: skip


class RMSprop(Optimizer):
    """Divides by the root of a running mean square; `centered` subtracts the mean gradient."""

    nonnegative = ("lr", "eps", "weight_decay", "momentum", "alpha")

    def __init__(
        self, params: Iterable[Any], lr: float = 1e-2, alpha: float = 0.99, eps: float = 1e-8,
        weight_decay: float = 0.0, momentum: float = 0.0, centered: bool = False, capturable: bool = False,
        foreach: Any = None, maximize: bool = False, differentiable: bool = False, *, contiguous_params: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(params, options(locals()))

    def states_of(self, group: Mapping[str, Any]) -> tuple[str, ...]:
        return ("square_avg", *["grad_avg"] * bool(group["centered"]), *["momentum_buffer"] * bool(group["momentum"]))

    def counts_steps(self, group: Mapping[str, Any]) -> bool:
        return False

    def update(self, group: Mapping[str, Any], bucket: Bucket, grads: list[Tensor], lr: Any) -> None:
        states = bucket.states
        _rmsprop(
            bucket.params, grads, states["square_avg"], states.get("grad_avg", ()), states.get("momentum_buffer", ()),
            lr, group["alpha"], group["eps"], group["weight_decay"], group["momentum"], group["maximize"],
        )  # fmt: skip


class Adadelta(Optimizer):
    """Scales gradients by the ratio of the running mean squares of steps and gradients."""

    first_values = {"square_avg": 0.0, "acc_delta": 0.0}
    nonnegative = ("lr", "eps", "weight_decay")

    def __init__(
        self, params: Iterable[Any], lr: float = 1.0, rho: float = 0.9, eps: float = 1e-6, weight_decay: float = 0.0, *,
        capturable: bool = False, maximize: bool = False, foreach: Any = None, contiguous_params: bool = False,
        differentiable: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(params, options(locals()))

    def check_options(self, options: Mapping[str, Any]) -> None:
        super().check_options(options)
        below_one(rho=options["rho"])

    def counts_steps(self, group: Mapping[str, Any]) -> bool:
        return False

    def update(self, group: Mapping[str, Any], bucket: Bucket, grads: list[Tensor], lr: Any) -> None:
        states = bucket.states
        _adadelta(
            bucket.params, grads, states["square_avg"], states["acc_delta"], lr, group["rho"], group["eps"],
            group["weight_decay"], group["maximize"],
        )  # fmt: skip
