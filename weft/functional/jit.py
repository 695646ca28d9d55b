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


def _nothing(*_: Any, **__: Any) -> None:
    """Nothing to do: nothing was compiled."""


def _no() -> bool:
    return False


COMPILER: dict[str, Any] = {  # what `torch.compiler` names, said of functions that are never compiled
    "disable": ignore, "allow_in_graph": ignore, "assume_constant_result": ignore, "is_compiling": _no,
    "is_dynamo_compiling": _no, "reset": _nothing, "cudagraph_mark_step_begin": _nothing,
}  # fmt: skip


@public("flow")
def _assert(condition: Any, message: str = "") -> None:
    """`assert`, under the name that programs give it which are also traced."""
    if not condition:
        raise AssertionError(message)


@public("flow")
def compile(model: Any = None, **_: Any) -> Any:
    """The function or module itself, or a decorator that changes nothing: what compiles here is `nn.Graph`."""
    return ignore(False) if model is None else model
