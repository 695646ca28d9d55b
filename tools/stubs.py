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
import re
import sys
import textwrap
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import weft
import weft.distributed.tensor.parallel  # which derives, and nothing else loads it
from tools import derived
from tools.declared import (
    NO_DEFAULT,
    WIDE,
    Declared,
    Function,
    P,
    Parameter,
    Says,
    Text,
    as_doc,
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
}
PATHS: Final[dict[str, types.ModuleType]] = {**vars(weft)["PATHS"], **DERIVED}  # whose public path isn't their file's


NOTE: Final = "# Written by `make stubs` from the tables that bind these names. Whatever is changed here is lost.\n\n"

TAKING_OUT: Final = ("linalg", "special")  # besides the root


def _asked(value: object) -> bool:
    """Whether it is a file that is only there since somebody asked for it by a name of torch's."""
    return isinstance(value, types.ModuleType) and isinstance(getattr(value.__spec__, "loader", None), Files)


def _page(module: types.ModuleType, text: Text, body: str, head: str = "") -> str:
    shared = getattr(module, "__all__", None)
    names = textwrap.fill(", ".join(f'"{n}"' for n in sorted(shared or ())), WIDE - 4)
    every = f"__all__ = [\n{textwrap.indent(names, '    ')}\n]\n\n" if shared else ""
    torchs = isinstance(getattr(module.__spec__, "loader", None), Derived)
    doc = f"Torch's own code, on Weft's tensors: see {derived.theirs(module)}." if torchs else module.__doc__
    return f"{NOTE}{head}{as_doc(doc or '', '')}\n{text.head(body)}\n{every}{body}"


def _named(text: Text, name: str, value: Any) -> tuple[bool, str]:
    """A name that isn't the table's: an import from where it stands, or an object; objects come last."""
    if inspect.ismodule(value):
        parent, _, last = (f"weft.{name}" if PATHS.get(name) is value else value.__name__).rpartition(".")
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
    defs = [text.function(n, with_extras(n, found("flow", n))) for n in usable(sorted(functions))]
    return _page(weft, text, "".join(line for _, line in lines) + "\n" + "\n".join(defs))


def layers() -> str:
    """`flow.nn.*`: layers from their homes, and what stands above them."""
    text = Text(())
    shown = {n: getattr(nn, n) for n in (*nn.__all__, "Graph", "graph", "parallel")}
    return _page(nn, text, "".join(line for _, line in sorted(_named(text, n, v) for n, v in shown.items())))


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
    lines, defs = [f"from weft.{path} import {n} as {n}\n" for n in inside], []
    for name in sorted(n for n in {*shown} - {*inside} if not n.startswith("_")):
        value = getattr(module, name)
        home = sys.modules.get(getattr(value, "__module__", ""))
        if inspect.isfunction(value) and getattr(home, value.__name__, None) is not value:
            op = ops.get(id(inspect.unwrap(value)))
            declared = of_function(value) if op is None else of_op(op)
            defs.append(text.function(name, with_extras(name, declared) if path in TAKING_OUT else declared))
        elif not isinstance(value, types.ModuleType) or value.__name__.startswith(("weft", "torch.cuda.")):
            lines.append(_named(text, name, value)[1])
    return _page(module, text, "".join(sorted(lines)) + "\n" + "\n".join(defs))


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
    own = table.ADAPTERS["bound"]
    places = {
        n: "bound" if n in own else next(p for p in bound.PLACES if table.lookup(p, n))
        for n in names
        if hasattr(bound._C, n)
    }
    defs = [
        text.function(n, found(p, n)._replace(doc=""), "    ", mark="    @staticmethod\n") for n, p in places.items()
    ]
    later = f"    def __getattr__(self, name: str) -> {text.type(Function, ({}, False))}: ...  # ops declared later\n"
    body = f"class Bound:\n{later}\n" + "\n".join(defs) + f"\nPLACES: tuple[str, ...]\n_C: Bound\n\n{register}"
    return _page(bound, text, body)


def ops_by_name() -> str:
    """`ops.mul`: an import from the file that declares it, for editors to follow."""
    homes = {}
    for path in sorted((ROOT / "ops").rglob("*.py")):
        for line in path.read_text().splitlines():
            told = re.match(r"def (\w+)\(|((?:\w+, )*\w+)(?:: .*)? = ", line)
            for name in (told[1] or told[2]).split(", ") if told else ():
                homes.setdefault(name, []).append(".".join(path.relative_to(ROOT.parent).with_suffix("").parts))
    lines, rest = [], []
    for name, op in sorted(OPS.items()):
        home = next((h for h in homes.get(name, ()) if vars(sys.modules[h]).get(name) is op), None)
        if home is None:
            rest.append(f"{name}: Op\n")
        else:
            lines.append(f"from {home} import {name} as {name}\n")
    text = Text(())
    text.imported("weft.ops.declaration", "Op")
    return _page(named_ops, text, "".join(lines) + "\n" + "".join(rest))


def methods() -> str:
    """Methods, operators and properties that Tensor is given."""
    own = set(re.findall(r"^    (?:def )?(\w+)", inspect.getsource(Tensor), re.MULTILINE))
    listed, operators = dict(table.listed("tensor")), dict(_operators())
    given = {name: value for name, value in vars(Tensor).items() if name not in own and not hasattr(object, name)}
    text = Text([*given, *operators])
    lines = ["class Methods:"]
    for name, value in sorted({**given, **operators}.items()):
        if isinstance(value, property):
            declared = of_function(value.fget)  # type: ignore[arg-type]
            lines.append(text.function(name, declared, "    ", "self", mark="    @property\n"))
        elif name in operators or callable(value):
            declared = operators.get(name) or (found("tensor", name) if name in listed else of_function(value))
            brief = "" if name in operators else declared.doc.strip().partition("\n\n")[0]
            said = text.function(name, declared._replace(doc=brief), "    ", "self")
            note = "  # type: ignore[override]" if name in ("__eq__", "__ne__") else ""
            lines.append(said.replace("\n", f"{note}\n", 1) if note else said)
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
    "api/bound.pyi": all_ops,
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
