"""`flow.jit`: the names of OneFlow's, which compile nothing. What compiles is `nn.Graph`."""

from __future__ import annotations

from typing import Any, TypeVar

T = TypeVar("T")


def script(obj: T, *_: Any, **__: Any) -> T:
    """The function or module itself, as in OneFlow: programs that call it run unchanged."""
    return obj


def ignore(drop: Any = False, **_: Any) -> Any:
    """A decorator that changes nothing, with or without arguments."""
    return drop if callable(drop) else lambda function: function
