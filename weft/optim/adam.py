"""Adam, and AdamW, whose weight decay touches the parameters alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from weft.core.errors import OptionError
from weft.ops.optimizer import adam_update, adamw_update
from weft.optim.optimizer import Bucket, Optimizer, at_least_zero, below_one
from weft.optim.short import short
from weft.tensor.tensor import Tensor


class _Adam(Optimizer):
    """What both share. `fused`, `foreach`, `capturable` and `contiguous_params` are accepted: it is always fused."""

    op: Any

    def __init__(
        self, params: Iterable[Any], lr: float, betas: tuple[float, float], eps: float, weight_decay: float,
        amsgrad: bool, maximize: bool, do_bias_correction: bool,
    ) -> None:  # fmt: skip
        super().__init__(
            params,
            {
                "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "amsgrad": amsgrad,
                "maximize": maximize, "do_bias_correction": do_bias_correction,
            },
        )  # fmt: skip

    def check_options(self, options: Mapping[str, Any]) -> None:
        at_least_zero(options, "lr", "eps", "weight_decay")
        check_betas(options)

    def states_of(self, group: Mapping[str, Any]) -> tuple[str, ...]:
        return ("exp_avg", "exp_avg_sq", "max_exp_avg_sq") if group["amsgrad"] else ("exp_avg", "exp_avg_sq")

    def update(self, group: Mapping[str, Any], bucket: Bucket, grads: list[Tensor], lr: Any) -> None:
        states, (beta1, beta2) = bucket.states, group["betas"]
        type(self).op(
            bucket.params, grads, states["exp_avg"], states["exp_avg_sq"], states.get("max_exp_avg_sq", ()),
            bucket.step, lr, beta1, beta2, group["eps"], group["weight_decay"], group["maximize"],
            group["do_bias_correction"],
        )  # fmt: skip


def check_betas(options: Mapping[str, Any]) -> None:
    betas = options["betas"]
    if not (isinstance(betas, (tuple, list)) and len(betas) == 2):
        raise OptionError(f"betas are two numbers, such as (0.9, 0.999); got {betas!r}")
    below_one({f"beta parameter at index {i}": b for i, b in enumerate(betas)}, *_NAMES)


_NAMES = ("beta parameter at index 0", "beta parameter at index 1")


class Adam(_Adam):
    """Steps along the gradient's running mean over the root of its square's; weight decay adds to the gradient."""

    op = staticmethod(short(adam_update))

    def __init__(
        self, params: Iterable[Any], lr: float = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
        weight_decay: float = 0.0, amsgrad: bool = False, *, maximize: bool = False, do_bias_correction: bool = True,
        fused: Any = None, foreach: Any = None, capturable: bool = False, contiguous_params: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad, maximize, do_bias_correction)


class AdamW(_Adam):
    """Adam whose weight decay shrinks the parameters by themselves, not through the means."""

    op = staticmethod(short(adamw_update))

    def __init__(
        self, params: Iterable[Any], lr: float = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
        weight_decay: float = 1e-2, amsgrad: bool = False, *, maximize: bool = False, do_bias_correction: bool = True,
        fused: Any = None, foreach: Any = None, capturable: bool = False, contiguous_params: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad, maximize, do_bias_correction)
