"""Gradient scaling: a scaled loss keeps small gradients from underflow in float16; steps with infinite gradients are
skipped."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from weft.autograd import no_grad
from weft.core.device import Device
from weft.core.errors import CheckpointError, OptionError
from weft.functional.training.clipping import INFINITY, groups_of, total_norm
from weft.ops import ops
from weft.tensor.data import whole_data
from weft.tensor.tensor import Tensor


def unscaled(grads: list[Tensor], inverse: float) -> bool:
    """Multiply gradients by the inverse scale; whether all are finite."""
    with no_grad():
        for group in groups_of(grads):
            ops.scale_all(group, inverse)
        return bool(whole_data(total_norm(grads, INFINITY), "largest gradient").isfinite())


class _Scaler(ABC):
    """The common part: the loss is multiplied, gradients are divided before the step, once per optimizer."""

    def __init__(self, scale: float, enabled: bool) -> None:
        if enabled and not scale > 0:
            raise OptionError(f"a loss is scaled by a number above 0; got {scale}")
        self._scale, self._enabled = float(scale), enabled
        self._finite: dict[int, bool] = {}  # per optimizer since the last update: whether all gradients were finite
        self._to_come: Tensor | None = None  # the same, from a graph launch that may still be running

    def scale(self, outputs: Any) -> Any:
        """Multiply a loss, or several, by the scale."""
        if not self._enabled:
            return outputs
        if isinstance(outputs, Tensor):
            return ops.mul(outputs, self._scale)
        return type(outputs)(self.scale(y) for y in outputs)

    def unscale_(self, optimizer: Any) -> None:
        """Divide the gradients by the scale, for instance to clip them; `step` does it otherwise."""
        if not self._enabled:
            return
        if id(optimizer) in self._finite:
            raise OptionError(
                "unscale_() has already been called on this optimizer since the last update(); gradients are divided "
                "by the scale once a step"
            )
        grads = [p.grad for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
        self._finite[id(optimizer)] = unscaled(grads, 1.0 / self._scale)

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """Call the optimizer's step, unless a gradient is infinite or NaN."""
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if id(optimizer) not in self._finite:
            self.unscale_(optimizer)
        return optimizer.step(*args, **kwargs) if self._finite[id(optimizer)] else None

    @abstractmethod
    def update(self) -> None:
        """Finish the step: adjust the scale, if it is dynamic."""

    def get_scale(self) -> float:
        self._listen()
        return self._scale if self._enabled else 1.0

    def expect(self, finite: Tensor) -> None:
        """Take a tensor by which a graph launch says whether its gradients were finite, and `update`."""
        self._listen()
        self._to_come = finite

    def _listen(self) -> None:
        """Wait for the launch's answer."""
        finite, self._to_come = self._to_come, None
        if finite is not None:
            local = finite.to_local() if finite.is_global else finite
            self._finite[id(self)] = bool(local.item())
            self.update()

    def is_enabled(self) -> bool:
        return self._enabled


class GradScaler(_Scaler):
    """A dynamic loss scale: grows while gradients are finite, shrinks when they aren't. The device is ignored.

    >>> scaler = flow.amp.GradScaler(init_scale=8.0)
    >>> scaler.scale(flow.ones(1)).item()
    8.0
    """

    def __init__(
        self, *given: Any, init_scale: float = 2.0**16, growth_factor: float = 2.0, backoff_factor: float = 0.5,
        growth_interval: int = 2000, enabled: bool = True, device: Any = None,
    ) -> None:  # fmt: skip
        options = [init_scale, growth_factor, backoff_factor, growth_interval, enabled]
        numbers = given[1:] if given and isinstance(given[0], (str, Device)) else given  # an optional first argument
        if len(numbers) > len(options):
            raise OptionError(f"GradScaler takes a device and {len(options)} options; got {given}")
        options[: len(numbers)] = numbers
        init_scale, growth_factor, backoff_factor, growth_interval, enabled = options
        super().__init__(init_scale, enabled)
        if enabled and not (growth_factor > 1.0 and 0.0 < backoff_factor < 1.0 and growth_interval >= 1):
            raise OptionError(
                "growth_factor is above 1, backoff_factor between 0 and 1, growth_interval a count of steps; got "
                f"{growth_factor}, {backoff_factor} and {growth_interval}"
            )
        self._growth_factor, self._backoff_factor = growth_factor, backoff_factor
        self._growth_interval, self._growth_tracker = growth_interval, 0

    def get_growth_factor(self) -> float:
        """The factor by which the scale grows."""
        return self._growth_factor

    def set_growth_factor(self, new_factor: float) -> None:
        self._growth_factor = new_factor

    def get_backoff_factor(self) -> float:
        """The factor by which the scale shrinks."""
        return self._backoff_factor

    def set_backoff_factor(self, new_factor: float) -> None:
        self._backoff_factor = new_factor

    def get_growth_interval(self) -> int:
        """After how many finite steps the scale grows."""
        return self._growth_interval

    def set_growth_interval(self, new_interval: int) -> None:
        self._growth_interval = new_interval

    def update(self, new_scale: float | None = None) -> None:
        """Adjust the scale, by whether gradients were finite since the last update; or set the one given."""
        if not self._enabled:
            return
        if new_scale is not None:
            self._scale = float(new_scale)
        elif not self._finite:
            raise OptionError("no gradients were checked since the last update(); call scaler.step(optimizer) first")
        elif not all(self._finite.values()):
            self._scale, self._growth_tracker = self._scale * self._backoff_factor, 0
        else:
            self._growth_tracker += 1
            if self._growth_tracker == self._growth_interval:
                self._scale, self._growth_tracker = self._scale * self._growth_factor, 0
        self._finite.clear()

    def state_dict(self) -> dict[str, Any]:
        if not self._enabled:
            return {}
        self._listen()
        return {
            "scale": self._scale, "growth_factor": self._growth_factor, "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval, "_growth_tracker": self._growth_tracker,
        }  # fmt: skip

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        if not self._enabled:
            return
        missing = sorted(self.state_dict().keys() - state_dict.keys())
        if missing:
            raise CheckpointError(f"the state of a GradScaler lacks {', '.join(missing)}; was it saved while disabled?")
        self._scale, self._growth_tracker = float(state_dict["scale"]), int(state_dict["_growth_tracker"])
        self._growth_factor, self._backoff_factor = state_dict["growth_factor"], state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]


class StaticGradScaler(_Scaler):
    """A constant loss scale."""

    def __init__(self, scale_factor: float) -> None:
        super().__init__(scale_factor, True)

    def update(self) -> None:
        self._finite.clear()

    def state_dict(self) -> dict[str, Any]:
        """Empty: the scale is constant."""
        return {}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Nothing to load."""
