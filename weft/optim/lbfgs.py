"""L-BFGS: steps along the gradient as the last steps bent it, found with few evaluations on smooth problems."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from weft.autograd import assign, enable_grad, no_grad
from weft.core.errors import ArgumentError, OptionError
from weft.ops import OPS
from weft.optim.optimizer import Bucket, Optimizer
from weft.optim.ranges import at_least_zero
from weft.tensor.tensor import Tensor

Evaluate = Callable[[float], tuple[float, Tensor]]
Point = tuple[float, float, Tensor, float]  # a distance; the loss, its gradient and its slope there


@dataclass
class Memory:
    """What the last steps told about the curvature: how far each went, and how much the gradient changed by it."""

    steps: list[Tensor] = field(default_factory=list)
    changes: list[Tensor] = field(default_factory=list)
    direction: Tensor | None = None
    before: Tensor | None = None
    rate: float = 0.0
    scale: float = 1.0
    iterations: int = 0

    def learn(self, change: Tensor, size: int) -> None:
        """Take in the last step, unless the problem curved the wrong way there."""
        assert self.direction is not None
        step = OPS["mul"](self.direction, self.rate)
        along = _dot(change, step)
        if along > 1e-10:
            self.steps, self.changes = [*self.steps, step][-size:], [*self.changes, change][-size:]
            self.scale = along / _dot(change, change)

    def bent(self, gradient: Tensor) -> Tensor:
        """The direction of descent: the inverse of the curvature, as far as known, times minus the gradient."""
        q, parts = OPS["neg"](gradient), []
        for step, change in zip(reversed(self.steps), reversed(self.changes), strict=True):
            share = _dot(step, q) / _dot(change, step)
            parts.append(share)
            q = OPS["sub"](q, OPS["mul"](change, share))
        q = OPS["mul"](q, self.scale)
        for step, change, share in zip(self.steps, self.changes, reversed(parts), strict=True):
            q = OPS["add"](q, OPS["mul"](step, share - _dot(change, q) / _dot(change, step)))
        return q


class LBFGS(Optimizer):
    """Calls its closure several times a step. `line_search_fn="strong_wolfe"` chooses how far each step goes.

    >>> x = flow.nn.Parameter(flow.tensor([3.0, -2.0]))
    >>> optimizer = flow.optim.LBFGS([x], line_search_fn="strong_wolfe")
    >>> def closure():
    ...     optimizer.zero_grad()
    ...     loss = ((x - 1) ** 2).sum()
    ...     loss.backward()
    ...     return loss
    >>> _ = optimizer.step(closure); x.allclose(flow.ones(2))
    True
    """

    def __init__(
        self, params: Iterable[Any], lr: float = 1.0, max_iter: int = 20, max_eval: int | None = None,
        tolerance_grad: float = 1e-7, tolerance_change: float = 1e-9, history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:  # fmt: skip
        super().__init__(
            params,
            {
                "lr": lr, "max_iter": max_iter, "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval,
                "tolerance_grad": tolerance_grad, "tolerance_change": tolerance_change, "history_size": history_size,
                "line_search_fn": line_search_fn,
            },
        )  # fmt: skip
        if len(self.param_groups) != 1:
            raise OptionError("LBFGS takes one group of parameters: it treats all of them as one vector")
        self._memory = Memory()

    def check_options(self, options: Mapping[str, Any]) -> None:
        at_least_zero(options, "lr", "tolerance_grad", "tolerance_change")
        if options["line_search_fn"] not in (None, "strong_wolfe"):
            raise OptionError(f"line_search_fn is None or 'strong_wolfe'; got {options['line_search_fn']!r}")

    def states_of(self, group: Mapping[str, Any]) -> tuple[str, ...]:
        return ()

    def update(self, group: Mapping[str, Any], bucket: Bucket, grads: list[Tensor], lr: Any) -> None:
        raise ArgumentError("LBFGS evaluates the loss anew within a step, which a graph's step cannot; step it eagerly")

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Up to `max_iter` steps; gives the first loss."""
        if closure is None:
            raise ArgumentError("LBFGS evaluates the loss several times a step: give step() a closure that computes it")
        self.agreement.step(self)
        group, memory = self.param_groups[0], self._memory
        if not group["params"]:
            with enable_grad():
                return closure()
        params, evaluations = group["params"], 0

        def measure() -> tuple[Any, float, Tensor]:
            nonlocal evaluations
            evaluations += 1
            with enable_grad():
                loss = closure()
            return loss, float(loss), _flat([p.grad if p.grad is not None else OPS["zeros_like"](p) for p in params])

        with no_grad():
            first, loss, gradient = measure()
            for count in range(group["max_iter"]):
                if _largest(gradient) <= group["tolerance_grad"]:
                    break
                if memory.before is not None:
                    memory.learn(OPS["sub"](gradient, memory.before), group["history_size"])
                memory.direction = memory.bent(gradient)
                memory.before, loss_before, memory.iterations = gradient, loss, memory.iterations + 1
                slope = _dot(gradient, memory.direction)
                if slope > -group["tolerance_change"]:
                    break
                unsure = memory.iterations == 1  # nothing is known of the curvature yet: no long step
                rate = min(1.0, 1.0 / float(OPS["sum"](OPS["abs"](gradient)))) * group["lr"] if unsure else group["lr"]
                start, direction, last = [OPS["clone"](p.detach()) for p in params], memory.direction, False
                if group["line_search_fn"] is None:
                    _move(params, start, direction, rate)
                    last = count == group["max_iter"] - 1
                    if not last:
                        _, loss, gradient = measure()
                else:

                    def at(
                        distance: float, start: list[Tensor] = start, direction: Tensor = direction
                    ) -> tuple[float, Tensor]:
                        _move(params, start, direction, distance)
                        return measure()[1:]

                    rate, loss, gradient = wolfe(at, rate, loss, gradient, slope, direction, group["tolerance_change"])
                    _move(params, start, direction, rate)
                memory.rate = rate
                if last or evaluations >= group["max_eval"] or _largest(gradient) <= group["tolerance_grad"]:
                    break
                small = group["tolerance_change"]
                if _largest(direction) * abs(rate) <= small or abs(loss - loss_before) < small:
                    break
        return first


def wolfe(
    at: Evaluate, rate: float, loss: float, gradient: Tensor, slope: float, direction: Tensor, least: float,
    most: int = 25,
) -> tuple[float, float, Tensor]:  # fmt: skip
    """How far to go: far enough down (1e-4 of the slope promises), to where it is flat enough (0.9 of the slope).

    First outwards until a good place lies behind, then inwards between the two ends, by cubics through both.
    """

    def probe(distance: float) -> Point:
        value, g = at(distance)
        return distance, value, g, _dot(g, direction)

    def high(p: Point) -> bool:
        return p[1] > loss + 1e-4 * p[0] * slope or not math.isfinite(p[1])

    low: Point = (0.0, loss, gradient, slope)
    far = probe(rate)
    for _ in range(most):
        if high(far) or (far[1] >= low[1] and low[0] > 0):
            break
        if abs(far[3]) <= -0.9 * slope:
            return far[:3]
        if far[3] >= 0:
            low, far = far, low
            break
        reach = far[0] - low[0]
        low, far = far, probe(_between(low, far, far[0] + 0.01 * reach, far[0] * 10))
    for _ in range(most):
        left, right = sorted((low[0], far[0]))
        if (right - left) * _largest(direction) < least:
            break
        edge = 0.1 * (right - left)
        middle = probe(_between(low, far, left + edge, right - edge))
        if high(middle) or middle[1] >= low[1]:
            far = middle
            continue
        if abs(middle[3]) <= -0.9 * slope:
            return middle[:3]
        if middle[3] * (far[0] - low[0]) >= 0:
            far = low
        low = middle
    return low[:3]


def _between(a: Point, b: Point, left: float, right: float) -> float:
    """The lowest place of the cubic through two points and their slopes, within bounds."""
    bend = a[3] + b[3] - 3 * (a[1] - b[1]) / (a[0] - b[0])
    inside = bend * bend - a[3] * b[3]
    if not (math.isfinite(inside) and inside >= 0):
        return (left + right) / 2
    root = math.copysign(math.sqrt(inside), b[0] - a[0])
    below = b[3] - a[3] + 2 * root
    return (left + right) / 2 if below == 0 else min(
        max(b[0] - (b[0] - a[0]) * (b[3] + root - bend) / below, left), right
    )  # fmt: skip


def _flat(tensors: list[Tensor]) -> Tensor:
    return OPS["cat"]([OPS["reshape"](t.detach(), (-1,)) for t in tensors], 0)


def _move(params: list[Tensor], start: list[Tensor], direction: Tensor, distance: float) -> None:
    """The parameters, `distance` along the direction from where they started."""
    at = 0
    for p, begin in zip(params, start, strict=True):
        part = OPS["reshape"](OPS["narrow"](direction, 0, at, p.numel()), tuple(p.shape))
        assign(p, OPS["add"](begin, OPS["mul"](part, distance)))
        at += p.numel()


def _dot(a: Tensor, b: Tensor) -> float:
    return float(OPS["sum"](OPS["mul"](a, b)))


def _largest(t: Tensor) -> float:
    return float(OPS["amax"](OPS["abs"](t)))
