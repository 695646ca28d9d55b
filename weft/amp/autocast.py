"""`autocast`: products run in a 16-bit dtype, losses and solvers in float32, everything else in its operands' dtype.

It intercepts calls before the interpreter, so it serves local tensors, global ones, and graphs while they are traced.
`weft/api/cast_rules.py` has the lists.
"""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Callable
from typing import Any, Final, Self

import torch

from weft.api.cast_rules import FULL, OWN, RULES, SHORT
from weft.autograd.trees import leaves, mapped
from weft.core import dtype as dtypes
from weft.core.dispatch import here, hooks, set_modes, without_casts
from weft.core.dtype import DType
from weft.core.errors import OptionError
from weft.ops import ops
from weft.ops.declaration import Op
from weft.tensor.tensor import Tensor

DEFAULTS: Final = {"cpu": dtypes.bfloat16, "cuda": dtypes.float16}
_TREES: Final = (tuple, list, dict)
_SHORTER: Final = (dtypes.bfloat16, dtypes.float16)


class Settings(threading.local):
    """The defaults of autocast in this thread."""

    def __init__(self) -> None:
        self.dtypes, self.cache_enabled = dict(DEFAULTS), True


settings = Settings()


class autocast:
    """A context manager or decorator, in which ops choose their dtype.

    >>> with flow.autocast("cpu", dtype=flow.bfloat16):
    ...     y = flow.ones(2, 3) @ flow.ones(3, 2)
    >>> y.dtype, (y.float() + 1).dtype
    (weft.bfloat16, weft.float32)
    """

    casts = True  # operands, by which `in_own_dtypes` knows it

    def __init__(
        self, device_type: str = "cpu", dtype: Any = None, enabled: bool = True, cache_enabled: bool | None = None
    ) -> None:
        if device_type not in DEFAULTS:
            raise OptionError(f"autocast knows the device types {', '.join(DEFAULTS)}; got {device_type!r}")
        self.device_type = device_type
        self.dtype: DType = settings.dtypes[device_type] if dtype is None else dtypes.of(dtype)
        if enabled and self.dtype not in _SHORTER:
            raise OptionError(f"autocast takes a 16-bit dtype, flow.bfloat16 or flow.float16; got {self.dtype}")
        self.enabled, self.cache_enabled = enabled, settings.cache_enabled if cache_enabled is None else cache_enabled
        self._before: list[tuple[Any, ...]] = []
        self._rules = RULES[device_type]
        self._casts: dict[tuple[int, bool], tuple[Tensor, int, Tensor]] = {}

    def __enter__(self) -> Self:
        self._before.append(here.stack)
        set_modes(stack=(*here.stack, self))
        return self

    def __exit__(self, *_: object) -> None:
        set_modes(stack=self._before.pop())
        if not self._before:
            self._casts.clear()

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def run(*args: Any, **kwargs: Any) -> Any:
            with autocast(self.device_type, self.dtype, self.enabled, self.cache_enabled):
                return function(*args, **kwargs)

        return run

    def intercept(self, op: Op, args: tuple[Any, ...], proceed: Callable[..., Any]) -> Any:
        """The call, with its operands cast; the innermost autocast decides."""
        return proceed(op, self.cast_operands(op, args))

    def cast_operands(self, op: Op, args: tuple[Any, ...]) -> tuple[Any, ...]:
        rule = self._rules.get(op.name)
        return args if rule is None or self not in here.casting else self._changed(rule, args)

    def _changed(self, rule: str, value: tuple[Any, ...]) -> tuple[Any, ...]:
        """Arguments with each floating tensor in the dtype of the rule."""
        if rule == OWN:
            return value
        change = self._shorten if rule == SHORT else self._lengthen if rule == FULL else self._to_widest(value)

        def turn(t: Any) -> Any:
            return change(t) if isinstance(t, Tensor) else t

        return tuple([
            change(v) if isinstance(v, Tensor) else mapped(v, turn) if v.__class__ in _TREES else v
            for v in value
        ])  # fmt: skip

    def _shorten(self, t: Tensor) -> Tensor:
        dtype = t.dtype
        if dtype is self.dtype or not (dtype is dtypes.float32 or dtype in _SHORTER) or not self._here(t):
            return t
        if not (t._requires_grad and dtype is dtypes.float32 and self._before and self.cache_enabled and t.is_leaf):
            return ops.cast(t, self.dtype)
        key = id(t), here.grad
        found = self._casts.get(key)
        if found is not None and found[0] is t and found[1] == t._version and not _released(found[2]):
            return found[2]
        cast = ops.cast(t, self.dtype)
        self._casts[key] = t, t._version, cast
        return cast

    def _lengthen(self, t: Tensor) -> Tensor:
        return ops.cast(t, dtypes.float32) if t.dtype in _SHORTER and self._here(t) else t

    def _to_widest(self, value: Any) -> Callable[[Tensor], Tensor]:
        """A function that casts floating tensors to the widest dtype among those of a tree."""
        kinds = {t.dtype for t in leaves(value) if isinstance(t, Tensor) and t.is_floating_point()}
        widest = dtypes.of_torch(functools.reduce(torch.promote_types, (k.torch for k in kinds), torch.bool))
        others = kinds - {widest}
        return lambda t: ops.cast(t, widest) if t.dtype in others and self._here(t) else t

    def _here(self, t: Tensor) -> bool:
        data = t.blob.now
        if data is not None:
            return data.is_cpu if self.device_type == "cpu" else data.is_cuda
        return (t.device if t.spec is None else t.placement).type == self.device_type

    def _any_here(self, values: tuple[Any, ...]) -> bool:
        for v in values:
            if self._here(v) if isinstance(v, Tensor) else isinstance(v, _TREES) and self._any_here((*leaves(v),)):
                return True
        return False


def _cast_whole(f: Callable[..., Any], name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A call of a function that has a rule as a whole: its operands are cast, and nothing that it is composed of."""
    values, decided = (*args, *kwargs.values()), False
    for kind, rules in RULES.items():
        found, rule = innermost(kind), rules.get(name)
        if found is not None and found.enabled and rule is not None and found._any_here(values):
            values, decided = found._changed(rule, values), True
    if not decided:
        return f(*args, **kwargs)
    return without_casts(f, values[: len(args)], dict(zip(kwargs, values[len(args) :], strict=True)))


def _cast_operands(op: Op, args: tuple[Any, ...]) -> tuple[Any, ...]:
    for level in here.casting:
        args = level.cast_operands(op, args)
    return args


hooks.cast, hooks.cast_operands = _cast_whole, _cast_operands


def _released(t: Tensor) -> bool:
    """Whether backward has freed this cast, so that it can't be used again."""
    return t.node is not None and getattr(t.node, "saved", ()) is None


def innermost(device_type: str | None = None) -> autocast | None:
    """The autocast that is active in this thread: for one device type, or the last one entered."""
    kinds = DEFAULTS if device_type is None else (device_type,)
    return next((i for i in reversed(here.stack) if isinstance(i, autocast) and i.device_type in kinds), None)


def autocast_decorator(*args: Any, **kwargs: Any) -> Callable[..., Any]:
    """autocast as a decorator: `@flow.autocast_decorator("cpu")`."""
    return autocast(*args, **kwargs)


autocast_decorator.__signature__ = inspect.signature(autocast)


def is_autocast_enabled(device_type: str | None = None) -> bool:
    """Whether autocast is active in this thread."""
    found = innermost(device_type)
    return found is not None and found.enabled


def set_autocast_enabled(*given: Any) -> None:
    """Turn autocast on or off without a `with`, until the enclosing `with` ends: `set_autocast_enabled(True)`,
    `("cpu", True)`."""
    *device_type, enabled = given
    kind = device_type[0] if device_type else "cuda" if torch.cuda.is_available() else "cpu"
    stack = here.stack[:-1] if here.stack and isinstance(here.stack[-1], _Standing) else here.stack
    set_modes(stack=(*stack, _Standing(kind, enabled=bool(enabled))))


class _Standing(autocast):
    """An autocast that `set_autocast_enabled` turned on."""


def is_autocast_cache_enabled() -> bool:
    """Whether casts of parameters are cached (the default)."""
    found = innermost()
    return settings.cache_enabled if found is None else found.cache_enabled


def set_autocast_cache_enabled(enabled: bool) -> None:
    """Set whether casts of parameters are cached, in the active autocast or else in later ones."""
    (innermost() or settings).cache_enabled = bool(enabled)


def clear_autocast_cache() -> None:
    """Clear the cached casts of parameters."""
    found = innermost()
    if found is not None:
        found._casts.clear()


def get_autocast_dtype(device_type: str) -> DType:
    """The autocast dtype on a device type."""
    found = innermost(device_type)
    return found.dtype if found is not None else settings.dtypes[device_type]


def set_autocast_dtype(device_type: str, dtype: Any) -> None:
    """Set the autocast dtype on a device type, in the active autocast or else in later ones."""
    found, kind = innermost(device_type), dtypes.of(dtype)
    if kind not in _SHORTER:
        raise OptionError(f"autocast takes a 16-bit dtype, flow.bfloat16 or flow.float16; got {kind}")
    if found is not None:
        found.dtype = kind
    else:
        settings.dtypes[device_type] = kind


def get_autocast_cpu_dtype() -> DType:
    """The autocast dtype on the CPU."""
    return get_autocast_dtype("cpu")


def get_autocast_gpu_dtype() -> DType:
    """The autocast dtype on GPUs."""
    return get_autocast_dtype("cuda")


def set_autocast_cpu_dtype(dtype: Any) -> None:
    """Set the autocast dtype on the CPU, in the active autocast or else in later ones."""
    set_autocast_dtype("cpu", dtype)


def set_autocast_gpu_dtype(dtype: Any) -> None:
    """Set the autocast dtype on GPUs, in the active autocast or else in later ones."""
    set_autocast_dtype("cuda", dtype)


def is_autocast_available(device_type: str) -> bool:
    """Whether a device type has autocast."""
    return device_type in DEFAULTS
