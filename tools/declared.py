"""The declarations of public functions in stubs: their signatures, and their text."""

from __future__ import annotations

import builtins
import inspect
import keyword
import math
import textwrap
import types
import typing
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple

import torch

from weft.api import table
from weft.api.names import ALIASES
from weft.core.derived import is_derived
from weft.ops import OPS, declaration
from weft.ops.declaration import Op, Param
from weft.tensor.tensor import Tensor

WIDE: Final = 120
Function = Callable[..., Any]
Types = tuple[dict[str, Any], bool]  # the names that an annotation may use, and whether its Tensor is a kernel's


# ---- signatures ----------------------------------------------------------------------------------------


class Parameter(NamedTuple):
    name: str
    kind: Any  # of inspect.Parameter
    type: Any
    default: Any


class Says(NamedTuple):
    """One signature of a function."""

    parameters: tuple[Parameter, ...]
    result: Any
    types: Types


class Declared(NamedTuple):
    """A function as a stub shows it: one signature, or several to choose from."""

    signatures: tuple[Says, ...]
    doc: str


P = inspect.Parameter
NO_DEFAULT: Final = P.empty


def of_op(op: Op, more: tuple[Parameter, ...] = ()) -> Declared:
    def one(p: Param) -> Parameter:
        return Parameter(p.name, P.KEYWORD_ONLY if p.keyword_only else P.POSITIONAL_OR_KEYWORD, p.type, p.default)

    positional = tuple(one(p) for p in op.params if not p.keyword_only)
    keywords = tuple(one(p) for p in op.params if p.keyword_only)
    result = (
        "None" if not op.visible else "Tensor" if op.visible == 1 else f"tuple[{', '.join(['Tensor'] * op.visible)}]"
    )
    names = {**vars(declaration), **op.kernel.__globals__, "Tensor": torch.Tensor}
    return Declared((Says((*positional, *more, *keywords), result, (names, True)),), op.__doc__ or "")


def of_inplace(op: Op) -> Declared:
    signature = of_op(op).signatures[0]
    first = signature.parameters[0]._replace(type="Tensor")
    said = signature._replace(parameters=(first, *signature.parameters[1:]), result="Tensor")
    return Declared((said,), f"`{op.name}`, in place.")


def of_function(f: Function) -> Declared:
    several = getattr(f, "functions", None) or (f,)
    return Declared(tuple(map(_says, several)), f.__doc__ or "")


def _says(f: Function) -> Says:
    signature = inspect.signature(f)
    inner = inspect.unwrap(f)
    result = signature.return_annotation
    return Says(
        tuple(Parameter(p.name, p.kind, p.annotation, p.default) for p in signature.parameters.values()),
        "Any" if result is inspect.Signature.empty else result,
        (getattr(inner, "__globals__", {}), False),
    )


def with_extras(name: str, declared: Declared) -> Declared:
    """Add the arguments that every function with tensors as results takes (`weft.ops.out_argument`)."""
    if name.endswith("_") or name[0].isupper():
        return declared
    return declared._replace(signatures=tuple(map(_with_extras, declared.signatures)))


def _with_extras(says: Says) -> Says:
    given, one = {p.name for p in says.parameters}, says.result in ("Tensor", Tensor)
    several = "Tensor" in str(says.result) or hasattr(says.types[0].get(str(says.result)), "_fields")
    if not (one or several) or any(p.kind is P.VAR_KEYWORD for p in says.parameters):
        return says
    more = [Parameter("out", P.KEYWORD_ONLY, Tensor | None if one else Any, None)]
    if "device" in given:
        more += [Parameter("layout", P.KEYWORD_ONLY, Any, None), Parameter("pin_memory", P.KEYWORD_ONLY, bool, False)]
    return says._replace(parameters=(*says.parameters, *(p for p in more if p.name not in given)))


INPLACE_OPTION: Final = Parameter("inplace", P.POSITIONAL_OR_KEYWORD, "bool", False)


def found(place: str, name: str) -> Declared:
    """The declaration of a public name, found as `table.lookup` finds it."""
    name = ALIASES.get(name, name)
    adapter = table.ADAPTERS[place].get(name)
    if adapter is not None:
        return of_function(adapter)
    if name in OPS:
        op = OPS[name]
        return of_op(op, (INPLACE_OPTION,) if place == "neural" and op.inplace_kernel is not None else ())
    return of_inplace(OPS[name.removesuffix("_")])


# ---- as text ---------------------------------------------------------------------------------------------


class Text:
    """The text of one stub, the imports that it needs, and the names that it gives on from elsewhere."""

    def __init__(self, names: Iterable[str]) -> None:
        self.shadowed = {n for n in names if hasattr(builtins, n)}
        self.imports: dict[str, set[str]] = {}
        self.given: dict[str, dict[str, str]] = {}

    def give(self, module: str, name: str, public: str = "") -> None:
        """Give on a name of another module, also under another one."""
        self.given.setdefault(module, {})[public or name] = name

    def imported(self, module: str, name: str) -> str:
        self.imports.setdefault(module, set()).add(name)
        return name.rpartition(" as ")[2]

    def type(self, annotation: Any, types_of: Types) -> str:
        """An annotation as text for this stub."""
        names, kernel = types_of
        if annotation is NO_DEFAULT:
            return self.imported("typing", "Any")
        if isinstance(annotation, str):
            try:
                annotation = eval(annotation, {**names, "Sequence": Sequence})
            except NameError:
                return self.imported("typing", "Any")
        return self._type(annotation, kernel, types_of)

    def _type(self, t: Any, kernel: bool, types_of: Types) -> str:
        if t is None or t is types.NoneType:
            return "None"
        if t is ...:
            return "..."
        if isinstance(t, (str, typing.ForwardRef)):
            return self.type(t if isinstance(t, str) else t.__forward_arg__, types_of)
        if t is typing.Any or isinstance(t, typing.TypeVar):
            return self.imported("typing", "Any")
        if t is Tensor or (t is torch.Tensor and kernel):
            return self.imported(Tensor.__module__, "Tensor")
        origin, inside = typing.get_origin(t), typing.get_args(t)
        home = getattr(t, "__module__", "")
        if is_derived(home) and "_" in (t.__name__[0], home.rpartition(".")[2][0]):  # torch's private classes
            return self.imported("typing", "Any")
        if origin is typing.Literal:
            return f"{self.class_of(origin)}[{', '.join(map(repr, inside))}]"
        if origin in (types.UnionType, typing.Union):
            return " | ".join(dict.fromkeys(self._type(a, kernel, types_of) for a in inside))
        if isinstance(t, list):  # the parameters of a Callable
            return f"[{', '.join(self._type(a, kernel, types_of) for a in t)}]"
        if origin is not None:
            return f"{self.class_of(origin)}[{', '.join(self._type(a, kernel, types_of) for a in inside)}]"
        return self.class_of(t)

    def class_of(self, t: Any) -> str:
        if t is types.NoneType:
            return "None"
        if t.__module__ == "builtins":
            return (
                self.imported("builtins", f"{t.__name__} as _{t.__name__}")
                if t.__name__ in self.shadowed
                else t.__name__
            )
        module = "torch" if t.__module__.startswith("torch") and hasattr(torch, t.__name__) else t.__module__
        if module == "torch":
            self.imports.setdefault("torch", set())
            return f"torch.{t.__name__}"
        return self.imported(module, t.__name__)

    def parameter(self, p: Parameter, types_of: Types) -> str:
        star = {P.VAR_POSITIONAL: "*", P.VAR_KEYWORD: "**"}.get(p.kind, "")
        text = f"{star}{p.name}: {self.type(p.type, types_of)}"
        return text if p.default is NO_DEFAULT else f"{text} = {_default(p.default)}"

    def function(
        self, name: str, declared: Declared, indent: str = "", first: str | None = None, mark: str = ""
    ) -> str:
        """A def for every signature, and what the function is; examples stand where it is written. A method's `first`
        parameter, self, replaces the function's first."""
        brief = inspect.cleandoc(declared.doc).partition("\n\n")[0]
        several = len(declared.signatures) > 1
        defs = []
        for i, says in enumerate(declared.signatures):
            given = list(says.parameters)
            parts = [] if first is None else [first]
            if first == "self" and given and given[0].kind is not P.VAR_POSITIONAL:
                given = given[1:]
            starred = False
            for p in given:
                if p.kind is P.KEYWORD_ONLY and not starred:
                    parts.append("*")
                starred = starred or p.kind in (P.KEYWORD_ONLY, P.VAR_POSITIONAL)
                parts.append(self.parameter(p, says.types))
            if several:
                self.imported("typing", "overload")
            marks = (f"{indent}@overload\n" if several else "") + mark
            said = as_doc(brief, f"{indent}    ") if i == 0 else ""
            defs.append(marks + _def(name, parts, self.type(says.result, says.types), indent, said))
        return "\n".join(defs)

    def head(self) -> str:
        """The imports, without those of names that are given on."""
        lines = []
        for module in sorted(self.imports):
            names = sorted(self.imports[module] - self.given.get(module, {}).keys())
            if names or not self.imports[module]:
                lines.append(f"from {module} import {', '.join(names)}\n" if names else f"import {module}\n")
        return "".join(lines)

    def gifts(self) -> str:
        """The names that are given on: to a type checker, only `x as x` is."""
        lines = []
        for module, names in sorted(self.given.items()):
            every = [f"{name} as {public}" for public, name in sorted(names.items())]
            one = f"from {module} import {', '.join(every)}\n"
            lines.append(one if len(one) <= WIDE else f"from {module} import (\n{filled(every, '    ')}\n)\n")
        return "".join(lines)


def filled(items: Iterable[str], indent: str) -> str:
    """Items in lines, none of which is broken."""
    text = ", ".join(item.replace(" ", "\0") for item in items)
    return textwrap.indent(textwrap.fill(text, WIDE - len(indent), break_long_words=False), indent).replace("\0", " ")


def _default(value: Any) -> str:
    plain = value is None or isinstance(value, (bool, int, str)) or (isinstance(value, float) and math.isfinite(value))
    return repr(value) if plain else "..."


def _def(name: str, parts: list[str], result: str, indent: str, doc: str) -> str:
    head = f"{indent}def {name}({', '.join(parts)}) -> {result}:"
    if len(head) > WIDE - 4:
        head = f"{indent}def {name}(\n{filled(parts, f'{indent}    ')}\n{indent}) -> {result}:"
    return f"{head}\n{doc}" if doc else f"{head} ...\n"


def as_doc(doc: str, indent: str) -> str:
    text = inspect.cleandoc(doc).replace("\\", "\\\\").replace('"""', "'''")
    if not text:
        return ""
    last = f'{indent}"""\n' if "\n" in text else ""
    return textwrap.indent(f'"""{text}' + ("\n" if last else '"""\n'), indent, lambda line: bool(line.strip())) + last


def usable(names: Iterable[str]) -> list[str]:
    return [n for n in names if n.isidentifier() and not keyword.iskeyword(n)]
