"""Combinations of schedules."""

from __future__ import annotations

import bisect
from collections.abc import Mapping, Sequence
from typing import Any

from weft.core.errors import OptionError
from weft.optim.lr_scheduler.scheduler import LRScheduler
from weft.optim.optimizer import Optimizer


def _rates_at(schedule: LRScheduler, step: int, base_lrs: Sequence[float]) -> list[float]:
    """A schedule's rates at a step; it is stepped there, since it may be recursive."""
    if step <= 0 or schedule.last_epoch > step:
        schedule.update_lrs(base_lrs)
        schedule.last_epoch = -1
        schedule._initial_step()
    while schedule.last_epoch < step:
        schedule.update_lrs(schedule._last_lr)
        schedule.step()
    return list(schedule._last_lr)


class WarmUpLR(LRScheduler):
    """OneFlow's warm-up: up to the rate over warmup_iters steps, then the given schedule, or constant.

    `warmup_method` is "linear" or "constant". With `warmup_prefix`, the schedule starts after the warm-up; otherwise it
    runs during the warm-up, which ends at its current rate.
    """

    def __init__(
        self, scheduler_or_optimizer: LRScheduler | Optimizer, warmup_factor: float = 1.0 / 3, warmup_iters: int = 5,
        warmup_method: str = "linear", warmup_prefix: bool = False, last_epoch: int = -1,
    ) -> None:  # fmt: skip
        inner = scheduler_or_optimizer if isinstance(scheduler_or_optimizer, LRScheduler) else None
        optimizer = scheduler_or_optimizer if inner is None else inner.optimizer
        if warmup_method not in ("linear", "constant"):
            raise OptionError(f"'warmup_method' must be 'linear' or 'constant'; got {warmup_method!r}")
        self.inner = inner
        self.warmup_factor, self.warmup_iters = warmup_factor, warmup_iters
        self.warmup_method, self.warmup_prefix = warmup_method, warmup_prefix
        self._goal: list[float] | None = None
        assert isinstance(optimizer, Optimizer)
        super().__init__(optimizer, last_epoch)

    def _inner_at(self, step: int) -> list[float]:
        return list(self.base_lrs) if self.inner is None else _rates_at(self.inner, step, self.base_lrs)

    def get_lr(self) -> list[float]:
        t = self.last_epoch
        if t >= self.warmup_iters:
            return self._inner_at(t - self.warmup_iters if self.warmup_prefix else t)
        if self.warmup_method == "constant":
            return [base * self.warmup_factor for base in self.base_lrs]
        if self._goal is None:
            self._goal = list(self.base_lrs) if self.warmup_prefix else self._inner_at(self.warmup_iters)
        part = t / self.warmup_iters
        starts = [base * self.warmup_factor for base in self.base_lrs]
        return [start + (end - start) * part for start, end in zip(starts, self._goal, strict=True)]

    def state_dict(self) -> dict[str, Any]:
        kept = {k: v for k, v in super().state_dict().items() if k != "inner"}
        return {**kept, "inner": None if self.inner is None else self.inner.state_dict()}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        if self.inner is not None and state_dict.get("inner") is not None:
            self.inner.load_state_dict(state_dict["inner"])
        super().load_state_dict({k: v for k, v in state_dict.items() if k != "inner"})


WarmupLR = WarmUpLR


class _Several(LRScheduler):
    """A schedule made of others, whose states are part of its own."""

    schedulers: list[LRScheduler]

    def state_dict(self) -> dict[str, Any]:
        return {**super().state_dict(), "schedulers": [s.state_dict() for s in self.schedulers]}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        for s, kept in zip(self.schedulers, state_dict["schedulers"], strict=True):
            s.load_state_dict(kept)
        super().load_state_dict({k: v for k, v in state_dict.items() if k != "schedulers"})


class SequentialLR(_Several):
    """One schedule after another. At each milestone the next one starts at its own step 0, as in torch; with OneFlow's
    `interval_rescaling=False`, or a False for this milestone, it goes on at the common step.
    """

    def __init__(
        self, optimizer: Optimizer, schedulers: Sequence[LRScheduler], milestones: Sequence[int], last_epoch: int = -1,
        interval_rescaling: bool | Sequence[bool] = True,
    ) -> None:  # fmt: skip
        if isinstance(last_epoch, (bool, list, tuple)):  # OneFlow's fourth argument
            last_epoch, interval_rescaling = -1, last_epoch
        if len(schedulers) < 1 or len(milestones) != len(schedulers) - 1:
            raise OptionError(
                f"Sequential Schedulers expects one milestone fewer than schedulers; got {len(milestones)} milestones "
                f"for {len(schedulers)} schedulers"
            )
        several = isinstance(interval_rescaling, (list, tuple))
        rescaling = list(interval_rescaling) if several else [interval_rescaling] * len(milestones)
        if len(rescaling) != len(milestones) or not all(isinstance(r, bool) for r in rescaling):
            raise OptionError(
                f"'interval_rescaling' is a bool, or one for each of the {len(milestones)} milestones; "
                f"got {interval_rescaling!r}"
            )
        for s in schedulers:
            if s.optimizer is not optimizer:
                raise OptionError("Sequential Schedulers expects all schedulers to belong to the same optimizer")
        self.optimizer, self.schedulers, self.milestones = optimizer, list(schedulers), list(milestones)
        self.interval_rescaling = rescaling
        self.last_epoch = last_epoch + 1
        for group in optimizer.param_groups:
            group["lr"] = group["initial_lr"]
        for s in self.schedulers:  # each made a first step at construction
            s.last_epoch -= 1
        self.schedulers[0]._initial_step()
        self._last_lr = self.schedulers[0].get_last_lr()

    def get_lr(self) -> list[float]:
        return self._now()

    def step(self, epoch: int | None = None) -> None:
        self.last_epoch += 1
        i = bisect.bisect_right(self.milestones, self.last_epoch)
        current = self.schedulers[i]
        if i > 0 and self.milestones[i - 1] == self.last_epoch:
            base_lrs = [group["initial_lr"] for group in self.optimizer.param_groups]
            for step in (0, 0 if self.interval_rescaling[i - 1] else self.last_epoch):
                _rates_at(current, step, base_lrs)
        else:
            current.step()
        self._last_lr = current.get_last_lr()


class ChainedScheduler(_Several):
    """Several schedules at once, each applied to the result of the previous ones."""

    def __init__(self, schedulers: Sequence[LRScheduler]) -> None:
        if not schedulers:
            raise OptionError("ChainedScheduler expects at least one scheduler to be chained, but got none")
        self.schedulers = list(schedulers)
        self.optimizer = self.schedulers[0].optimizer
        if any(s.optimizer is not self.optimizer for s in self.schedulers):
            raise OptionError("ChainedScheduler expects all schedulers to belong to the same optimizer")
        self.last_epoch, self._last_lr = self.schedulers[0].last_epoch, self._now()

    def get_lr(self) -> list[float]:
        return self._now()

    def step(self, epoch: int | None = None) -> None:
        for s in self.schedulers:
            s.step()
        self.last_epoch, self._last_lr = self.schedulers[0].last_epoch, self._now()
