"""Less common optimizers, composed of plain ops: NAdam, RAdam, SparseAdam, Adamax, ASGD and Rprop.

`foreach` and `capturable` are accepted and ignored: a graph fuses such updates.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from weft.autograd import no_grad
from weft.autograd.overwrite import assign
from weft.core.dispatch import here
from weft.core.dtype import float64
from weft.core.errors import OptionError
from weft.core.sbp import broadcast
from weft.ops import ops
from weft.optim.optimizer import Bucket, Optimizer
from weft.optim.ranges import at_least_zero, check_betas, options
from weft.tensor.tensor import Tensor

SMALL = 1 << 14  # elements: call overhead dominates below, so small parameters are updated as one vector


def _small(p: Tensor, grad: Tensor) -> bool:
    return p.spec is None and p.numel() < SMALL and grad.dtype is p.dtype


class Composed(Optimizer, ABC):
    """Subclasses implement `move`: the new parameter, and its new states."""

    by_element = True  # the update is element-wise

    @abstractmethod
    def move(self, group: Mapping[str, Any], p: Any, grad: Any, t: Any, lr: Any, **states: Any) -> tuple[Any, ...]:
        """The parameter after step t, and its states in the order of their names."""

    def update(self, group: Mapping[str, Any], bucket: Bucket, grads: list[Tensor], lr: Any) -> None:
        with no_grad():
            t: Any = bucket.step
            if t is not None:
                t = ops.cast(assign(t, t + 1), float64)  # 1 - 0.999**t is inaccurate in float32
            apart = range(len(bucket.params))
            in_a_row = self.by_element and here.trace is None
            small = [i for i in apart if _small(bucket.params[i], grads[i])] if in_a_row else []
            if len(small) > 1:
                apart = [i for i in apart if i not in small]
                lists = [[members[i] for i in small] for members in (bucket.params, *bucket.states.values())]
                rows = [ops.in_a_row(members) for members in lists]
                grad = ops.in_a_row([grads[i] for i in small])
                for members, row in zip(lists, self._moved(group, rows[0], grad, t, lr, bucket, rows[1:]), strict=True):
                    ops.take_from_row(members, row)
            for i in apart:
                p, states = bucket.params[i], [members[i] for members in bucket.states.values()]
                after = self._moved(group, p.detach(), grads[i], t, lr, bucket, states)
                for old, new in zip((p, *states), after, strict=True):
                    assign(old, new)

    def _moved(
        self, group: Mapping[str, Any], x: Any, grad: Any, t: Any, lr: Any, bucket: Bucket, states: Sequence[Any]
    ) -> tuple[Any, ...]:
        if x.is_complex():  # a pair of real numbers, as in torch: a square is of each part
            x, grad, *states = map(ops.view_as_real, (x, grad, *states))
            return tuple(map(ops.view_as_complex, self._moved(group, x, grad, t, lr, bucket, states)))
        if group.get("maximize"):
            grad = ops.neg(grad)
        decay = group.get("weight_decay")
        if decay and group.get("decoupled_weight_decay"):
            x = x * (1 - lr * decay)
        elif decay and not group.get("adam_w_mode"):  # LAMB's comes later
            grad = grad + x * decay
        return self.move(group, x, grad, t, lr, **dict(zip(bucket.states, states, strict=True)))


def norm(t: Tensor) -> Any:
    """The 2-norm of all elements; on every rank, if they are split."""
    return ops.sqrt(summed_over_ranks(ops.sum(ops.square(t))))


def summed_over_ranks(t: Tensor) -> Tensor:
    """Reduce partial sums, of which no root can be taken."""
    if not t.is_global or not any(s.is_partial for s in t.sbp):
        return t
    return ops.to_global(t, t.placement, [broadcast if s.is_partial else s for s in t.sbp])


def _moments(group: Mapping[str, Any], grad: Any, mean: Any, square: Any) -> tuple[Any, Any]:
    one, two = group["betas"]
    return mean * one + grad * (1 - one), square * two + grad * grad * (1 - two)


class Moments(Composed):
    """The common part of optimizers with running means of gradients and their squares."""

    first_values = {"exp_avg": 0.0, "exp_avg_sq": 0.0}

    def check_options(self, options: Mapping[str, Any]) -> None:
        at_least_zero(options, "lr", "eps", "weight_decay", "momentum_decay")
        check_betas(options["betas"])


class NAdam(Moments):
    """Adam with Nesterov momentum."""

    first_values = {"exp_avg": 0.0, "exp_avg_sq": 0.0, "mu_product": 1.0}

    def __init__(
        self, params: Iterable[Any], lr: float = 2e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
        weight_decay: float = 0.0, momentum_decay: float = 4e-3, decoupled_weight_decay: bool = False, *,
        foreach: Any = None, maximize: bool = False, capturable: bool = False, differentiable: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(params, options(locals()))

    def move(self, group: Mapping[str, Any], p: Any, grad: Any, t: Any, lr: Any, **states: Any) -> tuple[Any, ...]:
        one, two = group["betas"]
        mean, square = _moments(group, grad, states["exp_avg"], states["exp_avg_sq"])
        decay = group["momentum_decay"]
        now = (1 - 0.5 * ops.pow(0.96, t * decay)) * one
        then = (1 - 0.5 * ops.pow(0.96, (t + 1) * decay)) * one
        product = states["mu_product"] * now
        size = ops.sqrt(square / (1 - ops.pow(two, t))) + group["eps"]
        p = p - grad / size * (lr * (1 - now) / (1 - product)) - mean / size * (lr * then / (1 - product * then))
        return p, mean, square, product


class RAdam(Moments):
    """Adam with a rectified variance: plain momentum until the second moment is reliable."""

    def __init__(
        self, params: Iterable[Any], lr: float = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
        weight_decay: float = 0.0, decoupled_weight_decay: bool = False, *, foreach: Any = None,
        maximize: bool = False, capturable: bool = False, differentiable: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(params, options(locals()))

    def move(self, group: Mapping[str, Any], p: Any, grad: Any, t: Any, lr: Any, **states: Any) -> tuple[Any, ...]:
        one, two = group["betas"]
        mean, square = _moments(group, grad, states["exp_avg"], states["exp_avg_sq"])
        left = 1 - ops.pow(two, t)
        most = 2 / (1 - two) - 1
        length = most - t * 2 * ops.pow(two, t) / left
        known = length > 5
        safe = ops.where(known, length, 6.0)
        rectified = ops.sqrt((safe - 4) * (safe - 2) * most / ((most - 4) * (most - 2) * safe))
        scaled = ops.sqrt(left) / (ops.sqrt(square) + group["eps"]) * rectified
        step = mean / (1 - ops.pow(one, t)) * ops.where(known, scaled, 1.0)
        return p - step * lr, mean, square


class SparseAdam(Moments):
    """Adam of the rows that have a gradient: rows of an embedding that weren't looked up keep their values and
    moments, as with torch's sparse gradients."""

    by_element = False

    def __init__(
        self, params: Iterable[Any], lr: float = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
        maximize: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(params, options(locals()))

    def is_by_rows(self, group: Mapping[str, Any]) -> bool:
        return True

    def move(self, group: Mapping[str, Any], p: Any, grad: Any, t: Any, lr: Any, **states: Any) -> tuple[Any, ...]:
        one, two = group["betas"]
        mean, square = _moments(group, grad, states["exp_avg"], states["exp_avg_sq"])
        rate = ops.sqrt(1 - ops.pow(two, t)) / (1 - ops.pow(one, t)) * lr
        moved = p - mean / (ops.sqrt(square) + group["eps"]) * rate
        size = ops.abs(grad)
        here = (ops.amax(size, tuple(range(1, grad.ndim)), True) if grad.ndim > 1 else size) > 0
        before = (p, states["exp_avg"], states["exp_avg_sq"])
        return tuple(ops.where(here, new, old) for new, old in zip((moved, mean, square), before, strict=True))


class Adamax(Moments):
    """Adam by the infinity norm instead of the mean square."""

    first_values = {"exp_avg": 0.0, "exp_inf": 0.0}

    def __init__(
        self, params: Iterable[Any], lr: float = 2e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
        weight_decay: float = 0.0, foreach: Any = None, *, maximize: bool = False, capturable: bool = False,
        differentiable: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(params, options(locals()))

    def move(self, group: Mapping[str, Any], p: Any, grad: Any, t: Any, lr: Any, **states: Any) -> tuple[Any, ...]:
        one, two = group["betas"]
        mean = states["exp_avg"] * one + grad * (1 - one)
        largest = ops.maximum(states["exp_inf"] * two, ops.abs(grad) + group["eps"])
        return p - mean / largest * (lr / (1 - ops.pow(one, t))), mean, largest


class ASGD(Composed):
    """Averaged SGD: decaying rates, and the mean of past parameters as the state "ax"."""

    first_values = {"eta": "lr", "mu": 1.0, "ax": 0.0}
    nonnegative = ("lr", "weight_decay")

    def __init__(
        self, params: Iterable[Any], lr: float = 1e-2, lambd: float = 1e-4, alpha: float = 0.75, t0: float = 1e6,
        weight_decay: float = 0.0, foreach: Any = None, maximize: bool = False, differentiable: bool = False,
        capturable: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(params, options(locals()))

    def move(self, group: Mapping[str, Any], p: Any, grad: Any, t: Any, lr: Any, **states: Any) -> tuple[Any, ...]:
        rate, lambd = states["eta"], group["lambd"]
        p = p * (1 - rate * lambd) - grad * rate
        mean = states["ax"] + (p - states["ax"]) * states["mu"]
        ones = ops.ones_like(p)
        rate = ones * (lr / ops.pow(t * (lambd * lr) + 1, group["alpha"]))
        return p, rate, ones / ops.clamp(t - group["t0"], 1.0), mean


class Rprop(Composed):
    """Resilient backpropagation: a step size per element, which grows while the gradient keeps its sign, and shrinks
    when it flips."""

    first_values = {"prev": 0.0, "step_size": "lr"}
    nonnegative = ("lr",)

    def __init__(
        self, params: Iterable[Any], lr: float = 1e-2, etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50.0), *, foreach: Any = None, maximize: bool = False,
        capturable: bool = False, differentiable: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(params, options(locals()))

    def check_options(self, options: Mapping[str, Any]) -> None:
        super().check_options(options)
        if not 0 < options["etas"][0] < 1 < options["etas"][1]:
            raise OptionError(f"Invalid eta values: {options['etas']}; the first must be below 1, the second above")

    def move(self, group: Mapping[str, Any], p: Any, grad: Any, t: Any, lr: Any, **states: Any) -> tuple[Any, ...]:
        along = grad * states["prev"]
        flipped = along < 0
        factor = ops.where(flipped, group["etas"][0], ops.where(along > 0, group["etas"][1], ops.ones_like(grad)))
        size = ops.clamp(states["step_size"] * factor, *group["step_sizes"])
        grad = ops.where(flipped, 0.0, grad)
        return p - ops.sign(grad) * size, grad, size
