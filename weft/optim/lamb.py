"""LAMB: Adam with a trust ratio per parameter."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from weft.core.idle import idle
from weft.ops import ops
from weft.optim.composed import Moments, norm
from weft.optim.ranges import options


class LAMB(Moments):
    """params -= lr * (|params| / |direction|) * direction, with Adam's direction.

    `adam_w_mode` adds decay to the direction after the trust ratio, as OneFlow; otherwise it is added to the gradient.
    `amsgrad` and `contiguous_params` are accepted as in OneFlow: the first has no effect there either.
    """

    by_element = False

    def __init__(
        self, params: Iterable[Any], lr: float = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
        weight_decay: float = 0.0, adam_w_mode: bool = True, do_bias_correction: bool = True, amsgrad: bool = False,
        contiguous_params: bool = False,
    ) -> None:  # fmt: skip
        idle("LAMB(amsgrad)", amsgrad)
        super().__init__(params, options(locals(), "amsgrad"))

    def move(self, group: Mapping[str, Any], p: Any, grad: Any, t: Any, lr: Any, **states: Any) -> tuple[Any, ...]:
        (one, two), decay = group["betas"], group["weight_decay"]
        mean = first = ops.lerp(states["exp_avg"], grad, 1 - one)
        square = second = ops.lerp(states["exp_avg_sq"], ops.square(grad), 1 - two)
        if group["do_bias_correction"]:
            first, second = ops.div(mean, 1 - ops.pow(one, t)), ops.div(square, 1 - ops.pow(two, t))
        direction = ops.div(first, ops.add(ops.sqrt(second), group["eps"]))
        long, steep = norm(p), norm(direction)
        trust = ops.where(ops.gt(ops.mul(long, steep), 0), ops.div(long, steep), 1.0)
        if decay and group["adam_w_mode"]:
            direction = ops.add(direction, ops.mul(p, decay))
        return ops.sub(p, ops.mul(direction, ops.mul(trust, lr))), mean, square
