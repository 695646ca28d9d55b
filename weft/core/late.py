"""Generated functions: compiled when they are first called, so that imports don't wait for them."""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any


def written_late(name: str, source: Callable[[], str], space: dict[str, Any], origin: str) -> Callable[..., Any]:
    """The function that `source()` defines under `name`, over the names of `space`.

    The function object exists from the start; its first call sets its code.
    """

    def write() -> Callable[..., Any]:
        exec(compile(source(), origin, "exec"), space)
        real = space[name]
        function.__defaults__, function.__kwdefaults__ = real.__defaults__, real.__kwdefaults__
        function.__code__ = real.__code__  # last: another thread may be calling it
        return function

    space["_write"] = write
    function = FunctionType(_unwritten.__code__, space, name)
    function.__qualname__ = name
    function._torchdynamo_disable = True  # type: ignore[attr-defined]  # torch.compile calls it, and doesn't look inside
    return function


def _unwritten(*args: Any, **kwargs: Any) -> Any:
    return _write()(*args, **kwargs)  # type: ignore[name-defined]  # noqa: F821  (of the function's own space)
