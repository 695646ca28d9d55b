"""OneFlow's decays: schedules by a formula of the step."""

from __future__ import annotations

import math
from typing import Any

from weft.core.errors import OptionError
from weft.optim.lr_scheduler.scheduler import LRScheduler
from weft.optim.optimizer import Optimizer


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

    _get_closed_form_lr = get_lr


class PolynomialLR(LRScheduler):
    """Polynomial decay to zero over total_iters steps.

    `decay_batch`, `end_learning_rate` and `cycle` are OneFlow's, and any of them makes it OneFlow's schedule: to
    end_learning_rate, 0.0001 if not given, over decay_batch steps, and with `cycle` over a multiple of them. libai says
    `steps` for decay_batch.
    """

    def __init__(
        self, optimizer: Optimizer, total_iters: int = 5, *unnamed: Any, power: float = 1.0, last_epoch: int = -1,
        decay_batch: int | None = None, end_learning_rate: float | None = None, cycle: bool = False,
        steps: int | None = None,
    ) -> None:  # fmt: skip
        if len(unnamed) > 2:  # more than PyTorch has: OneFlow's order
            end_learning_rate, power, cycle = unnamed[:3]
            last_epoch = unnamed[3] if len(unnamed) > 3 else last_epoch
        elif unnamed:
            raise OptionError(
                f"PolynomialLR(optimizer, {total_iters!r}, {unnamed[0]!r}): there PyTorch has the power, and "
                f"OneFlow the final rate. Name it: total_iters={total_iters!r}, power={unnamed[0]!r}, or "
                f"decay_batch={total_iters!r}, end_learning_rate={unnamed[0]!r}"
            )
        decay_batch = steps if decay_batch is None else decay_batch
        if decay_batch is None and (cycle or end_learning_rate is not None):
            decay_batch = total_iters
        if decay_batch is not None and decay_batch < 1:
            raise OptionError(f"decay_batch must be at least 1; got {decay_batch}")
        self.total_iters, self.power = total_iters, power
        self.decay_batch, self.cycle = decay_batch, cycle
        self.end_learning_rate = 0.0001 if end_learning_rate is None else end_learning_rate
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        t = self.last_epoch
        if self.decay_batch is not None:
            return self._get_closed_form_lr()
        if self._is_initial or t > self.total_iters:
            return self._now()
        ratio = ((1.0 - t / self.total_iters) / (1.0 - (t - 1) / self.total_iters)) ** self.power
        return [lr * ratio for lr in self._now()]

    def _get_closed_form_lr(self) -> list[float]:
        t, length, end = self.last_epoch, self.total_iters, 0.0
        if self.decay_batch is not None:
            t = max(t, self.cycle)  # OneFlow's first two steps are one
            length = self.decay_batch * (math.ceil(t / self.decay_batch) if self.cycle else 1)
            end = self.end_learning_rate
        left = (1 - min(t, length) / length) ** self.power
        return [(base - end) * left + end for base in self.base_lrs]
