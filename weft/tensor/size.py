"""A shape, under a name of its own."""

from __future__ import annotations

from typing import Any


class Size(tuple[int, ...]):
    """A shape: a tuple with a name of its own and `numel()`."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"weft.Size({list(self)})"

    def numel(self) -> int:
        total = 1
        for n in self:
            total *= n
        return total

    def __add__(self, other: Any) -> Size:
        return Size(tuple(self) + tuple(other))
