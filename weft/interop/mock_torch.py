"""`flow.mock_torch`: while it is enabled, `import torch` in a program of one's own gives Weft.

Packages that are installed, Weft and torch among them, go on importing torch itself: who imports decides.
"""

from __future__ import annotations

import builtins
import importlib
import site
import sys
import sysconfig
from collections.abc import Sequence
from types import ModuleType, TracebackType
from typing import Any, Final

import torch

from weft.core.errors import WeftError

WEFT: Final = __name__.partition(".")[0]


def error_msg(name: str) -> str:
    """What a program hears that uses a name of torch's that Weft lacks."""
    return (
        f"Weft has no {name}. Under flow.mock_torch the program sees Weft in torch's place; write "
        "`with flow.mock_torch.disable():` around what needs torch itself"
    )


class ModuleWrapper(ModuleType):
    """A module of torch's, by its dotted name, whose names are Weft's."""

    def __init__(self, name: str, target: Any) -> None:
        super().__init__(name, f"Weft, in the place of {name}.")
        self.__dict__["_target"] = target
        if name == "torch":
            self.__dict__["__version__"] = torch.__version__
        if isinstance(target, ModuleType):
            self.__dict__["__path__"] = []  # it has modules of its own
            self.__dict__["__file__"] = getattr(target, "__file__", None)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        path = f"{self.__name__}.{name}"
        try:
            found = getattr(self._target, name)
        except AttributeError:
            if not _is_spread(path, self._target):
                raise AttributeError(error_msg(path)) from None
            found = self._target
        return self.__dict__.setdefault(name, ModuleWrapper(path, found) if isinstance(found, ModuleType) else found)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._target, name, value)

    def __dir__(self) -> list[str]:
        return dir(self._target)

    def __repr__(self) -> str:
        return f"<module '{self.__name__}', which is {self._target!r}>"


def _is_spread(path: str, folder: Any) -> bool:
    """Whether this is a file of torch's of which Weft has something where torch has the file: of
    `torch.distributions.normal`, say, `distributions.Normal`."""
    if path.count(".") < 2 or not isinstance(folder, ModuleType):
        return False
    try:
        file = importlib.import_module(path)
    except ImportError:
        return False
    return any(getattr(value, "__module__", "") == path and hasattr(folder, name) for name, value in vars(file).items())


class _Mock:
    """The state of the whole program: whether it is on, and what it replaced."""

    def __init__(self) -> None:
        self.on = False
        self.real = builtins.__import__
        self.root: ModuleWrapper | None = None

    def find(self, path: str) -> Any:
        if self.root is None:
            self.root = ModuleWrapper("torch", sys.modules[WEFT])
        found: Any = self.root
        for name in path.split(".")[1:]:
            try:
                found = getattr(found, name)
            except AttributeError as cause:
                raise ModuleNotFoundError(str(cause), name=path) from None
        return found

    def load(
        self, name: str, globals: Any = None, locals: Any = None, fromlist: Sequence[str] | None = (), level: int = 0
    ) -> Any:
        """What an import statement calls, and C code such as pickle's, in the name of whoever called that: it looks
        for what it has imported in sys.modules, and gives an empty list where a statement gives a tuple or None."""
        if isinstance(fromlist, list) and not fromlist:
            return self.real(name, globals, locals, (), level)
        if level or name.partition(".")[0] != "torch" or not _is_own(globals):
            return self.real(name, globals, locals, fromlist or (), level)
        found = self.find(name)
        return found if fromlist else self.find("torch")

    def switch(self, on: bool) -> None:
        if on and not self.on:
            self.real = builtins.__import__
            builtins.__import__ = self.load
        elif self.on and not on:
            if builtins.__import__ != self.load:
                raise WeftError("mock_torch: something else took over `import` since; it can't be disabled before that")
            builtins.__import__ = self.real
        self.on = on


_mock = _Mock()


def _installed() -> tuple[str, ...]:
    paths = {*sysconfig.get_paths().values(), *site.getsitepackages(), site.getusersitepackages()}
    return tuple(f"{p}/" for p in paths if p)


INSTALLED: Final = _installed()


def _is_own(globals: dict[str, Any] | None) -> bool:
    """Whether code with these globals belongs to the program: to no installed package, and not to Weft or torch."""
    found = globals or {}
    package = str(found.get("__name__", "")).partition(".")[0]
    return package not in (WEFT, "torch") and not str(found.get("__file__", "")).startswith(INSTALLED)


def _exchange(names: dict[str, Any], mocked: bool) -> None:
    """Let the modules of torch's that the caller imported already be the others."""
    for name, value in list(names.items()):
        if not isinstance(value, ModuleType) or value.__name__.partition(".")[0] != "torch":
            continue
        if mocked and not isinstance(value, ModuleWrapper):
            names[name] = _mock.find(value.__name__)
        elif not mocked and isinstance(value, ModuleWrapper):
            names[name] = sys.modules.get(value.__name__, value)


class _Switch:
    def __init__(self, on: bool, names: dict[str, Any]) -> None:
        self.before, self.names = _mock.on, names
        self._set(on)

    def _set(self, on: bool) -> None:
        _mock.switch(on)
        _exchange(self.names, on)

    def __enter__(self) -> _Switch:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._set(self.before)


def enable() -> _Switch:
    """From now on, or in a `with`, torch is Weft: in imports to come, and for modules the caller has imported."""
    return _Switch(True, sys._getframe(1).f_globals)


def disable() -> _Switch:
    """From now on, or in a `with`, torch is torch."""
    return _Switch(False, sys._getframe(1).f_globals)


def is_enabled() -> bool:
    """Whether `import torch` gives Weft."""
    return _mock.on


__all__ = ["ModuleWrapper", "disable", "enable", "error_msg", "is_enabled"]
