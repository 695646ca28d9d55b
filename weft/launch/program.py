"""Load a program: a file or a module, its code, and a `__main__` module to run it in."""

from __future__ import annotations

import importlib.util
import sys
import types
from pathlib import Path

from weft.core.errors import ArgumentError


def main_module(place: str, package: str | None) -> types.ModuleType:
    module = types.ModuleType("__main__")
    module.__dict__.update(__file__=place, __builtins__=__builtins__, __package__=package)
    return module


def code_of(program: str, as_module: bool) -> tuple[types.CodeType, str, str | None]:
    """A program's code, its path, and its package; sets the first entry of `sys.path` as Python does."""
    if not as_module:
        path = Path(program)
        if not path.is_file():
            raise ArgumentError(f"there is no program {program!r}; for a module's name, give -m")
        sys.path[0] = str(path.resolve().parent)
        return compile(path.read_bytes(), str(path), "exec"), str(path), None
    found = importlib.util.find_spec(program)
    if found is not None and found.submodule_search_locations is not None:
        found = importlib.util.find_spec(f"{program}.__main__")
    if found is None or found.origin is None:
        raise ArgumentError(f"there is no module {program!r} to run; is it on the path?")
    code = compile(Path(found.origin).read_bytes(), found.origin, "exec")
    return code, found.origin, found.parent
