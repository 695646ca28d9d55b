"""What every schedule is."""

from __future__ import annotations

import inspect
from abc import ABCMeta, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from weft.core.errors import CheckpointError, OptionError
from weft.optim.optimizer import Optimizer


class _Made(ABCMeta):
    """What making any schedule takes: `verbose`, and where it begins under OneFlow's name, too."""

    def __call__(cls, *args: Any, **options: Any) -> Any:
        own = inspect.signature(cls.__init__).parameters
        made: Any = object.__new__(cls)
        if "verbose" not in own and options.pop("verbose", False):
            made.verbose = True
        if "last_step" not in own and "last_step" in options:
            options["last_epoch"] = options.pop("last_step")
        made.__init__(*args, **options)
        return made


class LRScheduler(metaclass=_Made):
    """Subclasses give the rates of step `last_epoch` from `get_lr`; reading `group["lr"]` in it makes a recursion.

    Every schedule takes `verbose=True`, to print the rates that it sets.
    """

    verbose: bool = False

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1, verbose: bool = False) -> None:
        if verbose:
            self.verbose = True
        if not isinstance(optimizer, Optimizer):
            raise OptionError(f"a schedule belongs to an optimizer; got {type(optimizer).__name__}")
        for i, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", group["lr"])
            elif "initial_lr" not in group:
                raise KeyError(
                    f"param 'initial_lr' is not specified in param_groups[{i}] when resuming an optimizer; load the "
                    "optimizer's state dict first, or begin at last_epoch=-1"
                )
        self.optimizer = optimizer
        self.base_lrs = [g["initial_lr"] for g in optimizer.param_groups]
        self.last_epoch = last_epoch
        self._last_lr: list[float] = []
        self._step_count = 0
        self.step()

    @abstractmethod
    def get_lr(self) -> list[float]:
        """The rates, one per group, of step `last_epoch`."""

    def get_last_lr(self) -> list[float]:
        """The rates, one per group, that the last step set."""
        return self._last_lr

    def step(self, epoch: int | None = None) -> None:
        self._step_count += 1
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        self._set(self.get_lr())

    def _set(self, rates: Sequence[float]) -> None:
        for group, lr in zip(self.optimizer.param_groups, rates, strict=True):
            group["lr"] = lr
        self._tell()
        self._last_lr = [g["lr"] for g in self.optimizer.param_groups]

    def _tell(self) -> None:
        for i, lr in enumerate(self._now() if self.verbose else ()):
            print(f"step {self.last_epoch} of {type(self).__name__}: the rate of param_groups[{i}] is {lr:.5g}")

    @property
    def last_step(self) -> int:
        """OneFlow's name for `last_epoch`."""
        return self.last_epoch

    def _now(self) -> list[float]:
        return [g["lr"] for g in self.optimizer.param_groups]

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer and functions, which have no form that can be saved."""
        return {k: v for k, v in self.__dict__.items() if k != "optimizer" and not callable(v)}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        unknown = [k for k in state_dict if k not in self.__dict__ and k != "verbose"]
        if unknown:
            raise CheckpointError(f"{type(self).__name__} has no {unknown[0]!r}; is the state another schedule's?")
        vars(self).update(state_dict)
