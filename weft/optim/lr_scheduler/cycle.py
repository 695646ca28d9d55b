"""Cosine annealing with warm restarts, as PyTorch and OneFlow have it."""

from __future__ import annotations

import math
from typing import Any

from weft.core.errors import OptionError
from weft.optim.lr_scheduler.scheduler import LRScheduler
from weft.optim.optimizer import Optimizer


class CosineAnnealingWarmRestarts(LRScheduler):
    """Cosine annealing down to eta_min with warm restarts, each period T_mult times as long.

    `decay_rate` and `restart_limit` are OneFlow's: each restart multiplies the maximum by decay_rate; after the limit,
    if not zero, the rate stays eta_min.
    """

    def __init__(
        self, optimizer: Optimizer, T_0: int, T_mult: int = 1, eta_min: float = 0.0, *unnamed: Any,
        last_epoch: int = -1, decay_rate: float = 1.0, restart_limit: int = 0,
    ) -> None:  # fmt: skip
        if unnamed:
            raise OptionError(
                f"CosineAnnealingWarmRestarts(optimizer, {T_0!r}, {T_mult!r}, {eta_min!r}, {unnamed[0]!r}): in that "
                "position PyTorch has last_epoch, and OneFlow decay_rate. Name it"
            )
        if T_0 <= 0 or T_mult < 1:
            raise OptionError(f"T_0 is at least 1 and T_mult at least 1; got {T_0} and {T_mult}")
        self.T_0, self.T_mult, self.T_i, self.eta_min, self.T_cur = T_0, T_mult, T_0, eta_min, last_epoch
        self.decay_rate, self.restart_limit, self.restarts = decay_rate, restart_limit, 0
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        if 0 < self.restart_limit <= self.restarts:
            return [self.eta_min] * len(self.base_lrs)
        part = (1 + math.cos(math.pi * self.T_cur / self.T_i)) / 2
        top = self.decay_rate**self.restarts
        return [self.eta_min + (base * top - self.eta_min) * part for base in self.base_lrs]

    def step(self, epoch: float | None = None) -> None:
        at = self.last_epoch + 1 if epoch is None else epoch
        if at < 0:
            raise OptionError(f"Expected non-negative epoch, but got {epoch}")
        start, length, restarts = 0.0, self.T_0, 0
        if self.T_mult == 1:
            restarts = int(at // self.T_0)
            start = restarts * self.T_0
        else:
            while at >= start + length:
                start, length, restarts = start + length, length * self.T_mult, restarts + 1
        self.T_cur, self.T_i, self.restarts = at - start, length, restarts
        self._step_count += 1
        self.last_epoch = math.floor(at)
        self.update_lrs(self.get_lr())
