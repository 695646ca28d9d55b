"""A wrapped module as what is inside of the wrapper: the same attributes, without the wrapper's marks.

`DistributedDataParallel` returns the module itself. Programs unwrap in a loop, until what they have is not wrapped or
has no `module`, so that must not be the module again.
"""

from __future__ import annotations

import functools
from typing import Any, Final

from weft.core.stored import Stored, stored
from weft.nn.module.module import Module

MARKS: Final = ("module", "no_sync", "join", "join_hook", "register_comm_hook", "_fsdp_wrapped_module")
share: Final = Stored.__dict__["__dict__"].__set__


class Hidden:
    """An attribute that only the wrapped module has."""

    def __get__(self, module: Any, kind: type | None = None) -> Any:
        raise AttributeError(f"this {'' if kind is None else kind.__name__} is not wrapped")

    def __set__(self, module: Any, value: Any) -> None:
        stored(module)["module"] = value


def unwrapped(module: Module) -> Any:
    """The module inside, over the attributes of the wrapped one."""
    inner = object.__new__(_inner(type(module)))
    share(inner, stored(module))
    return inner


def is_unwrapped(module: Any) -> bool:
    return "unwraps" in vars(type(module))


def wrapped(module: Any) -> Any:
    """The wrapped module of either."""
    return stored(module)["no_sync"].args[0] if is_unwrapped(module) else module


@functools.cache
def _inner(kind: type) -> type:
    space = {
        "unwraps": True, "__module__": kind.__module__, "__qualname__": kind.__qualname__, "__doc__": kind.__doc__,
        "__reduce_ex__": lambda self, protocol: (unwrapped, (wrapped(self),)), **dict.fromkeys(MARKS, Hidden()),
    }  # fmt: skip
    made: Any = type(kind)(kind.__name__, (Module,), space)  # a library may ask more of those that derive from its own
    made.__bases__ = (kind,)
    return made
