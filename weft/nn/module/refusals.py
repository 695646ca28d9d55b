"""Where Python's own complaint would leave a layer: what the layer takes, and what it was given."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from weft.api.signature import SAID, Door, Signature, opened, taught
from weft.core.errors import ours
from weft.ops.explain import ABSENT

Init = Callable[..., None]


class Making(Door):
    """What happens to arguments that don't fit a layer's `__init__`. The layer that was asked for answers: one that it
    builds on was called by it."""

    made: Init  # as users call it

    def _asked(self, given: dict[str, Any]) -> tuple[Door | None, dict[str, Any]]:
        module, *_ = given.values()
        layer: Any = next((c for c in type(module).__mro__ if _wefts(c)), None)
        if layer is None or layer.__init__ is not self.made:
            return None, given
        return Door(functools.partial(self.f, module), layer.__name__), dict(list(given.items())[1:])

    def refit(self, given: dict[str, Any], rest: tuple[Any, ...], more: dict[str, Any]) -> None:
        door, own = self._asked(given)
        if door is not None:
            return door.refit(own, rest, more)
        present = {k: v for k, v in given.items() if v is not ABSENT}
        return (
            self.f(*present.values(), *rest, **more) if rest else self.f(**present, **more)
        )  # Python says what is wrong

    def again(self, cause: Exception, given: dict[str, Any], rest: tuple[Any, ...], more: dict[str, Any]) -> Any:
        door, own = self._asked(given)
        return ABSENT if door is None else door.again(cause, own, rest, more)


def constructing(init: Init) -> Init:
    """`__init__` as users call it."""
    door = Making(init, "__init__")
    door.made = opened(door)
    return door.made


def guard(layer: type) -> None:
    """Let a layer of Weft's answer for the arguments that it is made with."""
    if _wefts(layer) and "__init__" in vars(layer):
        layer.__init__ = constructing(vars(layer)["__init__"])


def teach(module: Any, cause: Exception, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any] | None:
    """Where the forward of a layer of Weft's stumbled over its arguments, raise what it takes; or give the keywords by
    the names that they have there, if they fit by these."""
    if not _wefts(type(module)) or isinstance(cause, (*SAID, NotImplementedError)) or not ours(cause):
        return None
    if kwargs and isinstance(cause, TypeError):
        takes = Signature(module.forward)
        own = (
            takes.renamed(f"{type(module).__name__}.forward", kwargs)
            if takes.refusal(args, kwargs) is not None
            else None
        )
        if own is not None and takes.refusal(args, own) is None:
            return own
    raise taught(type(module).__name__, module.forward, cause, args, kwargs) from cause


def _wefts(kind: type) -> bool:
    return kind.__module__.startswith("weft.")
