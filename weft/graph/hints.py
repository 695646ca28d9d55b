"""What programs tell OneFlow of its compiler and of collectives: it is taken, changes nothing, and says so once."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from weft.core.idle import IDLE, idle


def named(prefix: str) -> tuple[str, ...]:
    """The setters of one place that do nothing."""
    return tuple(name.removeprefix(prefix) for name in IDLE if name.startswith(prefix) and "(" not in name)


def taken(name: str, *args: Any, **options: Any) -> None:
    """Nothing has to be said here for what this asks for; `False` asks for nothing."""
    idle(name, next(iter((*args, *options.values())), True))


def of_nccl() -> dict[str, Callable[..., None]]:
    """The names of `flow.boxing.nccl`."""
    return {name: partial(taken, f"boxing.nccl.{name}") for name in named("boxing.nccl.")}
