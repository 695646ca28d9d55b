"""Writes the type stubs of names that are bound at run time, from the tables that bind them.

    python -m tools.stubs            # writes them: `make stubs`
    python -m tools.stubs --check    # fails where a stub isn't what would be written now: a part of `make check`

A type checker and an editor read `weft/__init__.pyi` and its like in the place of the `.py` beside it; `Methods`, the
base of Tensor, has the methods that are ops. Everything else is read from the sources themselves.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import operator
import re
import sys
import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import weft
import weft.distributed.tensor.parallel  # which derives, and nothing else loads it
from tools import derived
from tools.declared import (
    NO_DEFAULT,
    Declared,
    Function,
    P,
    Parameter,
    Says,
    Text,
    as_doc,
    filled,
    found,
    of_function,
    of_inplace,
    of_op,
    usable,
    with_extras,
)
from weft import nn
from weft.api import bound, table
from weft.core.derived import ROOTS, Derived
from weft.core.dtype import DType
from weft.functional.index import indexing
from weft.functional.tensor import operators as _operators_
from weft.interop.files import Files
from weft.ops import OPS
from weft.ops import ops as named_ops
from weft.tensor import methods as tensor_methods
from weft.tensor.tensor import Tensor

ROOT: Final = Path(weft.__file__).parent
BELOW: Final = {
    "weft.distributions": ("constraints", "transforms", "utils"),
    "weft.distributed.algorithms.model_averaging": ("averagers",),
}
DERIVED: Final = {
    path.partition(".")[2]: importlib.import_module(path)
    for root in ROOTS.values()
    for path in (root.ours, *(f"{root.ours}.{name}" for name in BELOW.get(root.ours, ())))
    if not path.rpartition(".")[2].startswith("_")
}
PATHS: Final[dict[str, types.ModuleType]] = {**vars(weft)["PATHS"], **DERIVED}  # whose public path isn't their file's


NOTE: Final = "# Written by `make stubs` from the tables that bind these names. Whatever is changed here is lost.\n\n"

TAKING_OUT: Final = ("linalg", "special")  # besides the root


def _asked(value: object) -> bool:
    """Whether it is a file that is only there since somebody asked for it by a name of torch's."""
    return isinstance(value, types.ModuleType) and isinstance(getattr(value.__spec__, "loader", None), Files)


def _page(module: types.ModuleType, text: Text, body: str, head: str = "") -> str:
    torchs = isinstance(getattr(module.__spec__, "loader", None), Derived)
    doc = f"Torch's own code, on Weft's tensors: see {derived.theirs(module)}." if torchs else module.__doc__
    shared = sorted(getattr(module, "__all__", ()))
    given = {n for names in text.given.values() for n in names}
    seen = {n for n in (*given, *re.findall(r"^(?:def |class )?(\w+)", body, re.MULTILINE)) if n[0] != "_"}
    quoted = filled((f'"{n}"' for n in shared), "    ")
    every = f"__all__ = [\n{quoted}\n]\n" if shared and seen != {*shared} else ""  # else the names say it
    parts = (as_doc(doc or "", ""), text.head(), every, text.gifts(), body)
    return f"{NOTE}{head}" + "\n".join(filter(None, parts))


def _named(text: Text, name: str, value: Any) -> str:
    """A name that isn't the table's: given on from where it stands, or an object."""
    if value is bound._C:
        text.give("weft", name)
    elif inspect.ismodule(value):
        parent, _, last = (f"weft.{name}" if PATHS.get(name) is value else value.__name__).rpartition(".")
        text.give(parent, last, name)
    elif isinstance(value, type) and value.__name__ != name:
        return f"{name} = {text.class_of(value)}\n"
    elif isinstance(value, (type, types.FunctionType)):
        text.give(value.__module__, value.__qualname__, name)
    else:
        return f"{name}: {text.class_of(type(value))}\n"
    return ""


def _functions(text: Text, place: str, names: Iterable[str]) -> str:
    """The table's functions in a place; those that the root has, too, are given on from there."""
    listed, shown = dict(table.listed("flow")), []
    for n in usable(sorted(names)):
        declared = found(place, n)
        same = listed.get(n) is table.lookup(place, n) and _said(n, declared) == _said(n, found("flow", n))
        if same:
            text.give("weft", n)
        else:
            shown.append(text.function(n, declared))
    return "\n".join(shown)


def _said(name: str, declared: Declared) -> str:
    return Text(()).function(name, declared)


def _aliases(functions: Mapping[str, Any]) -> dict[str, str]:
    """The names of functions that have another one, too, which declares them."""
    first: dict[int, str] = {}
    for name, f in sorted(functions.items(), key=lambda row: (row[0] != getattr(row[1], "__name__", ""), row[0])):
        first.setdefault(id(f), name)
    return {name: first[id(f)] for name, f in sorted(functions.items()) if first[id(f)] != name}


def root() -> str:
    """`flow.*`: the table's functions, and what the root package imports."""
    functions = dict(table.listed("flow"))
    dtypes = [n for n, v in vars(weft).items() if isinstance(v, DType)]
    others = sorted({*weft.__all__, *dtypes, "__version__"} - functions.keys())
    text = Text([*functions, *others])
    objects = "".join(_named(text, n, getattr(weft, n)) for n in others)
    same = _aliases(functions)
    defs = [text.function(n, with_extras(n, found("flow", n))) for n in usable(sorted(functions.keys() - same))]
    return _page(weft, text, "\n".join((objects, *defs, "".join(f"{n} = {own}\n" for n, own in same.items()))))


def layers() -> str:
    """`flow.nn.*`: layers from their homes, and what stands above them."""
    text = Text(())
    shown = {n: getattr(nn, n) for n in (*nn.__all__, "Graph", "graph", "parallel")}
    return _page(nn, text, "".join(_named(text, n, v) for n, v in sorted(shown.items())))


def _above(path: str, name: str, value: Any) -> str | None:
    """The package further up that has the same function or class, if one does."""
    while path:
        path = path.rpartition(".")[0]
        package = operator.attrgetter(path)(weft) if path else weft
        shown = {*getattr(package, "__all__", ()), *(() if path else dict(table.listed("flow")))}
        if name in shown and getattr(package, name) is value:
            return f"weft.{path}".rstrip(".")
    return None


def elsewhere(path: str) -> str:
    """A module under a public path that isn't its file's."""
    module, ops = PATHS[path], {id(op.kernel): op for op in OPS.values()}
    if isinstance(getattr(module.__spec__, "loader", None), Derived):
        text = Text(())
        homes = [m.__name__ for m in PATHS.values() if m is not module]
        return _page(module, text, derived.page(module, homes, text), derived.LOOSE)
    here = [n for n, v in vars(module).items() if getattr(v, "__module__", None) == module.__name__]
    shown = getattr(
        module, "__all__", here if module.__spec__ else [n for n, v in vars(module).items() if not _asked(v)]
    )
    inside = [p.rpartition(".")[2] for p in PATHS if p.rpartition(".")[0] == path]
    text = Text(())
    objects, defs = "", []
    for name in inside:
        text.give(f"weft.{path}", name)
    for name in sorted(n for n in {*shown} - {*inside} if not n.startswith("_")):
        value = getattr(module, name)
        home = sys.modules.get(getattr(value, "__module__", ""))
        if callable(value) and (above := _above(path, name, value)):
            text.give(above, name)
        elif inspect.isfunction(value) and getattr(home, value.__name__, None) is not value:
            op = ops.get(id(inspect.unwrap(value)))
            declared = of_function(value) if op is None else of_op(op)
            defs.append(text.function(name, with_extras(name, declared) if path in TAKING_OUT else declared))
        elif not isinstance(value, types.ModuleType) or value.__name__.startswith(("weft", "torch.cuda.")):
            objects += _named(text, name, value)
    return _page(module, text, "\n".join(filter(None, (objects, *defs))))


def functional() -> str:
    names = [n for n, _ in table.listed("neural")]
    text = Text(names)
    return _page(nn.functional, text, _functions(text, "neural", names))


def all_ops() -> str:
    """`flow._C`: every name that an op or a function has; others may be declared at run time."""
    names = usable(n for n in dir(bound._C) if n not in OPS or OPS[n].built_in)
    text, defs = Text(names), []
    listed = {"weft": dict(table.listed("flow")), "weft.nn.functional": dict(table.listed("neural"))}
    listed["weft.special"] = vars(PATHS["special"])
    for n in (n for n in names if hasattr(bound._C, n)):
        home = next((home for home, functions in listed.items() if functions.get(n) is getattr(bound._C, n)), None)
        if home is not None:
            text.give(home, n)
        else:
            own = n in table.ADAPTERS["bound"]
            place = "bound" if own else next(p for p in bound.PLACES if table.lookup(p, n))
            defs.append(text.function(n, found(place, n)._replace(doc="")))
    later = f"def __getattr__(name: str) -> {text.type(Function, ({}, False))}: ...  # ops declared later\n"
    return _page(bound, text, f"{later}\n" + "\n".join(defs))


def ops_by_name() -> str:
    """`ops.mul`: an import from the file that declares it, for editors to follow."""
    homes = {}
    for path in sorted((ROOT / "ops").rglob("*.py")):
        for line in path.read_text().splitlines():
            told = re.match(r"def (\w+)\(|((?:\w+, )*\w+)(?:: .*)? = ", line)
            for name in (told[1] or told[2]).split(", ") if told else ():
                homes.setdefault(name, []).append(".".join(path.relative_to(ROOT.parent).with_suffix("").parts))
    text, rest = Text(()), []
    text.imported("weft.ops.declaration", "Op")
    for name, op in sorted((name, op) for name, op in OPS.items() if op.built_in):
        home = next((h for h in homes.get(name, ()) if vars(sys.modules[h]).get(name) is op), None)
        if home is None:
            rest.append(f"{name}: Op\n")
        else:
            text.give(home, name)
    return _page(named_ops, text, "".join(rest))


def methods() -> str:
    """Methods, operators and properties that Tensor is given."""
    own = set(re.findall(r"^    (?:def )?(\w+)", inspect.getsource(Tensor), re.MULTILINE))
    listed, operators = dict(table.listed("tensor")), dict(_operators())
    given = {name: value for name, value in vars(Tensor).items() if name not in own and not hasattr(object, name)}
    text = Text([*given, *operators])
    same = _aliases({n: f for n, f in given.items() if callable(f) and n not in operators})
    lines = ["class Methods:"]
    for name, value in sorted({**given, **operators}.items()):
        if name in same:
            continue
        if isinstance(value, property):
            declared = of_function(value.fget)  # type: ignore[arg-type]
            lines.append(text.function(name, declared, "    ", "self", mark="    @property\n"))
        elif name in operators or callable(value):
            declared = operators.get(name) or (found("tensor", name) if name in listed else of_function(value))
            declared = declared._replace(doc="") if name in operators else declared
            said = text.function(name, declared, "    ", "self")
            note = "  # type: ignore[override]" if name in ("__eq__", "__ne__") else ""
            lines.append(said.replace("\n", f"{note}\n", 1) if note else said)
    lines.append("".join(f"    {n} = {own}\n" for n, own in same.items()))
    return _page(tensor_methods, text, "\n".join(lines))


def _operators() -> Iterator[tuple[str, Declared]]:
    bound_to = _operators_.operators()
    for magic, name in _operators_.STRAIGHT.items():
        if magic in bound_to:
            yield magic, of_op(OPS[name])
    for magic, name in _operators_.REFLECTED.items():
        says = of_op(OPS[name]).signatures[0]
        yield magic, Declared((says._replace(parameters=says.parameters[1::-1]),), "")
    for magic, name in _operators_.OVERWRITING.items():
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


def file_of(path: str) -> str:
    """The stub of a public path: a folder's where others lie below it."""
    return f"{path.replace('.', '/')}{'/__init__' if any(p.startswith(f'{path}.') for p in PATHS) else ''}.pyi"


STUBS: Final[dict[str, Callable[[], str]]] = {
    "__init__.pyi": root,
    "_C.pyi": all_ops,
    "nn/__init__.pyi": layers,
    "ops/ops.pyi": ops_by_name,
    "nn/functional.pyi": functional,
    "tensor/methods.pyi": methods,
} | {file_of(path): functools.partial(elsewhere, path) for path in PATHS}


def stale() -> list[str]:
    """The stubs that aren't what would be written now, and those that wouldn't be written."""
    there = {f.relative_to(ROOT).as_posix(): f.read_text() for f in ROOT.rglob("*.pyi")}
    return sorted(name for name in {*STUBS, *there} if name not in STUBS or there.get(name) != STUBS[name]())


def main(arguments: list[str]) -> str | None:
    old = stale()
    if "--check" in arguments:
        return f"{', '.join(old)}: not what the tables say now; run `make stubs`" if old else None
    for name in old:
        file = ROOT / name
        if name in STUBS:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(STUBS[name]())
        else:
            file.unlink()
        print(f"{'wrote' if name in STUBS else 'removed'} weft/{name}")
    return None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
