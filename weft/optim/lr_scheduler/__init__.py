"""Learning rate schedules: rates as functions of the step, set in the optimizer's groups.

`LRScheduler`, `ChainedScheduler` and those with OneFlow's signatures are defined here, the others derived from torch's.
"""

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from weft.api import surface
from weft.core.derived import Change, Derived, lazily
from weft.core.errors import ArgumentError, OptionError
from weft.optim.lr_scheduler.compose import ChainedScheduler, SequentialLR, WarmUpLR, WarmupLR
from weft.optim.lr_scheduler.cycle import CosineAnnealingWarmRestarts
from weft.optim.lr_scheduler.decay import CosineDecayLR, PolynomialLR
from weft.optim.lr_scheduler.scheduler import LRScheduler
from weft.optim.optimizer import Optimizer

if TYPE_CHECKING:
    from weft.optim.lr_scheduler.schedules import *  # noqa: F403  (its stub lists them)

_LRScheduler = LRScheduler  # deprecated name, used by many programs


def _at_least_one(theirs: Callable[..., None]) -> Callable[..., None]:
    """Refuse a `step_size` of 0, by which torch would divide at the first step."""

    @functools.wraps(theirs)
    def init(self: Any, optimizer: Any, step_size: int, gamma: float = 0.1, last_epoch: int = -1) -> None:
        if step_size < 1:
            raise OptionError(f"step_size must be at least 1; got {step_size}")
        theirs(self, optimizer, step_size, gamma, last_epoch)

    return init


def _from_zero(theirs: Callable[..., None]) -> Callable[..., None]:
    """Take a `start_factor` of 0, which torch refuses, since it multiplies rate by rate."""

    def init(
        self: Any, optimizer: Optimizer, start_factor: float = 1 / 3, end_factor: float = 1.0, total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:  # fmt: skip
        if start_factor == 0 <= end_factor <= 1:
            self.start_factor = start_factor if total_iters else end_factor
            self.end_factor, self.total_iters = end_factor, total_iters
            LRScheduler.__init__(self, optimizer, last_epoch)
        else:
            theirs(self, optimizer, start_factor, end_factor, total_iters, last_epoch)

    return init


def _of_base(factor: str) -> Change:
    """Compute rates from the base rates where this factor is 0: torch would multiply zeros, or divide by them."""

    def change(theirs: Callable[..., Any]) -> Callable[..., Any]:
        def get_lr(self: Any) -> list[Any]:
            return theirs(self) if getattr(self, factor) else self._get_closed_form_lr()

        return get_lr

    return change


def _printing(theirs: Callable[..., None]) -> Callable[..., None]:
    """Lower the rates, and print them if `verbose`."""

    def reduce(self: Any, epoch: Any) -> None:
        theirs(self, epoch)
        self._print_rates()

    return reduce


def _checked(theirs: Callable[..., None]) -> Callable[..., None]:
    """Refuse the state of another class; torch loads any, and pops items from the given dict."""

    def load(self: Any, state_dict: Any) -> None:
        theirs(self, self.checked(state_dict))

    return load


def _cyclic_state(self: Any) -> dict[str, Any]:
    """The state, with that of a custom scaling function if it is an object."""
    return {**LRScheduler.state_dict(self), "_scale_fn_custom": getattr(self._scale_fn_custom, "__dict__", None)}


CHANGES: dict[str, Change] = {
    "StepLR.__init__": _at_least_one,
    "LinearLR.__init__": _from_zero,
    "LinearLR.get_lr": _of_base("start_factor"),
    "ConstantLR.get_lr": _of_base("factor"),
    "ReduceLROnPlateau._reduce_lr": _printing,
    "CyclicLR.state_dict": lambda theirs: _cyclic_state,
    **{f"{name}.load_state_dict": _checked
       for name in ("LambdaLR", "MultiplicativeLR", "ReduceLROnPlateau", "CyclicLR")},
}  # fmt: skip
OWN = (LRScheduler, ChainedScheduler, CosineAnnealingWarmRestarts, PolynomialLR, SequentialLR)
Derived(f"{__name__}.schedules", "torch.optim.lr_scheduler", {"": CHANGES}, errors={"TypeError": ArgumentError},
        classes={kind.__name__: kind for kind in OWN})  # fmt: skip
Derived(f"{__name__}.averaged", "torch.optim.swa_utils", {"": {"SWALR.load_state_dict": _checked}})
of_swa_utils = lazily(__name__, {"averaged": ("SWALR",)})
__getattr__ = lazily(__name__, surface.by_file("optim.lr_scheduler", __name__))


def __dir__() -> list[str]:
    return [*globals(), *__all__]


# ruff: noqa: F405
__all__ = [
    "ChainedScheduler", "ConstantLR", "CosineAnnealingLR", "CosineAnnealingWarmRestarts", "CosineDecayLR", "CyclicLR",
    "ExponentialLR", "LRScheduler", "LambdaLR", "LinearLR", "MultiStepLR", "MultiplicativeLR", "OneCycleLR",
    "PolynomialLR", "ReduceLROnPlateau", "SequentialLR", "StepLR", "WarmUpLR", "WarmupLR",
]  # fmt: skip
