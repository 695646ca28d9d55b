"""`flow.jit`: the names of OneFlow's, which compile nothing. What compiles is `nn.Graph`."""

from __future__ import annotations

from typing import Any, TypeVar

from weft.functional.table import public

T = TypeVar("T")


@public("flow")
def script(obj: T, *_: Any, **__: Any) -> T:
    """The function or module itself, as in OneFlow: programs that call it run unchanged."""
    return obj


@public("flow")
def ignore(drop: Any = False, **_: Any) -> Any:
    """A decorator that changes nothing, with or without arguments."""
    return drop if callable(drop) else lambda function: function


@public("flow")
def _assert(condition: Any, message: str = "") -> None:
    """`assert`, under the name that programs give it which are also traced."""
    if not condition:
        raise AssertionError(message)


@public("flow")
def compile(model: Any = None, **_: Any) -> Any:
    """The function or module itself, or a decorator that changes nothing: what compiles here is `nn.Graph`."""
    return ignore(False) if model is None else model
