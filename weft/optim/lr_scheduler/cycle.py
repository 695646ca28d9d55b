"""Cyclic schedules: cosine annealing, warm restarts, one cycle."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from weft.core.errors import OptionError
from weft.optim.lr_scheduler.scheduler import LRScheduler
from weft.optim.optimizer import Optimizer


class CosineAnnealingLR(LRScheduler):
    """Cosine annealing down to eta_min over T_max steps, and up again."""

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1) -> None:
        self.T_max, self.eta_min = T_max, eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        t, low = self.last_epoch, self.eta_min
        if t == 0:
            return self._now()
        if self._step_count == 1 and t > 0:
            return [low + (base - low) * (1 + math.cos(t * math.pi / self.T_max)) / 2 for base in self.base_lrs]
        if (t - 1 - self.T_max) % (2 * self.T_max) == 0:
            turn = (1 - math.cos(math.pi / self.T_max)) / 2
            return [lr + (base - low) * turn for base, lr in zip(self.base_lrs, self._now(), strict=True)]
        ratio = (1 + math.cos(math.pi * t / self.T_max)) / (1 + math.cos(math.pi * (t - 1) / self.T_max))
        return [ratio * (lr - low) + low for lr in self._now()]


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
        self._set(self.get_lr())


class OneCycleLR(LRScheduler):
    """One cycle: up from max_lr / div_factor to max_lr, then down to a small fraction; momentum is cycled inversely."""

    def __init__(
        self, optimizer: Optimizer, max_lr: float | Sequence[float], total_steps: int | None = None,
        epochs: int | None = None, steps_per_epoch: int | None = None, pct_start: float = 0.3,
        anneal_strategy: str = "cos", cycle_momentum: bool = True, base_momentum: float = 0.85,
        max_momentum: float = 0.95, div_factor: float = 25.0, final_div_factor: float = 1e4, three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:  # fmt: skip
        if total_steps is None:
            if epochs is None or steps_per_epoch is None:
                raise OptionError("You must define either total_steps OR (epochs AND steps_per_epoch)")
            total_steps = epochs * steps_per_epoch
        if total_steps <= 0 or not 0 <= pct_start <= 1 or anneal_strategy not in ("cos", "linear"):
            raise OptionError(
                "OneCycleLR: total_steps is at least 1, pct_start between 0 and 1, anneal_strategy 'cos' or 'linear'; "
                f"got {total_steps}, {pct_start} and {anneal_strategy!r}"
            )
        self.total_steps, self.anneal_strategy = total_steps, anneal_strategy
        rise = float(pct_start * total_steps) - 1
        self.phases: list[tuple[float, str, str]]
        if three_phase:
            fall = float(2 * pct_start * total_steps) - 2
            self.phases = [(rise, "initial", "max"), (fall, "max", "initial"), (total_steps - 1, "initial", "min")]
        else:
            self.phases = [(rise, "initial", "max"), (total_steps - 1, "max", "min")]
        count = len(optimizer.param_groups)
        tops = [max_lr] * count if isinstance(max_lr, (int, float)) else list(max_lr)
        self.levels = [
            {"initial": top / div_factor, "max": top, "min": top / div_factor / final_div_factor} for top in tops
        ]
        self.cycle_momentum = cycle_momentum
        self.momenta = {"initial": max_momentum, "max": base_momentum, "min": max_momentum}
        if last_epoch == -1:
            for group, level in zip(optimizer.param_groups, self.levels, strict=True):
                group["initial_lr"] = level["initial"]
        if cycle_momentum and not {"momentum", "betas"} & set(optimizer.defaults):
            raise OptionError("the optimizer has no momentum to cycle; pass cycle_momentum=False")
        super().__init__(optimizer, last_epoch)

    def _between(self, start: float, end: float, part: float) -> float:
        if self.anneal_strategy == "linear":
            return (end - start) * part + start
        return end + (start - end) / 2.0 * (math.cos(math.pi * part) + 1)

    def _value(self, levels: Mapping[str, float]) -> float:
        begin = 0.0
        for i, (end, a, b) in enumerate(self.phases):
            if self.last_epoch <= end or i == len(self.phases) - 1:
                return self._between(levels[a], levels[b], (self.last_epoch - begin) / (end - begin))
            begin = end
        raise AssertionError("a schedule has a phase")

    def get_lr(self) -> list[float]:
        if self.last_epoch > self.total_steps:
            raise OptionError(f"Tried to step {self.last_epoch} times; the number of total steps is {self.total_steps}")
        if self.cycle_momentum:
            for group in self.optimizer.param_groups:
                momentum = self._value(self.momenta)
                if "betas" in group:
                    group["betas"] = (momentum, *group["betas"][1:])
                else:
                    group["momentum"] = momentum
        return [self._value(level) for level in self.levels]


class CyclicLR(LRScheduler):
    """Cycles between base_lr and max_lr; the way up takes step_size_up steps.

    `mode`: "triangular" keeps the amplitude, "triangular2" halves it each cycle, "exp_range" multiplies it by gamma
    each step; or `scale_fn(cycle or step)`, by `scale_mode`. Momentum, if any, is cycled inversely.
    """

    def __init__(
        self, optimizer: Optimizer, base_lr: float | Sequence[float], max_lr: float | Sequence[float],
        step_size_up: int = 2000, step_size_down: int | None = None, mode: str = "triangular", gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None, scale_mode: str = "cycle", cycle_momentum: bool = True,
        base_momentum: float = 0.8, max_momentum: float = 0.9, last_epoch: int = -1,
    ) -> None:  # fmt: skip
        if mode not in ("triangular", "triangular2", "exp_range") and scale_fn is None:
            raise OptionError(f"mode is triangular, triangular2 or exp_range, or give a scale_fn; got {mode!r}")
        groups = optimizer.param_groups
        self.low, self.high = _each(base_lr, len(groups)), _each(max_lr, len(groups))
        down = step_size_up if step_size_down is None else step_size_down
        self.total_size, self.up = float(step_size_up + down), step_size_up / (step_size_up + down)
        self.mode, self.gamma, self.scale_fn, self.scale_mode = mode, gamma, scale_fn, scale_mode
        self.cycle_momentum, self.momenta = cycle_momentum, (base_momentum, max_momentum)
        if cycle_momentum and not any("momentum" in g or "betas" in g for g in groups):
            raise OptionError("optimizer must support momentum or beta1 with cycle_momentum; pass cycle_momentum=False")
        if last_epoch == -1:
            for group, lr in zip(groups, self.low, strict=True):
                group["lr"] = lr
        super().__init__(optimizer, last_epoch)
        self.base_lrs = self.low

    def _scale(self, cycle: float) -> float:
        if self.scale_fn is not None:
            return self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.mode == "triangular2":
            return 1 / 2.0 ** (cycle - 1)
        return self.gamma**self.last_epoch if self.mode == "exp_range" else 1.0

    def get_lr(self) -> list[float]:
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        at = 1.0 + self.last_epoch / self.total_size - cycle
        height = at / self.up if at <= self.up else (at - 1) / (self.up - 1)
        share = height * self._scale(cycle)
        if self.cycle_momentum:
            low, high = self.momenta
            for group in self.optimizer.param_groups:
                momentum = high - (high - low) * share
                if "betas" in group:
                    group["betas"] = (momentum, *group["betas"][1:])
                elif "momentum" in group:
                    group["momentum"] = momentum
        return [low + (high - low) * share for low, high in zip(self.low, self.high, strict=True)]


def _each(value: float | Sequence[float], count: int) -> list[float]:
    return [value] * count if isinstance(value, (int, float)) else list(value)
