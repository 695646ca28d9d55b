"""Options of optimizers, and checks of their ranges."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from weft.core.errors import ArgumentError, OptionError
from weft.tensor.tensor import Tensor


def options(given: Mapping[str, Any], *ignored: str) -> dict[str, Any]:
    """The options among the arguments of an `__init__`, its `locals()`. Those without effect that torch's groups have
    are among them, as programs read and copy groups."""
    others = {"self", "params", "__class__", "contiguous_params", *ignored}
    return {name: value for name, value in given.items() if name not in others}


def at_least_zero(options: Mapping[str, Any], *names: str) -> None:
    for name in names:
        value = options.get(name)
        if value is None or isinstance(value, Tensor):
            continue
        _check_number(name, value)
        if not value >= 0.0:
            shown = {"lr": "learning rate", "eps": "epsilon value"}.get(name, f"{name} value")
            raise OptionError(f"Invalid {shown}: {value}; it must be at least 0")


def _check_number(name: str, value: Any) -> None:
    if isinstance(value, str):  # YAML reads 1e-3, without a point, as text
        raise ArgumentError(f"{name} must be a number; got the text {value!r}, write float({value!r})")


def below_one(**options: float) -> None:
    for name, value in options.items():
        _check_number(name, value)
        if not 0.0 <= value < 1.0:
            raise OptionError(f"Invalid {name}: {value}; it must be at least 0 and below 1")


def check_betas(betas: Any) -> None:
    named = isinstance(betas, (str, Mapping))
    if named or not (hasattr(betas, "__len__") and hasattr(betas, "__getitem__") and len(betas) == 2):
        raise OptionError(f"betas must be two numbers, such as (0.9, 0.999); got {betas!r}")
    below_one(**{f"beta parameter at index {i}": betas[i] for i in (0, 1)})
