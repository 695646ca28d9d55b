"""OneFlow's hints to its compiler and collectives: accepted without effect, with one warning."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from weft.core.idle import IDLE, idle


def named(prefix: str) -> tuple[str, ...]:
    """The names of the setters with this prefix that have no effect."""
    names = (name.removeprefix(prefix) for name in IDLE if name.startswith(prefix))
    return tuple(name for name in names if name.isidentifier())


def taken(name: str, *args: Any, **options: Any) -> None:
    """Accept a hint, and warn once that it has no effect; `False` needs no warning."""
    idle(name, next(iter((*args, *options.values())), True))


def setters(prefix: str) -> dict[str, Callable[..., None]]:
    """The functions of a module, such as "boxing.nccl.", that have no effect."""
    return {name: partial(taken, f"{prefix}{name}") for name in named(prefix)}
