"""Stubs of modules derived from torch's, with Weft's tensors in the place of torch's."""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Iterable
from typing import Any, Final

from tools.declared import Text, of_function
from weft.core.derived import is_derived

LOOSE: Final = (  # what torch's own annotations get wrong: options that may be None, among others
    "# pyright: reportArgumentType=false, reportIncompatibleMethodOverride=false\n"
    "# pyright: reportIncompatibleVariableOverride=false\n"
)
MAGIC: Final = ("__init__", "__call__", "__len__", "__getitem__", "__iter__")


def page(module: types.ModuleType, homes: Iterable[str], text: Text) -> str:
    """What a derived module has: `homes` are those that have a stub of their own, to be imported from."""
    homes = {*homes} - {module.__name__}
    kinds: dict[str, type] = {}
    parts = []
    for home in homes:
        if home.rpartition(".")[0] == module.__name__:
            text.give(module.__name__, home.rpartition(".")[2])
    for name in sorted({*getattr(module, "__all__", ()), *_own(module)}):
        value = getattr(module, name)
        if inspect.ismodule(value):
            text.give(module.__name__, name)
        elif isinstance(value, (type, types.FunctionType)) and (value.__module__ in homes or _ours(value)):
            text.give(value.__module__, value.__name__, name)
        elif isinstance(value, type):
            _collect(value, homes, kinds)
            parts += [f"{name} = {value.__name__}\n"] if value.__name__ != name else []
        elif inspect.isfunction(value):
            parts.append(text.function(name, of_function(value)._replace(doc="")))
        else:
            _collect(type(value), homes, kinds)
            parts.append(f"{name}: {_class(type(value), homes, text)}\n")
    body = "".join([*(_text(kind, homes, text) for kind in kinds.values()), *parts])
    text.imports.pop(module.__name__, None)
    root: Any = getattr(module.__spec__, "loader", None)
    for home in [m for m in text.imports if m not in homes and is_derived(m)]:
        names = text.imports.pop(home) - kinds.keys()
        if names:
            text.imports.setdefault(root.ours, set()).update(names)
    return body.replace("torch.Storage", "torch.UntypedStorage")  # a name that pyright doesn't find in torch


def theirs(module: types.ModuleType) -> str:
    """The name of torch's module."""
    assert module.__spec__ is not None
    return module.__spec__.loader_state.name


def _ours(value: Any) -> bool:
    """Whether Weft's own class stands there in the place of torch's."""
    return value.__module__.startswith("weft.") and not is_derived(value.__module__)


def _own(module: types.ModuleType) -> list[str]:
    """Its public classes; without `__all__`, its public functions, too."""
    kinds = type if hasattr(module, "__all__") else (type, types.FunctionType)
    own = [n for n, v in vars(module).items() if isinstance(v, kinds) and v.__module__ == module.__name__]
    return [n for n in own if not n.startswith("_")]


def _collect(kind: type, homes: Iterable[str], found: dict[str, type]) -> None:
    """A class with what it inherits from, first."""
    if kind.__module__ not in homes and is_derived(kind.__module__) and kind.__name__ not in found:
        for base in kind.__bases__:
            _collect(base, homes, found)
        found[kind.__name__] = kind


def _class(kind: type, homes: Iterable[str], text: Text) -> str:
    if kind.__module__ in homes or not is_derived(kind.__module__):
        return text.class_of(kind)
    return kind.__name__


def _text(kind: type, homes: Iterable[str], text: Text) -> str:
    bases = [_class(b, homes, text) for b in kind.__bases__ if b.__module__ not in ("typing", "builtins")]
    bases += ["property"] if property in kind.__bases__ else []
    lines = []
    given = {name: text.imported("weft.tensor.tensor", "Tensor") for name in _parameters(kind)}
    for name, value in vars(kind).items():
        if name.startswith("_") and name not in MAGIC:
            continue
        given.pop(name, None)
        above = next((base for base in kind.__mro__[1:] if name in vars(base)), None)
        if above is None or not above.__module__.startswith("weft.") or not _known(above, kind, name):
            lines.append(_member(kind, name, value, text))
    lines += [f"    {name}: {said}\n" for name, said in given.items()]
    head = f"class {kind.__name__}({', '.join(bases)}):" if bases else f"class {kind.__name__}:"
    return f"{head}\n{''.join(lines)}\n" if lines else f"{head} ...\n\n"


def _known(above: type, kind: type, name: str) -> bool:
    """Whether a member says what the inherited one says, or, without annotations, less."""
    own, theirs = (_reader(vars(k)[name]) or vars(k)[name] for k in (kind, above))
    if inspect.isfunction(own) and inspect.isfunction(theirs) and not own.__annotations__:
        return inspect.signature(own).parameters.keys() == inspect.signature(theirs).parameters.keys()
    return _said(kind, name) in (_said(above, name), f"    {name}: Any\n")


def _said(kind: type, name: str) -> str:
    return _member(kind, name, vars(kind)[name], Text(()))


def _parameters(kind: type) -> list[str]:
    """What instances hold, as a distribution tells by its constraints."""
    told = vars(kind).get("arg_constraints")
    return [n for n in told if n not in vars(kind)] if isinstance(told, dict) else []


def _member(kind: type, name: str, value: Any, text: Text) -> str:
    read = _reader(value)
    if read is not None:
        return text.function(name, of_function(read)._replace(doc=""), "    ", "self", mark="    @property\n")
    if isinstance(value, (staticmethod, classmethod)):
        bound, first = value.__get__(None, kind), "cls" if isinstance(value, classmethod) else None
        mark = f"    @{type(value).__name__}\n"
        return text.function(name, of_function(bound)._replace(doc=""), "    ", first, mark=mark)
    if inspect.isfunction(value):
        said = of_function(value)._replace(doc="")
        if name == "__init__":
            said = said._replace(signatures=tuple(s._replace(result=None) for s in said.signatures))
        return text.function(name, said, "    ", "self")
    plain = type(value).__name__ if isinstance(value, (bool, int, float, str)) else text.imported("typing", "Any")
    return f"    {name}: {plain}\n"


def _reader(value: Any) -> Callable[..., Any] | None:
    """The function that works a property out."""
    if isinstance(value, property):
        return value.fget
    return getattr(value, "wrapped", None)
