"""Grad modes: `no_grad`, `enable_grad`, `inference_mode`, `set_grad_enabled`; anomaly mode."""

from __future__ import annotations

import contextlib
import functools
import inspect
import traceback
from collections.abc import Callable
from typing import Any, TypeVar

from torch.utils._contextlib import context_decorator

from weft.core.dispatch import here, set_modes
from weft.core.program_line import INSIDE
from weft.ops.declaration import Op

F = TypeVar("F", bound=Callable[..., Any])


class _GradMode:
    """A context manager and a decorator: the common part of the final classes below."""

    mode: bool

    def __init__(self, function: Callable[..., Any] | None = None) -> None:
        self._function = None if function is None else _decorate(function, self.mode)
        self._before: list[bool] = []
        if function is not None:
            functools.update_wrapper(self, function)

    def __enter__(self) -> None:
        self._before.append(here.grad)
        here.grad = self.mode

    def __exit__(self, *_: object) -> None:
        here.grad = self._before.pop()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._function is not None:  # written as @no_grad, without parentheses
            return self._function(*args, **kwargs)
        return _decorate(args[0], self.mode)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)


def _decorate(f: Callable[..., Any], mode: bool) -> Callable[..., Any]:
    if inspect.isgeneratorfunction(f):
        return context_decorator(lambda: (enable_grad if mode else no_grad)(), f)  # not between its yields

    @functools.wraps(f)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        before, here.grad = here.grad, mode
        try:
            return f(*args, **kwargs)
        finally:
            here.grad = before

    return wrapped


class no_grad(_GradMode):
    """A context manager or decorator that disables recording of gradients.

    >>> with flow.no_grad():
    ...     (flow.ones(2, requires_grad=True) * 2).requires_grad
    False
    """

    mode = False


class enable_grad(_GradMode):
    """A context manager or decorator that enables gradients, even within `no_grad`."""

    mode = True


class inference_mode(_GradMode):
    """`no_grad`; `inference_mode(False)` enables gradients."""

    mode = False

    def __init__(self, mode: bool | Callable[..., Any] = True) -> None:
        super().__init__(None if isinstance(mode, bool) else mode)
        if isinstance(mode, bool):
            self.mode = not mode


class set_grad_enabled(_GradMode):
    """Sets the grad mode at once; as a context manager, restores it at the end. `is_train` is OneFlow's name for it."""

    def __init__(self, mode: bool = True, *, is_train: bool = True) -> None:
        super().__init__()
        self.mode = mode and is_train
        self._previous, here.grad = here.grad, self.mode

    def __enter__(self) -> None:
        here.grad = self.mode

    def __exit__(self, *_: object) -> None:
        here.grad = self._previous

    def __call__(self, f: F) -> Any:  # type: ignore[override]
        here.grad = self._previous
        return _decorate(f, self.mode)


def is_grad_enabled() -> bool:
    return here.grad


class Anomaly:
    """Keeps the stack of every recorded call; backward then raises on NaN gradients."""

    def __init__(self, check_nan: bool) -> None:
        self.check_nan = check_nan

    def intercept(self, op: Op, args: tuple[Any, ...], proceed: Callable[..., Any]) -> Any:
        out = proceed(op, args)
        for y in out if isinstance(out, tuple) else (out,):
            node = getattr(y, "grad_fn", None)
            if node is not None and getattr(node, "origin", None) is None and hasattr(node, "origin"):
                node.origin = call_stack()
        return out


def anomaly() -> Anomaly | None:
    """The anomaly mode of this thread."""
    return next((i for i in here.stack if isinstance(i, Anomaly)), None) if here.stack else None


def call_stack() -> str:
    """The user's part of the stack, innermost last."""
    frames = traceback.extract_stack()
    return "".join(traceback.format_list([f for f in frames if not f.filename.startswith(INSIDE)][-8:]))


class set_detect_anomaly(contextlib.AbstractContextManager[None]):
    """Sets anomaly mode at once; as a context manager, restores it at the end.

    In it, an error in backward shows where the forward call was made, and a NaN gradient is an error.
    """

    def __init__(self, mode: bool = True, check_nan: bool = True) -> None:
        self._before = here.stack
        others = tuple(i for i in here.stack if not isinstance(i, Anomaly))
        set_modes(stack=(*others, Anomaly(check_nan)) if mode else others)

    def __exit__(self, *error: Any) -> None:
        set_modes(stack=self._before)


class detect_anomaly(contextlib.AbstractContextManager[None]):
    """A context manager for anomaly mode: see `set_detect_anomaly`."""

    def __init__(self, check_nan: bool = True) -> None:
        self._check_nan = check_nan

    def __enter__(self) -> None:
        self._setting = set_detect_anomaly(True, self._check_nan)

    def __exit__(self, *error: Any) -> None:
        self._setting.__exit__(*error)
