"""SWALR: the rate for averaging weights."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from weft.core.errors import OptionError
from weft.optim.lr_scheduler.scheduler import LRScheduler
from weft.optim.optimizer import Optimizer


class SWALR(LRScheduler):
    """Anneals the rate to `swa_lr` over anneal_epochs steps, by half a cosine or linearly, then constant.

    >>> optimizer = flow.optim.SGD([flow.zeros(1, requires_grad=True)], lr=1.0)
    >>> schedule = flow.optim.swa_utils.SWALR(optimizer, swa_lr=0.5, anneal_epochs=2, anneal_strategy="linear")
    >>> rates = []
    >>> for _ in range(4):
    ...     rates.append(schedule.get_last_lr()[0]); schedule.step()
    >>> rates
    [1.0, 0.75, 0.5, 0.5]
    """

    def __init__(
        self, optimizer: Optimizer, swa_lr: Any, anneal_epochs: int = 10, anneal_strategy: str = "cos",
        last_epoch: int = -1,
    ) -> None:  # fmt: skip
        groups = optimizer.param_groups
        rates = list(swa_lr) if isinstance(swa_lr, Sequence) else [swa_lr] * len(groups)
        if len(rates) != len(groups):
            raise OptionError(f"swa_lr must be one rate, or one per parameter group, of which there are {len(groups)}")
        if anneal_strategy not in ("cos", "linear"):
            raise OptionError(f"anneal_strategy must be 'cos' or 'linear'; got {anneal_strategy!r}")
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise OptionError(f"anneal_epochs must be a nonnegative integer; got {anneal_epochs!r}")
        for group, rate in zip(groups, rates, strict=True):
            group["swa_lr"] = rate
        self.anneal_epochs, self.anneal_strategy = anneal_epochs, anneal_strategy
        super().__init__(optimizer, last_epoch)

    def _share(self, step: int) -> float:
        """The weight of the new rate after so many steps."""
        t = max(0.0, min(1.0, step / max(1, self.anneal_epochs)))
        return t if self.anneal_strategy == "linear" else (1 - math.cos(math.pi * t)) / 2

    def get_lr(self) -> list[float]:
        step = self.last_epoch if self.anneal_epochs else max(1, self.last_epoch)
        before, now = self._share(step - 1), self._share(step)
        made = []
        for group in self.optimizer.param_groups:
            goal, lr = group["swa_lr"], group["lr"]
            began = goal if before == 1 else (lr - before * goal) / (1 - before)
            made.append(goal * now + began * (1 - now))
        return made
