"""How a rank's failure is told to the launcher."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from weft.core.idle import idle

F = TypeVar("F", bound=Callable[..., object])


def record(function: F, error_handler: object = None) -> F:
    """The function itself: what a rank raises is told to the others and the launcher, marked so or not.

    >>> from weft.distributed.elastic.multiprocessing.errors import record
    >>> @record
    ... def main(): return 3
    >>> main()
    3
    """
    idle("distributed.elastic record(error_handler)", error_handler)
    return function
