"""LAMB: Adam with a trust ratio per parameter."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from weft.autograd import no_grad
from weft.autograd.inplace import assign
from weft.core.idle import idle
from weft.core.sbp import broadcast
from weft.ops import ops
from weft.optim.adam import check_betas
from weft.optim.optimizer import Bucket, Optimizer
from weft.optim.ranges import at_least_zero, options
from weft.tensor.tensor import Tensor


class LAMB(Optimizer):
    """params -= lr * (|params| / |direction|) * direction, with Adam's direction.

    `adam_w_mode` adds decay to the direction after the trust ratio, as OneFlow; otherwise it is added to the gradient.
    `amsgrad` and `contiguous_params` are accepted as in OneFlow: the first has no effect there either.
    """

    first_values = {"exp_avg": 0.0, "exp_avg_sq": 0.0}

    def __init__(
        self, params: Iterable[Any], lr: float = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
        weight_decay: float = 0.0, adam_w_mode: bool = True, do_bias_correction: bool = True, amsgrad: bool = False,
        contiguous_params: bool = False,
    ) -> None:  # fmt: skip
        idle("LAMB(amsgrad)", amsgrad)
        super().__init__(params, options(locals(), "amsgrad"))

    def check_options(self, options: Mapping[str, Any]) -> None:
        at_least_zero(options, "lr", "eps", "weight_decay")
        check_betas(options)

    def update(self, group: Mapping[str, Any], bucket: Bucket, grads: list[Tensor], lr: Any) -> None:
        assert bucket.step is not None
        with no_grad():
            assign(bucket.step, ops.add(bucket.step, 1.0))
            corrections = [_correction(beta, bucket.step) for beta in group["betas"]]
            states = bucket.states
            for p, grad, mean, squares in zip(
                bucket.params, grads, states["exp_avg"], states["exp_avg_sq"], strict=True
            ):
                self._step(group, p.detach(), grad.detach(), mean, squares, corrections, lr)

    def _step(
        self, group: Mapping[str, Any], p: Tensor, grad: Tensor, mean: Tensor, squares: Tensor,
        corrections: list[Tensor], lr: Any,
    ) -> None:  # fmt: skip
        (beta1, beta2), decay = group["betas"], group["weight_decay"]
        if decay and not group["adam_w_mode"]:
            grad = ops.add(grad, ops.mul(p, decay))
        assign(mean, ops.add(ops.mul(mean, beta1), ops.mul(grad, 1 - beta1)))
        assign(squares, ops.add(ops.mul(squares, beta2), ops.mul(ops.square(grad), 1 - beta2)))
        first, second = mean, squares
        if group["do_bias_correction"]:
            first, second = ops.div(mean, corrections[0]), ops.div(squares, corrections[1])
        direction = ops.div(first, ops.add(ops.sqrt(second), group["eps"]))
        long, steep = _length(p), _length(direction)
        both = ops.gt(ops.mul(long, steep), 0)
        trust = ops.where(both, ops.div(long, ops.where(both, steep, 1.0)), 1.0)
        if decay and group["adam_w_mode"]:
            direction = ops.add(direction, ops.mul(p, decay))
        assign(p, ops.sub(p, ops.mul(direction, ops.mul(trust, lr))))


def _correction(beta: float, step: Tensor) -> Tensor:
    """1 - beta ** step: the bias correction of a running mean that starts at zero."""
    return ops.sub(1.0, ops.exp(ops.mul(step, math.log(beta)))) if beta else ops.ones_like(step)


def _length(t: Tensor) -> Tensor:
    squares = ops.sum(ops.square(t))
    if t.is_global:  # reduce before the root
        squares = ops.to_global(squares, t.placement, (broadcast,) * t.placement.ndim)
    return ops.sqrt(squares)
