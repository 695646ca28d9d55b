"""Adam and AdamW."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from weft.ops.update.optimizer import adam_update, adamw_update
from weft.optim.fast_call import fast_call
from weft.optim.optimizer import Bucket, Optimizer
from weft.optim.ranges import at_least_zero, check_betas, options
from weft.tensor.tensor import Tensor

_coupled, _decoupled = fast_call(adam_update), fast_call(adamw_update)


class Adam(Optimizer):
    """Adam: steps along the gradient's running mean divided by the root of its running mean square; weight decay is
    added to the gradient, or applied to the parameters directly, if decoupled.

    `fused`, `foreach`, `capturable` and `contiguous_params` are accepted and ignored: it is always fused.
    """

    rate_on_device = True

    def __init__(
        self, params: Iterable[Any], lr: float = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
        weight_decay: float = 0.0, amsgrad: bool = False, do_bias_correction: bool = True, fused: Any = None, *,
        maximize: bool = False, foreach: Any = None, capturable: bool = False, contiguous_params: bool = False,
        differentiable: bool = False, decoupled_weight_decay: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(params, options(locals()))

    def check_options(self, options: Mapping[str, Any]) -> None:
        at_least_zero(options, "lr", "eps", "weight_decay")
        check_betas(options["betas"])

    def states_of(self, group: Mapping[str, Any]) -> tuple[str, ...]:
        return ("exp_avg", "exp_avg_sq", "max_exp_avg_sq") if group["amsgrad"] else ("exp_avg", "exp_avg_sq")

    def update(self, group: Mapping[str, Any], bucket: Bucket, grads: list[Tensor], lr: Any) -> None:
        states, (beta1, beta2) = bucket.states, group["betas"]
        (_decoupled if group["decoupled_weight_decay"] else _coupled)(
            bucket.params, grads, states["exp_avg"], states["exp_avg_sq"], states.get("max_exp_avg_sq", ()),
            bucket.step, lr, beta1, beta2, group["eps"], group["weight_decay"], group["maximize"],
            group["do_bias_correction"],
        )  # fmt: skip


class AdamW(Adam):
    """Adam with decoupled weight decay."""

    def __init__(
        self, params: Iterable[Any], lr: float = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
        weight_decay: float = 1e-2, amsgrad: bool = False, do_bias_correction: bool = True, fused: Any = None, *,
        maximize: bool = False, foreach: Any = None, capturable: bool = False, contiguous_params: bool = False,
        differentiable: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(params, **options(locals()), decoupled_weight_decay=True)

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        super().load_state_dict(state_dict)
        for group in self.param_groups:
            group["decoupled_weight_decay"] = True  # also if Adam's state is loaded
