"""Stochastic gradient descent, with momentum."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from weft.autograd import no_grad
from weft.autograd.overwrite import assign
from weft.core.dtype import float64
from weft.core.errors import OptionError
from weft.ops import ops
from weft.ops.update.optimizer import sgd_update
from weft.optim.fast_call import fast_call
from weft.optim.optimizer import Bucket, Optimizer
from weft.optim.ranges import options
from weft.tensor.tensor import Tensor

update = fast_call(sgd_update)


class SGD(Optimizer):
    """params -= lr * grads; with momentum, by a running sum of gradients.

    `fused`, `foreach` and `contiguous_params` are accepted and ignored: updates are always fused.
    """

    rate_on_device = True
    nonnegative = ("lr", "momentum", "weight_decay")

    def __init__(
        self, params: Iterable[Any], lr: float = 1e-3, momentum: float = 0.0, dampening: float = 0.0,
        weight_decay: float = 0.0, nesterov: bool = False, maximize: bool = False,
        fused: Any = None, *, foreach: Any = None, contiguous_params: bool = False, differentiable: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(params, options(locals()))

    def check_options(self, options: Mapping[str, Any]) -> None:
        super().check_options(options)
        if options["nesterov"] and (options["momentum"] <= 0 or options["dampening"] != 0):
            raise OptionError("Nesterov momentum requires a momentum and zero dampening; pass momentum=0.9, say")

    def states_of(self, group: Mapping[str, Any]) -> tuple[str, ...]:
        return ("momentum_buffer",) if group["momentum"] else ()

    def counts_steps(self, group: Mapping[str, Any]) -> bool:
        return bool(group["momentum"] and group["dampening"])

    def is_by_rows(self, group: Mapping[str, Any]) -> bool:
        return not (group["momentum"] or group["weight_decay"])

    def update_rows(
        self, group: Mapping[str, Any], p: Tensor, ids: Tensor, rows: Tensor, padding_idx: int | None, lr: Any
    ) -> None:
        ops.sgd_rows_update(p, ids, rows, lr, padding_idx, group["maximize"])

    def update(self, group: Mapping[str, Any], bucket: Bucket, grads: list[Tensor], lr: Any) -> None:
        dampening: Any = 0.0
        if bucket.step is not None:  # the first gradient counts whole
            with no_grad():
                step = assign(bucket.step, bucket.step + 1)
                dampening = ops.cast(step > 1, float64) * group["dampening"]
        update(
            bucket.params, grads, bucket.states.get("momentum_buffer", ()), lr, group["momentum"], dampening,
            group["weight_decay"], group["nesterov"], group["maximize"],
        )  # fmt: skip
