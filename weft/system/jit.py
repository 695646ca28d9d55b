"""`flow.jit`: OneFlow's names, which compile nothing. `nn.Graph` compiles."""

from __future__ import annotations

from typing import Any, Final, TypeVar

from weft.api.table import public
from weft.core.dispatch import here

T = TypeVar("T")

__all__ = [
    "Final", "annotate", "compile", "export", "ignore", "interface", "is_scripting", "is_tracing", "script",
    "script_if_tracing", "script_method", "unused",
]  # fmt: skip


@public("flow")
def script(obj: T, *_: Any, **__: Any) -> T:
    """The function or module itself, as in OneFlow: programs that call it run unchanged."""
    return obj


@public("flow")
def ignore(drop: Any = False, **_: Any) -> Any:
    """Returns the function itself, as `ignore` does; so do the other markers."""
    return drop if callable(drop) else lambda function: function


def unused(fn: T) -> T:
    """The function itself, as `ignore` gives it; so do the other markers."""
    return fn


export = interface = script_method = script_if_tracing = _script_if_tracing = unused


def annotate(the_type: Any, the_value: T) -> T:
    """The value; the type is ignored."""
    return the_value


def is_scripting() -> bool:
    """False: Python runs as it is written.

    >>> flow.jit.is_scripting()
    False
    """
    return False


def is_tracing() -> bool:
    """Whether a graph is being traced: whether this is called from `build`.

    >>> flow.jit.is_tracing()
    False
    """
    return here.trace is not None


def _nothing(*_: Any, **__: Any) -> None:
    """Does nothing, as nothing was compiled."""


def _no() -> bool:
    return False


COMPILER: dict[str, Any] = {  # the names of `torch.compiler`
    "disable": ignore, "allow_in_graph": ignore, "assume_constant_result": ignore, "is_compiling": is_tracing,
    "is_dynamo_compiling": _no, "reset": _nothing, "cudagraph_mark_step_begin": _nothing,
}  # fmt: skip


@public("flow")
def _assert(condition: Any, message: str = "") -> None:
    """`assert` as a function, as traced programs call it."""
    if not condition:
        raise AssertionError(message)


@public("flow")
def compile(model: Any = None, **_: Any) -> Any:
    """The function or module itself, or a decorator that changes nothing: `nn.Graph` compiles here."""
    return ignore(False) if model is None else model
