"""A wrapped module as what is inside of the wrapper: the same attributes, without the wrapper's marks.

`DistributedDataParallel` returns the module itself. Programs unwrap in a loop, until what they have is not wrapped or
has no `module`, so that must not be the module again.
"""

from __future__ import annotations

import functools
from types import MemberDescriptorType
from typing import Any, Final

from weft.core.stored import Stored, stored
from weft.nn.module.module import Module

MARKS: Final = ("module", "no_sync", "join", "join_hook", "register_comm_hook", "_fsdp_wrapped_module")
MARKED: Final = "_marked"  # which of them a wrapper gave
share: Final = Stored.__dict__["__dict__"].__set__


def mark(module: Module, no_sync: Any, /, **others: Any) -> None:
    """Give a module its wrapper's attributes, but for those of its own, which its forward may need. It counts as
    wrapped by its `no_sync`."""
    own = stored(module)
    given = {name: value for name, value in others.items() if not hasattr(module, name)}
    own.update(given, no_sync=no_sync)
    own[MARKED] = {MARKED, "no_sync", *given, *own.get(MARKED, ())}


class Hidden:
    """An attribute that only the wrapped module has, unless the module had one of this name before."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, module: Any, kind: Any = None) -> Any:
        own = {} if module is None else stored(module)
        if self.name in own and self.name not in own[MARKED]:
            return own[self.name]
        found = getattr(super(kind, kind if module is None else module), self.name, Hidden)
        if found is Hidden:
            raise AttributeError(f"this {kind.__name__} is not wrapped")
        return found

    def __set__(self, module: Any, value: Any) -> None:
        stored(module)[self.name] = value
        stored(module)[MARKED].discard(self.name)


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


def without_wrapper(module: Module, state: dict[str, Any], prefix: str, *_: Any) -> None:
    """Take the names of a state of PyTorch's, in which the wrapped module is the wrapper's `module`."""
    inner = f"{prefix}module."
    if "module" not in module._modules and all(name.startswith(inner) for name in state):
        for name in list(state):
            state[prefix + name.removeprefix(inner)] = state.pop(name)


class Quiet:
    """Comes before a library's class, which may ask more of those that derive from its own."""

    __slots__ = ()

    def __init_subclass__(cls, **options: Any) -> None: ...


def _copied(module: Any) -> Any:
    """What is inside of a module that is copied or read, whose attributes are yet to come; or a module of its own,
    which one rank alone may train, where only that is copied."""
    if "no_sync" not in stored(module):
        return unwrapped(module)
    made = object.__new__(type(module))
    stored(made).update((k, v) for k, v in stored(module).items() if k not in stored(module)[MARKED])
    return made


def _of_wrapped(name: str) -> property:
    return property(lambda self: getattr(wrapped(self), name), lambda self, v: setattr(wrapped(self), name, v))


@functools.cache
def _inner(kind: type) -> type:
    slots = [n for k in kind.__mro__ for n, v in vars(k).items() if isinstance(v, MemberDescriptorType)]
    space = {
        "unwraps": True, "__module__": kind.__module__, "__qualname__": kind.__qualname__, "__doc__": kind.__doc__,
        "__reduce_ex__": lambda self, protocol: (_copied, (wrapped(self),)),
        **{n: Hidden(n) for n in MARKS}, **{n: _of_wrapped(n) for n in slots},
    }  # fmt: skip
    return type(kind)(kind.__name__, (Quiet, kind), space)
