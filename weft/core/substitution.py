"""Arguments of a call with something else in the place of each value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def substituted(args: Any, kind: type, make: Callable[[Any], Any]) -> Any:
    """The arguments with `make(v)` for each `v` of a kind, also in tuples and in lists, which become tuples."""
    if isinstance(args, kind):
        return make(args)
    if not isinstance(args, (tuple, list)):
        return args
    within = (kind, tuple, list)
    return tuple([substituted(a, kind, make) if isinstance(a, within) else a for a in args])
