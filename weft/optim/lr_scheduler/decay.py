"""Schedules by a closed formula of the step."""

from __future__ import annotations

import math
import types
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from weft.core.errors import OptionError
from weft.optim.lr_scheduler.scheduler import LRScheduler
from weft.optim.optimizer import Optimizer


class StepLR(LRScheduler):
    """Multiplies the rate by gamma every step_size steps."""

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1) -> None:
        if step_size < 1:
            raise OptionError(f"step_size must be at least 1; got {step_size}")
        self.step_size, self.gamma = step_size, gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        due = self.last_epoch > 0 and self.last_epoch % self.step_size == 0
        return [lr * self.gamma for lr in self._now()] if due else self._now()


class MultiStepLR(LRScheduler):
    """Multiplies the rate by gamma at every milestone."""

    def __init__(
        self, optimizer: Optimizer, milestones: Iterable[int], gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        self.milestones, self.gamma = Counter(milestones), gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        times = self.milestones[self.last_epoch]
        return [lr * self.gamma**times for lr in self._now()] if times else self._now()

    def state_dict(self) -> dict[str, Any]:
        return {**super().state_dict(), "milestones": sorted(self.milestones.elements())}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        super().load_state_dict({**state_dict, "milestones": Counter(state_dict["milestones"])})


class ExponentialLR(LRScheduler):
    """Multiplies the rate by gamma every step."""

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        return [lr * self.gamma for lr in self._now()] if self.last_epoch else self._now()


class ConstantLR(LRScheduler):
    """A fraction of the rate until total_iters, then the whole."""

    def __init__(
        self, optimizer: Optimizer, factor: float = 1.0 / 3, total_iters: int = 5, last_epoch: int = -1
    ) -> None:
        if not 0 <= factor <= 1:
            raise OptionError(f"Constant multiplicative factor expected to be between 0 and 1; got {factor}")
        self.factor, self.total_iters = factor, total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        if self.last_epoch == 0:
            return [lr * self.factor for lr in self._now()]
        return self._now() if self.last_epoch != self.total_iters else [lr / self.factor for lr in self._now()]


class LinearLR(LRScheduler):
    """From start_factor to end_factor of the rate, linearly over total_iters steps."""

    def __init__(
        self, optimizer: Optimizer, start_factor: float = 1.0 / 3, end_factor: float = 1.0, total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:  # fmt: skip
        if not 0 < start_factor <= 1 or not 0 <= end_factor <= 1:
            raise OptionError(f"factors are between 0 and 1, the first above 0; got {start_factor} and {end_factor}")
        self.start_factor, self.end_factor, self.total_iters = start_factor, end_factor, total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        if self.last_epoch == 0:
            return [lr * self.start_factor for lr in self._now()]
        if self.last_epoch > self.total_iters:
            return self._now()
        rise = self.end_factor - self.start_factor
        before = self.total_iters * self.start_factor + (self.last_epoch - 1) * rise
        return [lr * (1.0 + rise / before) for lr in self._now()]


class LambdaLR(LRScheduler):
    """The base rate times a function of the step; one function, or one per group."""

    def __init__(
        self, optimizer: Optimizer, lr_lambda: Callable[[int], float] | Sequence[Callable[[int], float]],
        last_epoch: int = -1,
    ) -> None:  # fmt: skip
        self.lr_lambdas = _per_group(optimizer, lr_lambda)
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        return [base * f(self.last_epoch) for base, f in zip(self.base_lrs, self.lr_lambdas, strict=True)]

    def state_dict(self) -> dict[str, Any]:
        kept = [None if isinstance(f, types.FunctionType) else dict(f.__dict__) for f in self.lr_lambdas]
        return {**super().state_dict(), "lr_lambdas": kept}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        for f, kept in zip(self.lr_lambdas, state_dict["lr_lambdas"], strict=True):
            if kept is not None:
                f.__dict__.update(kept)
        super().load_state_dict({k: v for k, v in state_dict.items() if k != "lr_lambdas"})


class MultiplicativeLR(LambdaLR):
    """The previous rate times a function of the step."""

    def get_lr(self) -> list[float]:
        if self.last_epoch == 0:
            return self._now()
        return [lr * f(self.last_epoch) for lr, f in zip(self._now(), self.lr_lambdas, strict=True)]


def _per_group(optimizer: Optimizer, given: Any) -> list[Any]:
    functions = list(given) if isinstance(given, Sequence) else [given] * len(optimizer.param_groups)
    if len(functions) != len(optimizer.param_groups):
        raise OptionError(f"Expected {len(optimizer.param_groups)} lr_lambdas, one per group, but got {len(functions)}")
    return functions


class CosineDecayLR(LRScheduler):
    """Cosine annealing down to alpha times the rate over decay_steps, then constant."""

    def __init__(self, optimizer: Optimizer, decay_steps: int, alpha: float = 0.0, last_epoch: int = -1) -> None:
        if decay_steps < 1:
            raise OptionError(f"decay_steps must be at least 1; got {decay_steps}")
        self.decay_steps, self.alpha = decay_steps, alpha
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        part = (1 + math.cos(math.pi * min(self.last_epoch, self.decay_steps) / self.decay_steps)) / 2
        return [base * ((1 - self.alpha) * part + self.alpha) for base in self.base_lrs]


class PolynomialLR(LRScheduler):
    """Polynomial decay to zero over total_iters steps.

    `decay_batch`, `end_learning_rate` and `cycle` are OneFlow's: to end_learning_rate over decay_batch steps, and with
    `cycle` over a multiple of them.
    """

    def __init__(
        self, optimizer: Optimizer, total_iters: int = 5, *unnamed: Any, power: float = 1.0, last_epoch: int = -1,
        decay_batch: int | None = None, end_learning_rate: float = 0.0001, cycle: bool = False,
    ) -> None:  # fmt: skip
        if unnamed:
            raise OptionError(
                f"PolynomialLR(optimizer, {total_iters!r}, {unnamed[0]!r}): there PyTorch has the power, and "
                f"OneFlow the final rate. Name it: total_iters={total_iters!r}, power={unnamed[0]!r}, or "
                f"decay_batch={total_iters!r}, end_learning_rate={unnamed[0]!r}"
            )
        self.total_iters, self.power = total_iters, power
        self.decay_batch, self.end_learning_rate, self.cycle = decay_batch, end_learning_rate, cycle
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        t = self.last_epoch
        if self.decay_batch is not None:
            length = self.decay_batch * (max(math.ceil(t / self.decay_batch), 1) if self.cycle else 1)
            left = (1 - (t if self.cycle else min(t, length)) / length) ** self.power
            return [(base - self.end_learning_rate) * left + self.end_learning_rate for base in self.base_lrs]
        if t == 0 or t > self.total_iters:
            return self._now()
        ratio = ((1.0 - t / self.total_iters) / (1.0 - (t - 1) / self.total_iters)) ** self.power
        return [lr * ratio for lr in self._now()]
