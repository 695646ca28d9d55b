"""Overloads: several signatures under one name, tried in order. If none fits, the error lists them all."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from types import FunctionType, NoneType
from typing import Any, TypeVar

import torch

from weft.api import cast_rules
from weft.api.fast_path import shortened
from weft.autograd.inplace import in_place
from weft.autograd.plain import numbered, plain, taken, theirs
from weft.core.errors import ArgumentError, WeftError, ours
from weft.core.late import written_late
from weft.ops import out_argument
from weft.ops.declaration import OPERAND_KINDS, Param, written
from weft.ops.explain import ABSENT, accepts, describe, hint, misplaced, named, wrong
from weft.ops.keywords import FORMER, known, place_of
from weft.tensor.parameter import Parameter
from weft.tensor.tensor import Tensor

Function = Callable[..., Any]
F = TypeVar("F", bound=Function)
DECIDING = frozenset({Tensor, Parameter, int, float, bool, NoneType})  # what these hold doesn't matter
SAID = (WeftError, AssertionError, Warning)  # explained already; a broken invariant; raised by a filter


class Signature:
    """One way to call a function: its annotated parameters."""

    def __init__(self, f: Function) -> None:
        self.f = f
        parameters = list(inspect.signature(f).parameters.values())
        self.open = "".join(p.name for p in parameters if p.kind is p.VAR_POSITIONAL)
        self.options = "".join(p.name for p in parameters if p.kind is p.VAR_KEYWORD)
        self.params = tuple(
            Param(p.name, OPERAND_KINDS.get(text := _text(p.annotation), "attribute"), text, p.default,
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
                return wrong(p, value)
        for name, value in kwargs.items():
            p = self.by_name.get(name)
            if p is None and not self.options:
                return f"got an unexpected argument '{name}'"
            if p is not None and not _takes(p, value):
                return wrong(p, value)
        for p in self.params[len(args) :] if len(args) <= len(self.positional) else ():
            if p.required and p.name not in kwargs:
                return f"missing required argument '{p.name}'"
        return None

    def numbered(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
        """The arguments with numbers in place of 0-d tensors that stand for one; None if there are none."""
        places = {**dict(enumerate(self.positional)), **self.by_name}
        given = {k: v for k, v in {**dict(enumerate(args)), **kwargs}.items() if k in places}
        found = dict(zip(given, numbered([places[k] for k in given], given.values()), strict=True))
        if all(found[k] is v for k, v in given.items()):
            return None
        return tuple(found.get(i, a) for i, a in enumerate(args)), {k: found.get(k, v) for k, v in kwargs.items()}

    def renamed(self, function: str, kwargs: dict[str, Any]) -> dict[str, Any] | None:
        """Keywords under the parameters' names here, in place of aliases; None if nothing changes."""
        names = self.places
        given = _reducing(kwargs) if "reduction" in names and known(function, FORMER[0]) else kwargs
        places = {k: place_of(function, k, names) for k in given}
        own = {k if i is None else names[i]: given[k] for k, i in places.items()}
        return own if len(own) == len(given) and own.keys() != kwargs.keys() else None

    def spread(self, function: str, kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """All arguments by name, with those for `*shape` or `*dims` gathered."""
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
    """Keywords with `reduction` in place of the deprecated `size_average` and `reduce`."""
    own = {k: v for k, v in kwargs.items() if k not in FORMER}
    average, reduce = kwargs.get("size_average"), kwargs.get("reduce")
    if average is None and reduce is None:
        return own
    how = "none" if reduce is not None and not reduce else "sum" if average is not None and not average else "mean"
    return {**own, "reduction": how}


def _shown(p: Param) -> str:
    default = p.default.__name__ if isinstance(p.default, FunctionType) else repr(p.default)
    return f"{p.name}: {p.type}" + ("" if p.required else f" = {default}")


def _takes(p: Param, value: Any) -> bool:
    """Whether the parameter takes the value. Stricter than an op, which takes a one-element tensor for a number."""
    if isinstance(value, Tensor) and p.kind == "attribute":
        return "Tensor" in p.type or p.type == "Any"
    return accepts(p, value)


def _text(annotation: Any) -> str:
    return "Any" if annotation is inspect.Parameter.empty else written(annotation)


def overloaded(name: str, *functions: Function) -> Function:
    """One function made of overloads: the first whose signature fits the arguments is called."""
    signatures = tuple(Signature(f) for f in functions)
    fitting: dict[Any, Signature] = {}  # by the arguments' types, where these alone decide

    @functools.wraps(functions[0])
    def dispatch(*args: Any, **kwargs: Any) -> Any:
        types = *map(type, args), *map(type, kwargs.values())
        if (found := fitting.get((types, *kwargs))) is not None:
            return tried(found, args, kwargs)
        for s in signatures:
            if s.refusal(args, kwargs) is None:
                if DECIDING.issuperset(types):
                    fitting[(types, *kwargs)] = s
                return tried(s, args, kwargs)
        for s in signatures if kwargs else ():
            own = s.renamed(name, kwargs)
            if own is not None and s.refusal(args, own) is None:
                return tried(s, args, own)
        numbers = _numbers(args, kwargs)
        if numbers is not None:
            return dispatch(*numbers[0], **numbers[1])
        for s in signatures:
            numbers = s.numbered(args, kwargs)
            if numbers is not None and s.refusal(*numbers) is None:
                return tried(s, *numbers)
        names = {n for s in signatures for n in s.by_name}
        given, rest = out_argument.taken(name, names, kwargs)
        if given:
            rest = out_argument.typed(name, names, given, rest)
            return out_argument.applied(name, given, dispatch(*args, **rest), in_place)
        raise refused(name, signatures, args, kwargs)

    def tried(s: Signature, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        try:
            return s.f(*args, **kwargs)
        except Exception as cause:
            if isinstance(cause, SAID) or not ours(cause):
                raise
            raise taught(name, dispatch, cause, args, kwargs) from cause

    dispatch.__name__ = dispatch.__qualname__ = name
    dispatch.__doc__ = functions[0].__doc__
    dispatch.signatures = tuple(s.text(name) for s in signatures)  # type: ignore[attr-defined]
    dispatch.functions = functions  # type: ignore[attr-defined]
    return cast_rules.whole(dispatch, name)


def _numbers(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
    """The arguments with NumPy's numbers converted to Python's; None if there are none."""
    given = (*args, *kwargs.values())
    numbers = plain(given)
    n = len(args)
    return None if numbers is given else (numbers[:n], dict(zip(kwargs, numbers[n:], strict=True)))


def _scales_apart(s: Signature, args: tuple[Any, ...]) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
    """The arguments in today's order, if numbers that are keywords now stand before the tensors that they scale, as
    older programs have them: `x.add_(2, y)`; or after all, as OneFlow's: `addmm(x, a, b, alpha, beta)`. None if they
    don't."""
    scales = [p.name for p in s.params if p.keyword_only and p.name in ("value", "beta", "alpha")]
    tensors = tuple(a for a in args if isinstance(a, Tensor))
    numbers = [a for a in args if type(a) in (int, float)]
    misfit = len(numbers) > len(scales) or len(tensors) + len(numbers) < len(args)
    if type(args[-1]) in (int, float):
        misfit = misfit or len(scales) < 2 or not all(isinstance(a, Tensor) for a in args[: len(tensors)])
        scales.reverse()
    return None if misfit or len(tensors) != len(s.positional) else (tensors, dict(zip(scales, numbers, strict=False)))


def refused(
    name: str, signatures: tuple[Signature, ...], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> ArgumentError:
    """The error for a call that fits no signature."""
    call = call_text(name, args, kwargs)
    lines = [f"{call}: no signature takes these arguments; there are"]
    lines += [f"  {s.text(name)}\n      {s.refusal(args, kwargs)}" for s in signatures]
    if len(signatures) == 1:
        lines = [f"{name}(): {signatures[0].refusal(args, kwargs)}", f"  given: {call}",
                 f"  accepted: {signatures[0].text(name)}"]  # fmt: skip
    return ArgumentError("\n".join(lines))


def call_text(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    return f"{name}({', '.join([*map(describe, args), *(f'{k}={describe(v)}' for k, v in kwargs.items())])})"


def door(f: F, name: str = "") -> F:
    """Wrap a public function, so that calls that don't fit are translated or explained.

    The wrapper has the function's own parameters, so a call that fits costs one extra call. If it doesn't fit, `Door`
    tries the aliases of keywords; if the function's Python fails on its arguments, the error lists the signatures.
    """
    if hasattr(f, "signatures"):  # overloads, and what is wrapped already, check themselves
        return f
    name = name or f.__name__
    way = Door(cast_rules.whole(f, name), name)
    made = opened(way)
    if hasattr(f, "in_one"):
        made = way.fast = shortened(f, made)
    return made


def opened(made: Door) -> Any:
    """The wrapper of a door's function, as users call it."""
    space: dict[str, Any] = {"_function": made.f, "_absent": ABSENT, "_refit": made.refit, "_again": made.again}
    space |= {"_torchs": torch.Tensor, "_own": taken}  # what was given is a result, too
    call = written_late("call", lambda: _text_of_call(made.f, space), space, f"<weft call of {made.name}>")
    return functools.wraps(made.f)(call)


def _text_of_call(f: Function, space: dict[str, Any]) -> str:
    parameters = list(inspect.signature(f).parameters.values())
    space |= {f"default_{p.name}": p.default for p in parameters}
    plain = [p for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.POSITIONAL_ONLY)]
    several = next((p.name for p in parameters if p.kind is p.VAR_POSITIONAL), None)
    options = next((p.name for p in parameters if p.kind is p.VAR_KEYWORD), None)
    others = [p for p in parameters if p.kind is p.KEYWORD_ONLY]
    rest, more = several or "_rest", options or "_more"
    unfit = [f"{p.name} is _absent" for p in (*plain, *others) if p.default is p.empty]
    unfit += [rest] * (several is None) + [more] * (options is None)
    handed = [*(p.name for p in plain), *[f"*{rest}"] * (several is not None), *(f"{p.name}={p.name}" for p in others)]
    handed += [f"**{more}"] * (options is not None)
    header = [f"{p.name}={'_absent' if p.default is p.empty else f'default_{p.name}'}" for p in (*plain, *others)]
    header.insert(len(plain), f"*{rest}")
    given = "{" + ", ".join(f"{p.name!r}: {p.name}" for p in (*plain, *others)) + "}"
    return f"""def call({", ".join([*header, f"**{more}"])}):
    {"if " + " or ".join(unfit) + ":" if unfit else "if False:"}
        return _refit({given}, {rest}, {more})
    try:
        _made = _function({", ".join(handed)})
        return _own(_made) if type(_made) is _torchs else _made
    except Exception as _cause:
        _made = _again(_cause, {given}, {rest}, {more})
        if _made is _absent:
            raise
        return _made
"""


class Door:
    """Handles the calls that don't fit the function behind it, or fail there."""

    def __init__(self, f: Function, name: str) -> None:
        self.f, self.name = f, name
        self.fast: Function | None = None  # with the fast path

    @functools.cached_property
    def signature(self) -> Signature:
        return Signature(self.f)

    def refit(self, given: dict[str, Any], rest: tuple[Any, ...], more: dict[str, Any]) -> Any:
        """The call with aliased keywords renamed, or the error why it doesn't fit.

        `inplace` is accepted by every function that has an in-place form, as by ops.
        """
        s = self.signature
        taken, more = out_argument.taken(self.name, s.by_name, more)
        if taken:
            given = out_argument.typed(self.name, s.by_name, taken, given)
            return out_argument.applied(self.name, taken, self._called(given, rest, more), in_place)
        overwrite = getattr(self.f, "overwriting", None) if "inplace" in more else None
        if overwrite is not None:
            left = {k: v for k, v in more.items() if k != "inplace"}
            return Door(overwrite if more["inplace"] else self.f, self.name).refit(given, rest, left)
        args = (*(given[p.name] for p in s.positional), *rest) if rest else ()  # more than the parameters
        if rest and len(s.positional) == 2 and "Sequence[int]" in s.positional[1].type:
            numbers = args[1:]
            if all(type(n) is int for n in numbers):  # count_nonzero(0, 2): several numbers are one sequence
                return self._called({**given, s.positional[1].name: numbers}, (), more)
        given = {k: v for k, v in given.items() if v is not ABSENT and v is not s.by_name[k].default}
        renamed = s.renamed(self.name, more)
        other = more if renamed is None else renamed
        own = {**given, **other}
        if not rest and len(own) == len(given) + len(other):
            placed = s.spread(self.name, own)
            for fitting in (placed, s.numbered(*placed)):
                if fitting is not None and s.refusal(*fitting) is None:
                    return self._tried(*fitting)
        older = _scales_apart(s, args) if rest and not more else None
        if older is not None:
            return self._tried(*older)
        numbers = _numbers(args, {**given, **other} if not rest else other)
        if numbers is not None and s.refusal(*numbers) is None:
            return self._tried(*numbers)
        raise refused(self.name, (s,), args, more if rest else {**given, **more})

    def _called(self, given: dict[str, Any], rest: tuple[Any, ...], more: dict[str, Any]) -> Any:
        """The call as the user made it, without the keywords that were handled."""
        s = self.signature
        if more or any(v is ABSENT for v in given.values()) or (rest and not s.open):
            return self.refit(given, rest, more)
        args = (*(given[p.name] for p in s.positional), *rest)
        others = {p.name: given[p.name] for p in s.params if p.keyword_only}
        return self._tried(args, others) if self.fast is None else self.fast(*args, **others)

    def _tried(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        try:
            return self.f(*args, **kwargs)
        except Exception as cause:
            made = self._after(cause, args, kwargs)
            if made is ABSENT:
                raise
            return made

    def again(self, cause: Exception, given: dict[str, Any], rest: tuple[Any, ...], more: dict[str, Any]) -> Any:
        """Retry a call that fitted and failed, with Python's numbers in place of NumPy's, or explain its error with the
        signatures; ABSENT if the error explains itself."""
        by_name = self.signature.by_name
        usual = [k for k, v in given.items() if v is by_name[k].default]
        ahead = [p.name for p in self.signature.positional]
        while not rest and ahead and ahead[-1] in usual:
            ahead.pop()
        kwargs = {k: v for k, v in given.items() if k not in ahead and k not in usual}
        return self._after(cause, (*(given[n] for n in ahead), *rest), {**kwargs, **more})

    def _after(self, cause: Exception, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if not isinstance(cause, WeftError) and not ours(cause):
            return ABSENT
        numbers = self.signature.numbered(args, kwargs)
        if numbers is not None:
            return self._tried(*numbers)
        numbers = _numbers(args, kwargs)
        if isinstance(cause, SAID) and (numbers is None or not theirs((*args, *kwargs.values()))):
            return ABSENT
        if numbers is not None:
            return self._tried(*numbers)
        raise taught(self.name, self.f, cause, args, kwargs) from cause


def taught(name: str, f: Function, cause: Exception, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Exception:
    """The error for an adapter's failure: that the arguments fit no signature, if they don't."""
    s = Signature(f)
    several = getattr(f, "signatures", None)
    if several is None and s.refusal(args, kwargs) is not None:
        return refused(name, (s,), args, kwargs)
    kind, message = named(cause)
    if type(cause) is IndexError and "Dimension" not in message:  # Python's own message
        message = misplaced({**dict(zip(s.by_name, args, strict=False)), **kwargs}) or message
    accepted = several or (s.text(name),)
    return kind(
        f"{message}{hint(message)}\n  in {call_text(name, args, kwargs)}\n  accepted: "
        + "\n            ".join(accepted)
    )
