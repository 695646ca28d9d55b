"""Adafactor: adaptive steps with factored second moments."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from weft.autograd import no_grad
from weft.autograd.overwrite import assign
from weft.core.errors import DtypeError, OptionError
from weft.functional.tensor.dtypes import finfo
from weft.ops import ops
from weft.optim.composed import norm, summed_over_ranks
from weft.optim.optimizer import Bucket, Optimizer
from weft.optim.ranges import at_least_zero, options
from weft.tensor.tensor import Tensor

FACTORS = ("row_var", "col_var")  # mean squares along the last dimension, and along the one before it


class Adafactor(Optimizer):
    """Divides by the root of a running mean square, which for a matrix is factored into row and column means.

    The mean's decay grows by `beta2_decay`; a step is relative to the parameter's scale, at least `eps[1]`, and clipped
    to `d`. `foreach` is accepted and ignored: parameters are updated one by one.

    >>> w = flow.nn.Parameter(flow.ones(3, 4))
    >>> optimizer = flow.optim.Adafactor([w])
    >>> (w * w).sum().backward()
    >>> optimizer.step()
    >>> {name: list(value.shape) for name, value in optimizer.state[w].items()}
    {'row_var': [3, 1], 'col_var': [1, 4], 'step': []}
    """

    def __init__(
        self, params: Iterable[Any], lr: float = 1e-2, beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3), d: float = 1.0, weight_decay: float = 0.0, *,
        foreach: Any = None, maximize: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(params, options(locals()))

    def check_options(self, options: Mapping[str, Any]) -> None:
        at_least_zero(options, "lr", "weight_decay")
        at_least_zero({f"eps[{i}]": e for i, e in enumerate(options["eps"])}, "eps[0]", "eps[1]")
        if options["beta2_decay"] > 0:
            raise OptionError(f"Invalid beta2_decay: {options['beta2_decay']}; it must be at most 0")
        if options["d"] < 1:
            raise OptionError(f"Invalid d: {options['d']}; the clipping threshold must be at least 1")
        for p in options.get("params", ()):
            if p.dtype.is_complex:
                raise DtypeError(
                    f"Adafactor doesn't support complex numbers; a parameter has dtype {p.dtype}. Give "
                    "flow.view_as_real(p) to it, or p to Adam"
                )

    def _fill(self, group: Mapping[str, Any], p: Tensor, names: tuple[str, ...]) -> None:
        state = self.state[p]
        fresh = not state
        super()._fill(group, p, names)
        if fresh:
            step = state.pop("step")
            zeros = ops.zeros_like(p.detach(), None)
            state |= dict(zip(FACTORS, _means(zeros), strict=True)) if p.ndim > 1 else {"variance": ops.clone(zeros)}
            state["step"] = step

    def update(self, group: Mapping[str, Any], bucket: Bucket, grads: list[Tensor], lr: Any) -> None:
        with no_grad():
            t: Any = bucket.step
            assign(t, t + 1)
            fresh = ops.pow(t, group["beta2_decay"])  # the weight of this gradient in the mean
            most = ops.minimum(ops.rsqrt(t), ops.full_like(t, 1.0, None) * lr)
            for p, given in zip(bucket.params, grads, strict=True):
                if p.numel():
                    grad = ops.neg(given.detach()) if group["maximize"] else given.detach()
                    self._step(group, p, grad, (fresh, most), lr)

    def _step(self, group: Mapping[str, Any], p: Tensor, grad: Any, by: tuple[Any, Any], lr: Any) -> None:
        state, (fresh, most) = self.state[p], by
        least = finfo(p.dtype).eps if group["eps"][0] is None else group["eps"][0]
        root = math.sqrt(p.numel())
        x: Any = p.detach()
        rate = ops.clamp(norm(x) / root, group["eps"][1]) * most
        if group["weight_decay"]:
            x = x * (1 - lr * group["weight_decay"])
        if p.ndim > 1:
            row, col = (_nearer(state[n], mean, fresh) for n, mean in zip(FACTORS, _means(grad * grad), strict=True))
            size = ops.matmul(row, col) / ops.clamp(row.mean(-2, True), least)
        else:
            size = _nearer(state["variance"], grad * grad, fresh)
        step = grad * ops.rsqrt(ops.clamp(size, least * least))
        assign(p, x - step * (rate / ops.clamp(norm(step) / (root * group["d"]), 1.0)))


def _nearer(state: Tensor, mean: Any, share: Any) -> Any:
    """The state moved towards the mean by a weight."""
    return assign(state, state + (mean - state) * share)


def _means(squares: Tensor) -> tuple[Tensor, Tensor]:
    """The means along the last dimension, and along the one before it."""
    return summed_over_ranks(ops.mean(squares, -1, True)), summed_over_ranks(ops.mean(squares, -2, True))
