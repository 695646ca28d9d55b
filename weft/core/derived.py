"""Torch's own Python on Weft's tensors: torch's modules, loaded a second time with Weft in the place of `torch`.

A derived module runs torch's code, from the bytecode that is already there, in a namespace of its own. There, imports
of `torch` give what `Names` finds; torch's own module stays as it is.
"""

from __future__ import annotations

import builtins
import functools
import importlib
import importlib.util
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import CodeType, ModuleType
from typing import Any, Final, TypeVar

import torch

from weft.core.errors import OptionError

WEFT: Final = __name__.partition(".")[0]
Change = Callable[[Any], Any]  # from torch's object to its replacement
T = TypeVar("T")


def since(version: str, rows: Mapping[str, T]) -> Mapping[str, T]:
    """Rows of a table about what torch has from this version on; none where an older one is installed."""
    return rows if torch.__version__ >= version else {}


class Names(ModuleType):
    """A module of torch's, or another dotted path, as derived code sees it: Weft's names, then torch's."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.__dict__["__path__"] = []
        inner = path.partition(".")[2]
        self.__dict__["_ours"] = _at(sys.modules[WEFT], inner)
        self.__dict__["_theirs"] = sys.modules.get(path) or _at(importlib.import_module("torch"), inner)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name != "__future__":
            raise AttributeError(name)
        return self.__dict__.setdefault(name, self._look(name))

    def _look(self, name: str) -> Any:
        path = f"{self.__name__}.{name}"
        if path in GIVEN:
            return GIVEN[path]
        ours = counterpart(path)
        if ours is not None:
            return importlib.import_module(ours)
        found = getattr(self._ours, name, None)
        if found is None:
            found = getattr(self._theirs, name, None)
        if found is None:
            found = importlib.import_module(path)
        return Names(path) if isinstance(found, ModuleType) or path == "torch._C" else found


def _at(root: Any, path: str) -> Any:
    for name in path.split(".") if path else ():
        root = getattr(root, name, None)
    return root


GIVEN: Final[dict[str, Any]] = {}  # explicit replacements, by torch's path
ROOTS: Final[dict[str, Derived]] = {}  # by torch's path


def counterpart(path: str) -> str | None:
    """The derived module that stands for one of torch's."""
    for theirs, root in ROOTS.items():
        if path == theirs or path.startswith(f"{theirs}."):
            ours = root.ours + path.removeprefix(theirs)
            try:
                return ours if importlib.util.find_spec(path) is not None else None
            except ModuleNotFoundError:
                return None
    return None


def _import(
    name: str, globals: Any = None, locals: Any = None, fromlist: Sequence[str] | None = (), level: int = 0
) -> Any:
    """`__import__` of derived code."""
    if level:
        name = importlib.util.resolve_name("." * level + name, globals["__spec__"].loader_state.parent)
    if name.partition(".")[0] != "torch":
        return builtins.__import__(name, globals, locals, fromlist)
    found: Any = root()
    ours = counterpart(name)
    if not fromlist:
        if ours is not None:
            importlib.import_module(ours)  # `import torch.a.b as b` reads attributes from the root on
        return found
    if ours is not None:
        return builtins.__import__(ours, globals, locals, fromlist)
    for part in name.split(".")[1:]:
        found = getattr(found, part)
    return found


@functools.cache
def root() -> Names:
    """`torch` as derived code sees it."""
    return Names("torch")


class Derived(MetaPathFinder, Loader):
    """A module or package of torch's, importable under a name of Weft's.

    changes     by module below the package ("" for itself) and path therein: a function from torch's object to its
                substitute
    attributes  attributes that derived code reads under another name
    errors      Weft's classes for the errors that derived code raises
    classes     Weft's classes for those that the code defines; what inherits from them inherits from Weft's
    """

    def __init__(
        self, ours: str, theirs: str, changes: Mapping[str, Mapping[str, Change]] = {},
        attributes: Mapping[str, str] = {}, errors: Mapping[str, type[Exception]] = {},
        classes: Mapping[str, type] = {},
    ) -> None:  # fmt: skip
        def build(body: Any, name: str, *bases: Any, **options: Any) -> Any:
            return classes.get(name) or builtins.__build_class__(body, name, *bases, **options)

        self.ours, self.theirs, self.changes, self.attributes = ours, theirs, changes, attributes
        own = {"__import__": _import, "__build_class__": build, "ValueError": OptionError}
        self.builtins = {**vars(builtins), **own, **errors}
        ROOTS[theirs] = self
        sys.meta_path.insert(0, self)

    def covers(self, name: str) -> bool:
        return name == self.ours or name.startswith(f"{self.ours}.")

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        if not self.covers(name):
            return None
        theirs = importlib.util.find_spec(self.theirs + name.removeprefix(self.ours))
        if theirs is None:
            return None
        folder = theirs.submodule_search_locations is not None
        return ModuleSpec(name, self, origin=theirs.origin, loader_state=theirs, is_package=folder)

    def exec_module(self, module: ModuleType) -> None:
        assert module.__spec__ is not None
        theirs = module.__spec__.loader_state
        code = theirs.loader.get_code(theirs.name)
        module.__dict__["__builtins__"] = self.builtins
        module.__file__ = theirs.origin
        exec(_renamed(code, self.attributes) if self.attributes else code, vars(module))
        for path, change in self.changes.get(module.__name__.removeprefix(self.ours).lstrip("."), {}).items():
            *places, last = path.split(".")
            place = functools.reduce(lambda at, name: vars(at)[name], places, module)
            setattr(place, last, change(vars(place)[last]))


def is_derived(name: str) -> bool:
    """Whether a module of Weft's is derived from torch's."""
    return any(root.covers(name) for root in ROOTS.values())


names_of: Final = vars(ModuleType)["__dict__"].__get__  # a module's names so far


class Late(ModuleType):
    """A module with names that are loaded when they are asked for: all of them, by who looks over its `__dict__`."""

    @property
    def __dict__(self) -> dict[str, Any]:
        names = names_of(self)
        for name in dir(self):
            if name not in names and not name.startswith("__"):
                getattr(self, name, None)
        return names

    def __dir__(self) -> list[str]:
        """Also the names that aren't loaded yet."""
        names = names_of(self)
        return names["__dir__"]() if "__dir__" in names else sorted({*names, *names.get("__all__", ())})


class Package(Late):
    """A package with derived modules. Where one is named as a function within it, the name means the function, also
    once the import system has set the module."""

    _functions: frozenset[str]

    def __setattr__(self, name: str, value: Any) -> None:
        function = name in self._functions and isinstance(value, ModuleType)
        super().__setattr__(name, vars(value)[name] if function else value)


def lazily(package: str, modules: Mapping[str, Sequence[str]]) -> Callable[[str], Any]:
    """The `__getattr__` of a package with derived modules: a module is loaded when one of its names is asked for."""
    module_of = {name: module for module, names in modules.items() for name in (module, *names)}
    names_of(sys.modules[package])["_functions"] = frozenset(n for n, names in modules.items() if n in names)
    sys.modules[package].__class__ = Package

    def find(name: str) -> Any:
        if name not in module_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = importlib.import_module(f"{package}.{module_of[name]}")
        space = names_of(sys.modules[package])
        space.update({n: getattr(module, n) for n in modules[module_of[name]]})
        return space[name]

    return find


def _renamed(code: CodeType, names: Mapping[str, str]) -> CodeType:
    """Code with its attribute names replaced."""
    inner = tuple(_renamed(c, names) if isinstance(c, CodeType) else c for c in code.co_consts)
    return code.replace(co_names=tuple(names.get(n, n) for n in code.co_names), co_consts=inner)
