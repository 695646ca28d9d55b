"""Shape and dtype inference: by the declaration, else by the kernel on meta tensors; cached."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import torch

from weft.core import dtype as dtypes
from weft.core.device import Device
from weft.core.errors import ArgumentError, DtypeError, IndexingError, ShapeError, TraceError
from weft.ops.blame import refusal
from weft.ops.declaration import OPS, Op
from weft.ops.explain import call_text, explain
from weft.ops.form import Form, declared
from weft.tensor.tensor import of_torch

META = Device("meta")
READS_VALUES = ("on meta tensors", "register_meta function for torch.nonzero")  # messages of kernels that do


class Number(NamedTuple):
    """A number in a cache key: 1, 1.0 and True are equal in Python, and promote differently."""

    value: Any
    type: type


class Between(NamedTuple):
    """A slice in a cache key: Python's isn't hashable."""

    start: Any
    stop: Any
    step: Any


def freeze(value: Any) -> Any:
    """A hashable copy of an argument."""
    kind = type(value)
    if kind is Form or value is None:
        return value
    if kind is tuple or kind is list:
        return tuple([freeze(v) for v in value])
    if isinstance(value, slice):
        return Between(value.start, value.stop, value.step)
    if isinstance(value, (int, float, complex)):
        return Number(value, kind)
    if isinstance(value, (list, tuple)) and not isinstance(value, (Number, Between)):
        return tuple([freeze(v) for v in value])
    return value


def thaw(value: Any) -> Any:
    if isinstance(value, Number):
        return value.value
    if isinstance(value, Between):
        return slice(*value)
    if isinstance(value, tuple) and not isinstance(value, Form):
        return tuple(thaw(v) for v in value)
    return value


def infer(op: Op, args: tuple[Any, ...]) -> tuple[Form, ...]:
    """The outputs' forms. `args` hold a Form in place of every tensor."""
    return _infer(op.name, freeze(args))


@functools.lru_cache(maxsize=1 << 16)
def _infer(name: str, frozen: tuple[Any, ...]) -> tuple[Form, ...]:
    op, args = OPS[name], thaw(frozen)
    if op.conversion:
        return (args[0],)
    forms = declared(op, args)
    if forms is not None:
        return forms
    if op.kernel.__module__.startswith("weft.") and (error := _refusal(op, args)) is not None:
        raise error
    meta = [_made(a, "meta") for a in args]
    if "device" in op.names:
        meta[op.names.index("device")] = META
    try:
        result = op.compute(meta)
    except Exception as cause:
        shown = tuple(_shown(a, "meta") for a in args)
        if any(words in str(cause) for words in READS_VALUES):
            raise TraceError(
                f"{op.name} has a result whose shape depends on a tensor's values, which aren't known before it "
                f"runs: {call_text(op, shown)}. In a graph, call it outside of build(), give a number in the tensor's "
                "place, or use flow.where or a mask, which keep the shape"
            ) from cause
        raise explain(op, cause, shown) from cause
    results = (result,) if len(op.returns) == 1 else tuple(result) if op.returns else ()
    return tuple(Form(tuple(r.shape), dtypes.of_torch(r.dtype)) for r in results)


def check(op: Op, args: tuple[Any, ...]) -> None:
    """Raise the error of a call whose kernel takes no such operands, which a declared form needn't tell."""
    error = _checked(op.name, freeze(args))
    if error is not None:
        raise error


@functools.lru_cache(maxsize=1 << 12)
def _checked(name: str, frozen: tuple[Any, ...]) -> Exception | None:
    return _refusal(OPS[name], thaw(frozen))


def _refusal(op: Op, args: tuple[Any, ...]) -> Exception | None:
    """The error for shapes that real operands would raise: on meta tensors torch imports its compiler to raise it."""
    cause = refusal(op, tuple(_made(a, "cpu") for a in args))
    error = None if cause is None else explain(op, cause, tuple(_shown(a, "cpu") for a in args))
    known = type(error) in (ArgumentError, ShapeError, IndexingError, DtypeError)
    return error if known or isinstance(cause, (TypeError, ValueError)) else None  # others may be of the values


def _made(a: Any, device: str) -> Any:
    if isinstance(a, Form):
        if device == "meta":
            return torch.empty(a.shape, dtype=a.dtype.torch, device=device)
        return torch.zeros((), dtype=a.dtype.torch).expand(a.shape)
    if isinstance(a, tuple) and any(isinstance(v, Form) for v in a):
        forms = dict.fromkeys(v for v in a if isinstance(v, Form))  # an update has hundreds of operands of few forms
        made = {form: _made(form, device) for form in forms}
        return [made[v] if isinstance(v, Form) else _made(v, device) for v in a]
    return a


def _shown(a: Any, device: str) -> Any:
    """The argument with Weft tensors for forms, so that errors show shapes."""
    if isinstance(a, tuple) and not isinstance(a, Form):
        return tuple(_shown(v, device) for v in a)
    return of_torch(_made(a, device)) if isinstance(a, Form) else a
