"""Overloads: several signatures under one name, tried in order. No match tells what was given and what is accepted."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar, cast

from weft.autograd.inplace import in_place
from weft.autograd.plain import plain
from weft.core.errors import ArgumentError, WeftError, ours
from weft.core.late import written_late
from weft.ops import extras
from weft.ops.declaration import OPERAND_KINDS, Param
from weft.ops.explain import ABSENT, accepts, describe, hint, misplaced, named
from weft.ops.keywords import FORMER, known, place_of
from weft.tensor.tensor import Tensor

Function = Callable[..., Any]
F = TypeVar("F", bound=Function)
SAID = (WeftError, AssertionError, Warning)  # said already; a broken invariant; asked for by a filter


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
        self.places = [p.name for p in self.positional] + [self.open] * bool(self.open)
        self.places += [p.name for p in self.params if p.keyword_only]
        self.by_name = {p.name: p for p in self.params}

    def refusal(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str | None:
        """Why these arguments don't fit; None if they do."""
        if len(args) > len(self.positional) and not self.open:
            n = len(self.positional)
            return f"takes {n} positional argument{'s' * (n != 1)} but {len(args)} were given"
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

    def renamed(self, function: str, kwargs: dict[str, Any]) -> dict[str, Any] | None:
        """Keywords by the names that the parameters have here; None where that changes nothing."""
        names = self.places
        given = _reducing(kwargs) if "reduction" in names and known(function, FORMER[0]) else kwargs
        places = {k: place_of(function, k, names) for k in given}
        own = {k if i is None else names[i]: given[k] for k, i in places.items()}
        return own if len(own) == len(given) and own.keys() != kwargs.keys() else None

    def spread(self, function: str, kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Arguments, all by name, with those for `*shape` or `*dims` in their place."""
        last = len(self.positional)
        named = next((k for k in kwargs if self.open and place_of(function, k, self.places) == last), None)
        if named is None or any(p.name not in kwargs for p in self.positional):
            return (), kwargs
        left = {k: v for k, v in kwargs.items() if k != named and k not in {p.name for p in self.positional}}
        return (*(kwargs[p.name] for p in self.positional), kwargs[named]), left

    def text(self, name: str) -> str:
        parts = [*map(_shown, self.positional)]
        keywords = [_shown(p) for p in self.params if p.keyword_only]
        parts += [f"*{self.open}"] if self.open or keywords else []
        parts += [*keywords, f"**{self.options}"] if self.options else keywords
        return f"{name}({', '.join(parts)})"


def _reducing(kwargs: dict[str, Any]) -> dict[str, Any]:
    """Keywords with `reduction` for the two flags that said it in older programs."""
    own = {k: v for k, v in kwargs.items() if k not in FORMER}
    average, reduce = kwargs.get("size_average"), kwargs.get("reduce")
    if average is None and reduce is None:
        return own
    how = "none" if reduce is not None and not reduce else "sum" if average is not None and not average else "mean"
    return {**own, "reduction": how}


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
        for s in signatures if kwargs else ():
            own = s.renamed(name, kwargs)
            if own is not None and s.refusal(args, own) is None:
                return s.f(*args, **own)
        numbers = _numbers(args, kwargs)
        if numbers is not None:
            return dispatch(*numbers[0], **numbers[1])
        given, rest = extras.taken({n for s in signatures for n in s.by_name}, kwargs)
        if given:
            return extras.applied(name, given, dispatch(*args, **rest), in_place)
        raise refused(name, signatures, args, kwargs)

    dispatch.__name__ = dispatch.__qualname__ = name
    dispatch.__doc__ = functions[0].__doc__
    dispatch.signatures = tuple(s.text(name) for s in signatures)  # type: ignore[attr-defined]
    dispatch.functions = functions  # type: ignore[attr-defined]
    return dispatch


def _numbers(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
    """The arguments with Python's numbers for numpy's; None where there are none."""
    given = (*args, *kwargs.values())
    numbers = plain(given)
    n = len(args)
    return None if numbers is given else (numbers[:n], dict(zip(kwargs, numbers[n:], strict=True)))


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
        except Exception as cause:
            if isinstance(cause, SAID) or not ours(cause):
                raise
            numbers = _numbers(args, kwargs)
            if numbers is not None:
                return call(*numbers[0], **numbers[1])
            if kwargs and isinstance(cause, TypeError):
                s = Signature(f)
                taken, rest = extras.taken(s.by_name, kwargs)
                if taken:
                    return extras.applied(name, taken, call(*args, **rest), in_place)
                placed, renamed = dict(zip(s.by_name, args, strict=False)), s.renamed(name, kwargs)
                named = kwargs if renamed is None else renamed
                if twice := sorted(placed.keys() & named.keys()):
                    said = call_text(name, args, kwargs)
                    raise ArgumentError(f"{said}: got several values for {twice[0]!r}") from cause
                given, own = s.spread(name, {**placed, **named})
                if given or own.keys() != kwargs.keys() | placed.keys():
                    return call(*given, **own)
            raise taught(name, f, cause, args, kwargs) from cause

    return cast(F, call)


def forwarding(f: F, name: str) -> F:
    """The function as users call it, for one whose ops judge the arguments: written to take every call, and to hand
    on what fits at the cost of a call. What doesn't fit may do so under the names that others have for a parameter."""
    if hasattr(f, "signatures"):  # overloads judge for themselves
        return f
    space: dict[str, Any] = {"f": f, "absent": ABSENT, "refitted": functools.partial(_refitted, f, name)}
    space |= {"teach": functools.partial(_teach, f, name)}
    call = written_late("call", lambda: _forwarding_text(f, space), space, f"<weft call of {name}>")
    return cast(F, functools.wraps(f)(call))


def _forwarding_text(f: Function, space: dict[str, Any]) -> str:
    parameters = list(inspect.signature(f).parameters.values())
    space |= {f"default_{p.name}": p.default for p in parameters}
    plain = [p for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
    several = next((p.name for p in parameters if p.kind is p.VAR_POSITIONAL), None)
    others = [p for p in parameters if p.kind is p.KEYWORD_ONLY]
    unfit = ["_more", *(f"{p.name} is absent" for p in plain if p.default is p.empty)] + ["_rest"] * (several is None)
    handed = [*(p.name for p in plain), *([f"*{several}"] if several else []), *(f"{p.name}={p.name}" for p in others)]
    header = [f"{p.name}={'absent' if p.default is p.empty else f'default_{p.name}'}" for p in (*plain, *others)]
    header.insert(len(plain), f"*{several or '_rest'}")
    given = "{" + ", ".join(f"{p.name!r}: {p.name}" for p in (*plain, *others)) + "}"
    return f"""def call({", ".join([*header, "**_more"])}):
    try:
        if {" or ".join(unfit)}:
            return refitted({given}, {several or "_rest"}, _more)
        return f({", ".join(handed)})
    except Exception as cause:
        teach(cause, {given}, {several or "()"})
        raise
"""


def _teach(f: Function, name: str, cause: Exception, given: dict[str, Any], rest: tuple[Any, ...]) -> None:
    """Where a function's own Python stumbled over its arguments, raise what it takes."""
    if ours(cause) and not isinstance(cause, SAID):
        given = {k: v for k, v in given.items() if v is not ABSENT}
        args, kwargs = ((*given.values(), *rest), {}) if rest else ((), given)
        raise taught(name, f, cause, args, kwargs) from cause


def _refitted(f: Function, name: str, given: dict[str, Any], rest: tuple[Any, ...], more: dict[str, Any]) -> Any:
    """The call with what came under other names where it belongs, or why it doesn't fit.

    `inplace` is a keyword of every function that has one for it, as it is of ops.
    """
    s = Signature(f)
    taken, more = extras.taken(s.by_name, more)
    if taken:
        first = [given[p.name] for p in s.positional]
        fits = not more and not any(v is ABSENT for v in given.values()) and (s.open or not rest)
        others = {p.name: given[p.name] for p in s.params if p.keyword_only}
        made = f(*first, *rest, **others) if fits else _refitted(f, name, given, rest, more)
        return extras.applied(name, taken, made, in_place)
    overwrite = getattr(f, "overwriting", None) if "inplace" in more else None
    if overwrite is not None:
        return _refitted(
            overwrite if more["inplace"] else f, name, given, rest, {k: v for k, v in more.items() if k != "inplace"}
        )
    args = (*(given[p.name] for p in s.positional), *rest) if rest else ()  # more than there is place for
    given = {k: v for k, v in given.items() if v is not ABSENT and v is not s.by_name[k].default}
    renamed = s.renamed(name, more)
    other = more if renamed is None else renamed
    own = {**given, **other}
    if not rest and len(own) == len(given) + len(other):
        placed, left = s.spread(name, own)
        if s.refusal(placed, left) is None:
            return f(*placed, **left)
    raise refused(name, (s,), args, more if rest else {**given, **more})


def taught(name: str, f: Function, cause: Exception, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Exception:
    """The error to raise where an adapter met one of Python's: that the arguments fit no signature, if they don't."""
    s = Signature(f)
    several = getattr(f, "signatures", None)
    if several is None and s.refusal(args, kwargs) is not None:
        return refused(name, (s,), args, kwargs)
    kind, message = named(cause)
    if type(cause) is IndexError and "Dimension" not in message:  # Python's own words
        message = misplaced({**dict(zip(s.by_name, args, strict=False)), **kwargs}) or message
    accepted = several or (s.text(name),)
    return kind(
        f"{message}{hint(message)}\n  in {call_text(name, args, kwargs)}\n  accepted: "
        + "\n            ".join(accepted)
    )
