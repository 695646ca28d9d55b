"""Errors for wrong arguments of layers: what the layer takes, and what it was given."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final

import torch

from weft.api.signature import SAID, Door, Signature, opened, taught
from weft.autograd.plain import ours as as_ours
from weft.autograd.plain import taken, theirs
from weft.autograd.trees import mapped
from weft.core.errors import CONVERT, ArgumentError, ours
from weft.nn.module.members import BUFFER, MODULE
from weft.ops.explain import ABSENT

Init = Callable[..., None]
TORCHS: Final = (torch.nn.Module, torch.Tensor)


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


def forward(module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`module.forward`: again with arguments that fit, or its error explained."""
    try:
        return module.forward(*args, **kwargs)
    except Exception as cause:
        if (own := explain(module, cause, args, kwargs)) is None:
            raise
    return forward(module, *own)


def explain(
    module: Any, cause: Exception, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
    """Explain an error of a layer's forward by its signature; or return arguments that fit: torch's tensors as Weft's,
    keywords under the parameters' names."""
    if not _wefts(type(module)):
        return None
    if theirs((args, kwargs)):
        return mapped((args, kwargs), as_ours)
    if isinstance(cause, (*SAID, NotImplementedError)) or not ours(cause):
        return None
    if kwargs and isinstance(cause, TypeError):
        takes = Signature(module.forward)
        own = (
            takes.renamed(f"{type(module).__name__}.forward", kwargs)
            if takes.refusal(args, kwargs) is not None
            else None
        )
        if own is not None and takes.refusal(args, own) is None:
            return args, own
    raise taught(type(module).__name__, module.forward, cause, args, kwargs) from cause


def _wefts(kind: type) -> bool:
    return kind.__module__.startswith("weft.")


def of_torch(module: Any, name: str, value: Any, role: str | None) -> Any:
    """A torch module or tensor that a module is given: a buffer is Weft's from then on; what torch trains is refused,
    as no optimizer would find it here."""
    if role == BUFFER and isinstance(value, torch.Tensor):
        return taken(value)
    theirs = [value] if type(value) is torch.nn.Parameter else getattr(value, "parameters", list)()
    if any(p.requires_grad for p in theirs):
        raise ArgumentError(
            f"{type(module).__name__}.{name} = {type(value).__name__}(...): its parameters would not be among this "
            f"module's, and nothing would train them{CONVERT}{_package(value)}"
        )
    return value


def unfit(name: str, value: Any, role: str, kind: type) -> ArgumentError:
    """The error for a value that isn't of its role's kind."""
    given = type(value).__name__
    return ArgumentError(
        f"cannot assign '{given}' object to {role} '{name}' ({kind.__name__} or None required)"
        + (f": {given} is not a Module subclass" if role == MODULE else "")
        + ("; flow.from_torch(it) is the same on Weft's tensors" if isinstance(value, torch.nn.Module) else "")
        + _package(value)
    )


def _package(value: Any) -> str:
    """How modules of an installed package are made Weft's altogether."""
    home = type(value).__module__.partition(".")[0]
    given = isinstance(value, torch.nn.Module) and home not in ("torch", "__main__")
    return f". A package as a whole: flow.mock_torch.enable(packages=[{home!r}])" * given
