"""Errors for wrong arguments of layers: what the layer takes, and what it was given."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

from weft.api.signature import SAID, Door, Signature, opened, taught
from weft.core.errors import CONVERT, ArgumentError, ours
from weft.ops.explain import ABSENT

Init = Callable[..., None]


class Making(Door):
    """Handles arguments that don't fit a layer's `__init__`. The error names the class that the user called, not a base
    class."""

    made: Init  # the wrapped one

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
        return self.f(*present.values(), *rest, **more) if rest else self.f(**present, **more)  # Python raises

    def again(self, cause: Exception, given: dict[str, Any], rest: tuple[Any, ...], more: dict[str, Any]) -> Any:
        door, own = self._asked(given)
        return ABSENT if door is None else door.again(cause, own, rest, more)


def constructing(init: Init) -> Init:
    """Wrap an `__init__`, so that wrong arguments are explained."""
    door = Making(init, "__init__")
    door.made = opened(door)
    return door.made


def guard(layer: type) -> None:
    """Wrap the `__init__` of one of Weft's layers."""
    if _wefts(layer) and "__init__" in vars(layer):
        layer.__init__ = constructing(vars(layer)["__init__"])


def explain(module: Any, cause: Exception, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any] | None:
    """Explain an error of a layer's forward by its signature; or return the keywords under the parameters' names, if
    they fit then."""
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


def trained_by_torch(module: Any, name: str, value: Any) -> None:
    """Raise if a module is given a torch module or parameter that is trained: no optimizer would find it here."""
    if value.requires_grad if isinstance(value, torch.Tensor) else any(p.requires_grad for p in value.parameters()):
        raise ArgumentError(
            f"{type(module).__name__}.{name} = {type(value).__name__}(...): its parameters would not be among this "
            f"module's, and nothing would train them{CONVERT}"
        )
