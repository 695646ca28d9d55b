"""Writes the type stubs of names that are bound at run time, from the tables that bind them.

    python -m tools.stubs            # writes them: `make stubs`
    python -m tools.stubs --check    # fails where a stub isn't what would be written now: a part of `make check`

A type checker and an editor read `weft/__init__.pyi` and its like in the place of the `.py` beside it; `Methods`, the
base of Tensor, has the methods that are ops. Everything else is read from the sources themselves.
"""

from __future__ import annotations

import builtins
import inspect
import keyword
import math
import re
import sys
import textwrap
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import torch

import weft
from weft import nn
from weft.core.dtype import DType
from weft.functional import arithmetic, bound, indexing, linalg, shaping, table
from weft.functional.names import ALIASES
from weft.ops import OPS, declaration
from weft.ops.declaration import Op, Param
from weft.tensor import methods as tensor_methods
from weft.tensor.tensor import Tensor

ROOT: Final = Path(weft.__file__).parent
WIDE: Final = 120
Function = Callable[..., Any]
Types = tuple[dict[str, Any], bool]  # the names that an annotation may use, and whether its Tensor is a kernel's


# ---- what a name stands for ----------------------------------------------------------------------------


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
    return Declared((said,), f"`{op.name}`, into the memory of its first operand.")


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


INPLACE_OPTION: Final = Parameter("inplace", P.POSITIONAL_OR_KEYWORD, "bool", False)


def found(place: str, name: str) -> Declared:
    """What a public name of the table says: as `table.lookup` finds it."""
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
    """The text of one stub, and the imports that it turns out to need."""

    def __init__(self, names: Iterable[str]) -> None:
        self.shadowed = {n for n in names if hasattr(builtins, n)}
        self.imports: dict[str, set[str]] = {}

    def imported(self, module: str, name: str) -> str:
        self.imports.setdefault(module, set()).add(name)
        return name.rpartition(" as ")[2]

    def type(self, annotation: Any, types_of: Types) -> str:
        """An annotation, wherever it was written, as it must be written here."""
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
        if origin in (types.UnionType, typing.Union):
            return " | ".join(dict.fromkeys(self._type(a, kernel, types_of) for a in inside))
        if isinstance(t, list):  # the parameters of a Callable
            return f"[{', '.join(self._type(a, kernel, types_of) for a in t)}]"
        if origin is not None:
            return f"{self.class_of(origin)}[{', '.join(self._type(a, kernel, types_of) for a in inside)}]"
        return self.class_of(t)

    def class_of(self, t: Any) -> str:
        if t is types.ModuleType:
            return self.imported("types", "ModuleType")
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
        """A def for every signature. A method's `first` parameter is self, in the place of the function's own first."""
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
            said = _doc(declared.doc, f"{indent}    ") if i == 0 else ""
            defs.append(marks + _def(name, parts, self.type(says.result, says.types), indent, said))
        return "\n".join(defs)

    def head(self, body: str) -> str:
        """The imports, but for what the body imports for its readers."""
        lines = []
        for module in sorted(self.imports):
            names = sorted(n for n in self.imports[module] if f"from {module} import {n} as {n}\n" not in body)
            if names or not self.imports[module]:
                lines.append(f"from {module} import {', '.join(names)}\n" if names else f"import {module}\n")
        return "".join(lines)


def _default(value: Any) -> str:
    plain = value is None or isinstance(value, (bool, int, str)) or (isinstance(value, float) and math.isfinite(value))
    return repr(value) if plain else "..."


def _def(name: str, parts: list[str], result: str, indent: str, doc: str) -> str:
    head = f"{indent}def {name}({', '.join(parts)}) -> {result}:"
    if len(head) > WIDE - 4:
        inside = textwrap.fill(", ".join(p.replace(" ", "\0") for p in parts), WIDE - len(indent) - 4).replace(
            "\0", " "
        )
        head = f"{indent}def {name}(\n{textwrap.indent(inside, indent + '    ')}\n{indent}) -> {result}:"
    return f"{head}\n{doc}" if doc else f"{head} ...\n"


def _doc(doc: str, indent: str) -> str:
    text = inspect.cleandoc(doc).replace("\\", "\\\\").replace('"""', "'''")
    if not text:
        return ""
    last = f'{indent}"""\n' if "\n" in text else ""
    return textwrap.indent(f'"""{text}' + ("\n" if last else '"""\n'), indent, lambda line: bool(line.strip())) + last


def usable(names: Iterable[str]) -> list[str]:
    return [n for n in names if n.isidentifier() and not keyword.iskeyword(n)]


# ---- the stubs -------------------------------------------------------------------------------------------

NOTE: Final = "# Written by `make stubs` from the tables that bind these names. Whatever is changed here is lost.\n\n"


def _page(module: types.ModuleType, text: Text, body: str) -> str:
    shared = getattr(module, "__all__", None)
    names = textwrap.fill(", ".join(f'"{n}"' for n in sorted(shared or ())), WIDE - 4)
    every = f"__all__ = [\n{textwrap.indent(names, '    ')}\n]\n\n" if shared else ""
    return f"{NOTE}{_doc(module.__doc__ or '', '')}\n{text.head(body)}\n{every}{body}"


def _named(text: Text, name: str, value: Any) -> tuple[bool, str]:
    """A name that isn't the table's: an import from where it stands, or an object; objects come last."""
    if inspect.ismodule(value) and value.__spec__ is not None:
        parent, _, last = value.__name__.rpartition(".")
        return False, f"from {parent} import {last} as {name}\n"
    if isinstance(value, type) and value.__name__ != name:  # only `x as x` gives a name on
        return True, f"{name} = {text.class_of(value)}\n"
    if isinstance(value, (type, types.FunctionType)):
        return False, f"from {value.__module__} import {value.__qualname__} as {name}\n"
    return True, f"{name}: {text.class_of(type(value))}\n"


def root() -> str:
    """`flow.*`: the table's functions, and what the root package imports."""
    functions = dict(table.listed("flow"))
    dtypes = [n for n, v in vars(weft).items() if isinstance(v, DType)]
    others = sorted({*weft.__all__, *dtypes, "__version__"} - functions.keys())
    text = Text([*functions, *others])
    lines = sorted(_named(text, n, getattr(weft, n)) for n in others)
    defs = [text.function(n, found("flow", n)) for n in usable(sorted(functions))]
    return _page(weft, text, "".join(line for _, line in lines) + "\n" + "\n".join(defs))


def layers() -> str:
    """`flow.nn.*`: layers from their homes, and what stands above them."""
    text = Text(())
    shown = {n: v for n, v in vars(nn).items() if n in nn.__all__ or n in ("Graph", "graph", "parallel")}
    return _page(nn, text, "".join(line for _, line in sorted(_named(text, n, v) for n, v in shown.items())))


def functional() -> str:
    names = [n for n, _ in table.listed("neural")]
    text = Text(names)
    defs = [text.function(n, found("neural", n)) for n in usable(sorted(names))]
    return _page(nn.functional, text, "\n".join(defs))


def all_ops() -> str:
    """`flow._C`: a class with every name as a static method; others may be declared at run time."""
    names = usable(dir(bound._C))
    text = Text(names)
    register = text.function("register", of_function(bound.register))
    places = {n: next(p for p in bound.PLACES if table.lookup(p, n)) for n in names if hasattr(bound._C, n)}
    defs = [
        text.function(n, found(p, n)._replace(doc=""), "    ", mark="    @staticmethod\n") for n, p in places.items()
    ]
    later = f"    def __getattr__(self, name: str) -> {text.type(Function, ({}, False))}: ...  # ops declared later\n"
    body = f"class Bound:\n{later}\n" + "\n".join(defs) + f"\nPLACES: tuple[str, ...]\n_C: Bound\n\n{register}"
    return _page(bound, text, body)


def matrices() -> str:
    text = Text(linalg.__all__)
    ops = {id(table.entry(op)): op for op in OPS.values()}
    defs = []
    for name in linalg.__all__:
        f = getattr(linalg, name)
        defs.append(text.function(name, of_op(ops[id(f)]) if id(f) in ops else of_function(f)))
    return _page(linalg, text, "\n".join(defs))


def methods() -> str:
    """Methods and operators that are bound to Tensor."""
    own = set(re.findall(r"^    (?:def )?(\w+)", inspect.getsource(Tensor), re.MULTILINE))
    listed = {n: found("tensor", n) for n, _ in table.listed("tensor") if n not in own}
    operators = dict(_operators())
    text = Text([*listed, *operators])
    lines = ["class Methods:"]
    for name, declared in sorted({**listed, **operators}.items()):
        note = "  # type: ignore[override]" if name in ("__eq__", "__ne__") else ""
        brief = declared._replace(doc="" if name.startswith("__") else declared.doc.strip().partition("\n\n")[0])
        said = text.function(name, brief, "    ", "self")
        lines.append(said.replace("\n", f"{note}\n", 1) if note else said)
    tensor = text.imported(Tensor.__module__, "Tensor")
    for name, f in (("T", shaping.transposed), ("mT", shaping.matrix_transposed)):
        lines.append(f"    @property\n    def {name}(self) -> {tensor}:\n" + _doc(f.__doc__ or "", " " * 8))
    return _page(tensor_methods, text, "\n".join(lines))


def _operators() -> Iterator[tuple[str, Declared]]:
    bound_to = arithmetic.operators()
    for magic, name in arithmetic.STRAIGHT.items():
        if magic in bound_to:
            yield magic, of_op(OPS[name])
    for magic, name in arithmetic.REFLECTED.items():
        says = of_op(OPS[name]).signatures[0]
        yield magic, Declared((says._replace(parameters=says.parameters[1::-1]),), "")
    for magic, name in arithmetic.OVERWRITING.items():
        yield magic, of_inplace(OPS[name])
    for magic in ("__eq__", "__ne__"):
        other = Parameter("other", P.POSITIONAL_OR_KEYWORD, "Any", NO_DEFAULT)
        yield magic, Declared((Says((other, other), "Tensor", ({"Any": Any, "Tensor": Tensor}, False)),), "")
    for magic, f in (
        ("__getitem__", indexing.getitem),
        ("__setitem__", indexing.setitem),
        ("__iter__", indexing.iterate),
    ):
        yield magic, of_function(f)


STUBS: Final[dict[str, Callable[[], str]]] = {
    "__init__.pyi": root,
    "functional/bound.pyi": all_ops,
    "functional/linalg.pyi": matrices,
    "nn/__init__.pyi": layers,
    "nn/functional.pyi": functional,
    "tensor/methods.pyi": methods,
}


def stale() -> list[str]:
    """The stubs that aren't what would be written now."""
    files = {name: ROOT / name for name in STUBS}
    return [name for name, file in files.items() if not file.exists() or file.read_text() != STUBS[name]()]


def main(arguments: list[str]) -> str | None:
    old = stale()
    if "--check" in arguments:
        return f"{', '.join(old)}: not what the tables say now; run `make stubs`" if old else None
    for name in old:
        (ROOT / name).write_text(STUBS[name]())
        print(f"wrote weft/{name}")
    return None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
