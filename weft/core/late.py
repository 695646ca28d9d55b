"""Generated functions: compiled when they are first called, so that imports don't wait for them."""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any

from weft.core.dispatch import here


def written_late(
    name: str, source: Callable[[], str], space: dict[str, Any], origin: str,
    meanwhile: Callable[..., Any] | None = None,
) -> Callable[..., Any]:  # fmt: skip
    """The function that `source()` defines under `name`, over the names of `space`.

    The function object exists from the start; its first call sets its code. But while a graph is traced, no call takes
    a fast path: until it is written, `meanwhile` does what a call comes down to, or returns NotImplemented.
    """

    def write() -> Callable[..., Any]:
        exec(compile(source(), origin, "exec"), space)
        real = space[name]
        function.__defaults__, function.__kwdefaults__ = real.__defaults__, real.__kwdefaults__
        function.__code__ = real.__code__  # last: another thread may be calling it
        return function

    space["_write"], space["_meanwhile"], space["_here"] = write, meanwhile, here
    function = FunctionType(_unwritten.__code__, space, name)
    function.__qualname__ = name
    function._torchdynamo_disable = True  # type: ignore[attr-defined]  # torch.compile calls it, and doesn't look inside
    return function


def _unwritten(*args: Any, **kwargs: Any) -> Any:  # its names are of the function's own space
    if _meanwhile is not None and _here.trace is not None:  # type: ignore[name-defined]  # noqa: F821
        made = _meanwhile(*args, **kwargs)  # type: ignore[name-defined]  # noqa: F821
        if made is not NotImplemented:
            return made
    return _write()(*args, **kwargs)  # type: ignore[name-defined]  # noqa: F821
