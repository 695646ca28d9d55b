"""Overloads: several signatures under one name, tried in order. No match tells what was given and what is accepted."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar, cast

from weft.core.errors import ArgumentError, WeftError
from weft.ops.declaration import OPERAND_KINDS, Param
from weft.ops.explain import accepts, describe, hint, named
from weft.tensor.tensor import Tensor

Function = Callable[..., Any]
F = TypeVar("F", bound=Function)


class Signature:
    """One way to call a function: its parameters, as they are annotated."""

    def __init__(self, f: Function) -> None:
        self.f = f
        parameters = list(inspect.signature(f).parameters.values())
        self.open = "".join(p.name for p in parameters if p.kind is p.VAR_POSITIONAL)
        self.options = "".join(p.name for p in parameters if p.kind is p.VAR_KEYWORD)
        self.params = tuple(
            Param(p.name, OPERAND_KINDS.get(str(p.annotation), "attribute"), _text(p.annotation), p.default,
                  p.kind is p.KEYWORD_ONLY)
            for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
        )  # fmt: skip
        self.positional = tuple(p for p in self.params if not p.keyword_only)
        self.by_name = {p.name: p for p in self.params}

    def refusal(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str | None:
        """Why these arguments don't fit; None if they do."""
        if len(args) > len(self.positional) and not self.open:
            return f"takes {len(self.positional)} positional arguments but {len(args)} were given"
        for p, value in zip(self.positional, args, strict=False):
            if p.name in kwargs:
                return f"got several values for argument '{p.name}'"
            if not _takes(p, value):
                return _wrong(p, value)
        for name, value in kwargs.items():
            p = self.by_name.get(name)
            if p is None and not self.options:
                return f"got an unexpected argument '{name}'"
            if p is not None and not _takes(p, value):
                return _wrong(p, value)
        for p in self.params[len(args) :] if len(args) <= len(self.positional) else ():
            if p.required and p.name not in kwargs:
                return f"missing required argument '{p.name}'"
        return None

    def text(self, name: str) -> str:
        parts = [*map(_shown, self.positional)]
        keywords = [_shown(p) for p in self.params if p.keyword_only]
        parts += [f"*{self.open}"] if self.open or keywords else []
        parts += [*keywords, f"**{self.options}"] if self.options else keywords
        return f"{name}({', '.join(parts)})"


def _shown(p: Param) -> str:
    return f"{p.name}: {p.type}" + ("" if p.required else f" = {p.default!r}")


def _takes(p: Param, value: Any) -> bool:
    """Stricter than an op, which takes a tensor of one element for a number: that would blur overloads."""
    if isinstance(value, Tensor) and p.kind == "attribute":
        return "Tensor" in p.type or p.type == "Any"
    return accepts(p, value)


def _text(annotation: Any) -> str:
    return "Any" if annotation is inspect.Parameter.empty else str(annotation)


def _wrong(p: Param, value: Any) -> str:
    wanted = {"tensor": "tensor", "operand": "tensor or number", "optional": "tensor or None"}.get(p.kind)
    wanted = wanted or ("a sequence of tensors" if p.kind == "tensors" else p.type)
    return f"argument '{p.name}' must be {wanted}, not {type(value).__name__}"


def overloaded(name: str, *functions: Function) -> Function:
    """One function out of several: the first whose signature fits the arguments is called."""
    signatures = tuple(Signature(f) for f in functions)

    @functools.wraps(functions[0])
    def dispatch(*args: Any, **kwargs: Any) -> Any:
        for s in signatures:
            if s.refusal(args, kwargs) is None:
                return s.f(*args, **kwargs)
        raise refused(name, signatures, args, kwargs)

    dispatch.__name__ = dispatch.__qualname__ = name
    dispatch.__doc__ = functions[0].__doc__
    dispatch.signatures = tuple(s.text(name) for s in signatures)  # type: ignore[attr-defined]
    dispatch.functions = functions  # type: ignore[attr-defined]
    return dispatch


def refused(
    name: str, signatures: tuple[Signature, ...], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> ArgumentError:
    """The error of a call that fits no signature."""
    call = call_text(name, args, kwargs)
    lines = [f"{call}: no signature takes these arguments; there are"]
    lines += [f"  {s.text(name)}\n      {s.refusal(args, kwargs)}" for s in signatures]
    if len(signatures) == 1:
        lines = [f"{name}(): {signatures[0].refusal(args, kwargs)}", f"  given: {call}",
                 f"  accepted: {signatures[0].text(name)}"]  # fmt: skip
    return ArgumentError("\n".join(lines))


def call_text(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    return f"{name}({', '.join([*map(describe, args), *(f'{k}={describe(v)}' for k, v in kwargs.items())])})"


def guarded(f: F, name: str = "") -> F:
    """The function as users call it: where its Python stumbles over the arguments, they read what it takes."""
    name = name or f.__name__

    @functools.wraps(f)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return f(*args, **kwargs)
        except (WeftError, AssertionError, Warning):  # said already; a broken invariant; asked for by a filter
            raise
        except Exception as cause:
            if not _ours(cause):
                raise
            raise taught(name, f, cause, args, kwargs) from cause

    return cast(F, call)


def _ours(error: Exception) -> bool:
    """Whether an error comes from here or from a kernel, not from a function of the user's that was called back."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    raised_in = "" if trace is None else trace.tb_frame.f_globals.get("__name__", "")
    return raised_in.partition(".")[0] in ("", "weft", "torch", "numpy")


def taught(name: str, f: Function, cause: Exception, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Exception:
    """The error to raise where an adapter met one of Python's: that the arguments fit no signature, if they don't."""
    s = Signature(f)
    several = getattr(f, "signatures", None)
    if several is None and s.refusal(args, kwargs) is not None:
        return refused(name, (s,), args, kwargs)
    kind, message = named(cause)
    accepted = several or (s.text(name),)
    return kind(
        f"{message}{hint(message)}\n  in {call_text(name, args, kwargs)}\n  accepted: "
        + "\n            ".join(accepted)
    )
