"""Modules at PyTorch's and OneFlow's paths, such as `weft.nn.modules.batchnorm` or `weft.distributions.normal`.

Weft's folders are organised differently. Such a module is made at its first import, of the names that its folder has
here and that torch's module of this path has, too. A folder with two paths, such as `weft.data`, which is
`weft.utils.data`, has each module once: Python would import it again under the second path, with duplicate classes.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any, Final

from weft.core.derived import is_derived, names_of

WEFT: Final = __name__.partition(".")[0]
# folders whose modules people use as attributes, without importing them
SPREAD: Final = ("nn.modules", "nn.utils", "utils.data")
LAYERS, FUNCTIONS = f"{WEFT}.nn.modules", f"{WEFT}.nn.functional"


class Files(MetaPathFinder, Loader):
    """An import hook for these modules."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        folder, _, file = name.rpartition(".")
        home = sys.modules.get(folder) if folder.startswith(f"{WEFT}.") else None
        if home is None or is_derived(name):
            return None
        own = f"{home.__name__}.{file}"
        if _exists(own):
            return None if own == name else ModuleSpec(name, self, loader_state=own)
        return ModuleSpec(name, self) if _names(name, home) else None

    def exec_module(self, module: ModuleType) -> None:
        spec = module.__spec__
        assert spec is not None
        if spec.loader_state:
            sys.modules[spec.name] = importlib.import_module(spec.loader_state)
            return
        home = sys.modules[spec.name.rpartition(".")[0]]
        vars(module).update({n: getattr(home, n) for n in _names(spec.name, home)})
        vars(module)["__getattr__"] = _named(home)  # OneFlow's files have more names


def _named(home: ModuleType) -> Callable[[str], Any]:
    """A folder's names, but for those of its files; OneFlow's files of layers have functions, too."""
    homes = (home, sys.modules[FUNCTIONS]) if home.__name__ == LAYERS else (home,)

    def find(name: str) -> Any:
        found = [] if name.startswith("__") else [getattr(place, name, None) for place in homes]
        for value in found:
            if value is not None and not isinstance(value, ModuleType):
                return value
        raise AttributeError(f"{home.__name__}'s file has no {name!r}")

    return find


def _exists(name: str) -> bool:
    """Whether Weft has a file of this module's name."""
    folder = sys.modules[name.rpartition(".")[0]]
    return PathFinder.find_spec(name, getattr(folder, "__path__", [])) is not None


def _names(name: str, home: ModuleType) -> list[str]:
    """The names of a torch module that a folder of Weft's has."""
    try:
        file = importlib.import_module(f"torch.{name.partition('.')[2]}")
    except ImportError:
        return []
    here = names_of(home)
    there = {*here, *dir(home), *getattr(home, "__all__", ())}
    return [n for n in vars(file) if n in there and not n.startswith("__") and not isinstance(here.get(n), ModuleType)]


def _reach(folder: str) -> None:
    """Make a folder's modules its attributes, imported or not."""

    inner = names_of(sys.modules[folder]).get("__getattr__")

    def find(name: str) -> Any:
        if inner is not None:
            try:
                return inner(name)
            except AttributeError:
                pass
        if not name.startswith("__"):
            try:
                return importlib.import_module(f"{folder}.{name}")
            except ModuleNotFoundError:
                pass
        raise AttributeError(f"module {folder!r} has no attribute {name!r}", name=name, obj=sys.modules[folder])

    names_of(sys.modules[folder])["__getattr__"] = find


def spread() -> None:
    """Install the import hook, once, when all folders are imported."""
    sys.meta_path.insert(0, Files())
    for folder in SPREAD:
        _reach(f"{WEFT}.{folder}")
