"""`flow.nn.functional`: the functions behind layers."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from weft.api import table
from weft.api.surface import PUBLIC


def __getattr__(name: str) -> Callable[..., Any]:
    known = name in PUBLIC["neural"] or name in table.ADAPTERS["neural"]
    found = table.lookup("neural", name) if known else None
    if found is None:
        raise AttributeError(f"nn.functional has no {name!r}", name=name, obj=sys.modules[__name__])
    return globals().setdefault(name, found)


def __dir__() -> list[str]:
    return sorted(dict(table.listed("neural")))
