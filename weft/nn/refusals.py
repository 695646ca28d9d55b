"""Where Python's own complaint would leave a layer: what the layer takes, and what it was given."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from weft.core.errors import ours
from weft.functional.signature import SAID, Signature, taught

Init = Callable[..., None]


def constructing(init: Init) -> Init:
    """`__init__` as users call it."""

    @functools.wraps(init)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        try:
            init(self, *args, **kwargs)
        except Exception as cause:
            layer: Any = next(c for c in type(self).__mro__ if _wefts(c))
            inner = layer.__init__ is not __init__  # the one that was called knows what came from its caller
            if inner or isinstance(cause, SAID) or not ours(cause):
                raise
            made = functools.partial(init, self)
            own = Signature(made).renamed(layer.__name__, kwargs) if isinstance(cause, TypeError) else None
            if own is None:
                raise taught(layer.__name__, made, cause, args, kwargs) from cause
            __init__(self, *args, **own)

    return __init__


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
