"""`flow._C`: every declared op under its own name, public or not, and the custom ops that users register."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weft.api import names, table
from weft.core.errors import ArgumentError
from weft.ops.declaration import OPS, Op

PLACES = ("flow", "bound", "neural", "tensor")


class Bound:
    """Looks names up on first use, so that an op declared later is found too."""

    def __init__(self) -> None:
        self.__name__ = f"{__name__.partition('.')[0]}._C"  # as a module has

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("__"):
            raise AttributeError(name)
        found = table.ADAPTERS["bound"].get(names.ALIASES.get(name, name))  # its own form, where it has one
        found = found or next(filter(None, (table.lookup(place, name) for place in PLACES)), None)
        if found is None:
            close = sorted(n for n in OPS if n.startswith(name[:3]) and name[:3])[:5]
            raise AttributeError(
                f"flow._C has no {name!r}" + (f"; there are {', '.join(close)}, ..." if close else "")
                + ". For a custom op: flow.register(my_op)"
            )  # fmt: skip
        self.__dict__[name] = found
        return found

    def __dir__(self) -> list[str]:
        return sorted({*OPS, *(n for place in PLACES for n in table.ADAPTERS[place])})


_C = Bound()


def register(declared: Op | Callable[..., Any], name: str | None = None) -> Callable[..., Any]:
    """Register a custom op, or a plain function of tensors, as `flow._C.name`.

    >>> @flow.register
    ... def cubed(x):
    ...     return x * x * x
    >>> flow._C.cubed(flow.tensor([2.])).tolist()
    [8.0]
    """
    if isinstance(declared, Op):
        return declared.entry
    name = name or declared.__name__
    if name in OPS or name in table.ADAPTERS["flow"]:
        raise ArgumentError(f"register(): flow._C.{name} exists already; write register(f, name=...)")
    return table.ADAPTERS["flow"].setdefault(name, declared)
