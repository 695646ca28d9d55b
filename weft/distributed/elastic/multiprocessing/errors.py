"""`record`, the decorator for a rank's main function."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from weft.core.idle import idle

F = TypeVar("F", bound=Callable[..., object])


def record(function: F, error_handler: object = None) -> F:
    """The function itself: a rank's errors are reported to the launcher and the other ranks with or without it.

    >>> from weft.distributed.elastic.multiprocessing.errors import record
    >>> @record
    ... def main(): return 3
    >>> main()
    3
    """
    idle("distributed.elastic record(error_handler)", error_handler)
    return function
