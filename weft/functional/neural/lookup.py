"""The lookup of `nn.functional`'s names."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from weft.api import table


@functools.cache
def functions() -> dict[str, Callable[..., Any]]:
    """nn.functional's functions by name."""
    return dict(table.listed("neural"))


def __getattr__(name: str) -> Callable[..., Any]:
    found = functions().get(name)
    if found is None:
        raise AttributeError(f"nn.functional has no {name!r}")
    return globals().setdefault(name, found)
