"""What `nn.functional` offers, from the same table as everything else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weft.functional import table


def functions() -> dict[str, Callable[..., Any]]:
    """nn.functional's names that there are ops or adapters for."""
    return dict(table.listed("neural"))


def __getattr__(name: str) -> Callable[..., Any]:
    found = functions().get(name)
    if found is None:
        raise AttributeError(f"nn.functional has no {name!r}")
    return globals().setdefault(name, found)


__all__ = sorted(functions())  # type: ignore[reportUnsupportedDunderAll]
