"""`flow.mock_torch`: while it is enabled, `import torch` in a user's program gives Weft.

It depends on the importing module: installed packages still import torch itself, unless `enable(packages=("timm",))`
names them. What Weft lacks and isn't about tensors, such as `torch.fx`, is torch's own.
"""

from __future__ import annotations
import __future__

import builtins
import functools
import importlib
import inspect
import site
import sys
import sysconfig
from collections.abc import Callable, Mapping, Sequence
from types import BuiltinFunctionType, FrameType, ModuleType, TracebackType
from typing import Any, ClassVar, Final

import torch
from torch import overrides

from weft.autograd.function import Function
from weft.core.derived import Late, counterpart, names_of
from weft.core.dtype import DType
from weft.core.errors import ArgumentError, WeftError
from weft.nn.module.module import Module

WEFT: Final = __name__.partition(".")[0]


def error_msg(name: str) -> str:
    """The error for a name of torch's that Weft lacks."""
    return (
        f"Weft has no {name}. Under flow.mock_torch the program sees Weft in torch's place; write "
        "`with flow.mock_torch.disable():` around what needs torch itself"
    )


class ModuleWrapper(Late):
    """A mock of a torch module, by its dotted name, with Weft's names."""

    def __init__(self, name: str, target: Any) -> None:
        super().__init__(name, f"Weft, in the place of {name}.")
        names = names_of(self)
        names["_target"] = target
        if name in ("torch", "torch.version"):
            names["__version__"] = torch.__version__
        if isinstance(target, ModuleType):
            names["__path__"] = []  # it has submodules
            names["__file__"] = getattr(target, "__file__", None)

    def __getattr__(self, name: str) -> Any:
        if name == "__all__":
            return self._target.__all__
        if name.startswith("__") and not isinstance(getattr(torch, name, None), ModuleType):  # torch.__config__
            raise AttributeError(name)
        found = _mock.look(f"{self.__name__}.{name}", self._target)
        return found if isinstance(found, Missing) else names_of(self).setdefault(name, found)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._target, name, value)

    def __dir__(self) -> list[str]:
        return [name for name in dir(self._target) if name == "__all__" or not name.startswith("__")]

    def __repr__(self) -> str:
        return f"<module '{self.__name__}', which is {self._target!r}>"


class Missing:
    """Under `enable(lazy=True)`, a placeholder for a name that Weft lacks, which raises when used."""

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Missing(f"{self.__name__}.{name}")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(error_msg(self.__name__))

    def __repr__(self) -> str:
        return f"<{self.__name__}, which Weft lacks>"


def _is_spread(path: str, folder: Any) -> bool:
    """Whether Weft's folder has some name of a torch submodule: of `torch.distributions.normal`, say,
    `distributions.Normal`."""
    if path.count(".") < 2 or not isinstance(folder, ModuleType):
        return False
    try:
        file = importlib.import_module(path)
    except ImportError:
        return False
    return any(getattr(value, "__module__", "") == path and hasattr(folder, name) for name, value in vars(file).items())


@functools.cache
def _of_tensors() -> frozenset[int]:
    """The ids of torch's functions that take or make tensors, as torch.overrides lists them."""
    listed = overrides.get_overridable_functions().values()
    either = [*overrides.get_ignored_functions(), *(f for functions in listed for f in functions)]
    return frozenset(id(f) for f in either if callable(f))  # torch lists True and False among them


def _passed(path: str) -> Any:
    """Torch's own object of this name if it isn't about tensors, as it wouldn't work with Weft's."""
    try:
        return importlib.import_module(path)
    except ImportError:
        folder, _, name = path.rpartition(".")
        try:
            found = getattr(importlib.import_module(folder), name)
        except ImportError:
            raise AttributeError(path) from None
    kernel = isinstance(found, BuiltinFunctionType) and hasattr(torch._C._VariableFunctions, found.__name__)  # type: ignore[attr-defined]
    if kernel or id(found) in _of_tensors() or (isinstance(found, type) and issubclass(found, ABOUT_TENSORS)):
        composed = _named("weft.interop.torch_compositions.COMPOSED")  # what stands for it in torch's modules
        if found not in composed:
            raise AttributeError(path)
        return composed[found]
    return found


class OwnOp:
    """The mock of `torch.library.custom_op`: the function itself, written with Weft's ops, from which forms and layouts
    follow, and gradients, unless it is given one."""

    known: ClassVar[dict[str, OwnOp]] = {}

    def __init__(self, name: str, function: Callable[..., Any]) -> None:
        self.function = function
        self.known[name] = self
        functools.update_wrapper(self, function)

    @classmethod
    def made(cls, name: str, fn: Any = None, /, **_: Any) -> Any:
        return functools.partial(cls, name) if fn is None else cls(name, fn)

    @classmethod
    def differentiated(cls, op: str | OwnOp, backward: Callable[..., Any], /, **options: Any) -> None:
        (cls.known[op] if isinstance(op, str) else op).register_autograd(backward, **options)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    def register_fake(self, form: Any = None, /) -> Any:
        return _left_out() if form is None else form

    def register_autograd(
        self, backward: Callable[..., Any], /, *, setup_context: Callable[..., Any] | None = None, lib: Any = None
    ) -> None:
        """Let its gradient be another than that of the ops in it."""
        body, parameters = self.function, inspect.signature(self.function)
        context = setup_context or (lambda ctx, inputs, output: None)
        methods = {"forward": body, "setup_context": context, "backward": backward}
        made = type(body.__name__, (Function,), {name: staticmethod(f) for name, f in methods.items()})

        def call(*args: Any, **kwargs: Any) -> Any:
            given = parameters.bind(*args, **kwargs)
            given.apply_defaults()
            return made.apply(*given.args, **given.kwargs)

        self.function = call


class OwnOps:
    """The mock of `torch.ops`: where libraries look up and load operators, those of `OwnOp` by their names."""

    def __init__(self, folder: str = "", theirs: Any = torch._ops.ops) -> None:
        self.folder, self.theirs = folder, theirs

    def __getattr__(self, name: str) -> Any:
        own = OwnOp.known.get(self.folder + name)
        found = getattr(self.theirs, name) if own is None else own
        return OwnOps(f"{name}::", found) if isinstance(found, torch._ops._OpNamespace) else found


def _left_out(*_: Any, **__: Any) -> Callable[[Any], Any]:
    """A decorator without effect, for what Weft derives anyway."""
    return lambda f: f


class ScriptModule(Module):
    """A module whose methods run as Python, as those do that `torch.jit.script` is given."""


ABOUT_TENSORS: Final = (torch.nn.Module, torch.optim.Optimizer, torch.autograd.Function)
OURS: Final[dict[str, Any]] = {  # replacements in modules that are torch's own
    "torch.ops": OwnOps(),
    "torch.functional": "weft",  # its functions are all torch's own, too
    "torch.distributed._tensor": "weft.distributed.tensor",  # as older programs name them
    "torch.distributed._tensor.api": "weft.distributed.tensor",
    "torch.distributed._tensor.device_mesh": "weft.distributed.mesh",
    "torch.distributed.tensor.device_mesh": "weft.distributed.mesh",
    "torch.distributed._composable.fsdp": "weft.distributed.fsdp",
    "torch.distributed._composable.replicate": "weft.parallel.ddp.replicate",
    "torch.distributed.fsdp.sharded_grad_scaler.ShardedGradScaler": "weft.amp.GradScaler",
    **{
        f"torch{file}.{f}": f"weft.interop.torch_files.{f}" for file in ("", ".serialization") for f in ("save", "load")
    },
    "torch.nn.modules.linear.NonDynamicallyQuantizableLinear": "weft.nn.Linear",  # in attention, also in files of it
    "torch._C._TensorMeta": type,  # the metaclass of tensors, which torch's C++ makes
    "torch.jit.ScriptModule": ScriptModule,
    "torch.library.custom_op": OwnOp.made,
    "torch.library.register_autograd": OwnOp.differentiated,
    "torch.library.register_fake": _left_out,
    "torch._dynamo.mark_static_address": lambda t, guard=False: None,  # addresses don't matter here
}


class _Mock:
    """The process's state: whether the mock is enabled, and what it replaced."""

    def __init__(self) -> None:
        self.on = False
        self.real = builtins.__import__
        self.root: ModuleWrapper | None = None
        self.lazy = False
        self.extra: dict[str, Any] = dict(OURS)
        self.packages: frozenset[str] = frozenset()
        self.aside: dict[str, ModuleType] = {}  # these packages' modules of the other mode

    def ask(self, lazy: bool, extra: Mapping[str, Any] | None, packages: Sequence[str]) -> None:
        self.lazy, self.extra, self.root = lazy, {**OURS, **(extra or {})}, None
        if isinstance(packages, str):
            raise ArgumentError(f"mock_torch.enable(packages={packages!r}): a list of names, such as [{packages!r}]")
        if self.on:
            self._swap()
        self.packages = self.packages.union(packages)
        if self.on:
            self._swap()

    def look(self, path: str, target: Any) -> Any:
        """The mock of `path`, an attribute of `target`, Weft's or torch's module for its folder."""
        name = path.rpartition(".")[2]
        if path in self.extra:
            given = self.extra[path]
            if not isinstance(given, str):
                return given
            found = _named(given)
            return ModuleWrapper(path, found) if isinstance(found, ModuleType) else found
        try:
            found = getattr(target, name)
            if isinstance(found, __future__._Feature):  # that a file of Weft's is written with, and torch has a file
                raise AttributeError(name)
        except AttributeError:
            found = _file_of(target, name)
            if found is None and _is_spread(path, target):
                found = target
            if found is None:
                try:
                    found = _passed(path)
                except AttributeError:
                    if self.lazy:
                        return Missing(path)
                    raise AttributeError(error_msg(path)) from None
        if not isinstance(found, ModuleType):
            return ModuleWrapper(path, found) if path == "torch._C" else found
        ours = found.__name__.partition(".")[0] != "torch" or any(k.startswith(f"{path}.") for k in self.extra)
        return ModuleWrapper(path, found) if ours else found

    def find(self, path: str) -> Any:
        if self.root is None:
            self.root = ModuleWrapper("torch", sys.modules[WEFT])
        found: Any = self.root
        at = "torch"
        for name in path.split(".")[1:]:
            at = f"{at}.{name}"
            try:
                folder = found
                theirs = isinstance(folder, ModuleType) and not isinstance(folder, ModuleWrapper)
                found = importlib.import_module(at) if theirs else getattr(folder, name)
                if callable(found) and not isinstance(found, (ModuleType, Missing)):  # a file called as what is in it
                    ours = counterpart(at)
                    file = ModuleWrapper(at, importlib.import_module(ours) if ours else names_of(folder)["_target"])
                    names_of(file)[name] = found
                    found = file
            except AttributeError as cause:
                raise ModuleNotFoundError(str(cause), name=path) from None
        return found

    def load(
        self, name: str, globals: Any = None, locals: Any = None, fromlist: Sequence[str] | None = (), level: int = 0
    ) -> Any:
        """The replacement of `__import__`. C code such as pickle's calls it, too, on behalf of its caller: it reads the
        result from sys.modules, and passes an empty `fromlist` list where a statement passes a tuple or None.
        `importlib.util.find_spec` asks for the folders of torch's files."""
        if isinstance(fromlist, list) and fromlist in ([], ["__path__"]):
            return self.real(name, globals, locals, tuple(fromlist), level)
        if level or name.partition(".")[0] != "torch" or not self.is_own(globals):
            return self.real(name, globals, locals, fromlist or (), level)
        found = self.find(name)
        if fromlist and isinstance(found, ModuleType) and not isinstance(found, ModuleWrapper):
            return self.real(found.__name__, globals, locals, fromlist, 0)  # and its modules, where it has some
        for wanted in fromlist or ():
            try:
                getattr(found, wanted)
            except AttributeError as cause:
                if wanted != "*":
                    raise ImportError(str(cause), name=name) from None  # Python's own wouldn't say why
        return found if fromlist else self.find("torch")

    def switch(self, on: bool) -> None:
        if on and not self.on:
            self.real = builtins.__import__
            builtins.__import__ = self.load
        elif self.on and not on:
            if builtins.__import__ != self.load:
                raise WeftError("mock_torch: something else took over `import` since; it can't be disabled before that")
            builtins.__import__ = self.real
        if on != self.on:
            self._swap()
        self.on = on
        DType.library = "torch" if on else WEFT

    def _swap(self) -> None:
        """Swap the named packages' modules: mock and real mode have separate copies."""
        here = [name for name in sys.modules if name.partition(".")[0] in self.packages]
        aside, self.aside = self.aside, {name: sys.modules.pop(name) for name in here}
        sys.modules.update(aside)

    def is_own(self, globals: dict[str, Any] | None) -> bool:
        """Whether code with these globals sees Weft: it isn't of an installed package, except the named ones, nor
        Weft's or torch's."""
        found = globals or {}
        package = str(found.get("__name__", "")).partition(".")[0]
        if package in self.packages:
            return True
        file = str(found.get("__file__", ""))
        installed = package in (WEFT, "torch") or file.startswith(INSTALLED) or any(f in file for f in ELSEWHERE)
        return not installed and not _is_made_by_torch(found)


_mock = _Mock()


def _installed() -> tuple[str, ...]:
    paths = {*sysconfig.get_paths().values(), *site.getsitepackages(), site.getusersitepackages()}
    return tuple(f"{p}/" for p in paths if p)


INSTALLED: Final = _installed()
ELSEWHERE: Final = ("/site-packages/", "/dist-packages/")  # of another environment, by a .pth file or PYTHONPATH


def _is_made_by_torch(globals: dict[str, Any]) -> bool:
    """Whether these globals are of a file that torch has generated and is importing now."""
    at: FrameType | None = sys._getframe(3)
    if at is None or at.f_code.co_name != "<module>":
        return False
    while at is not None and (at.f_globals is globals or "importlib" in str(at.f_globals.get("__name__", ""))):
        at = at.f_back
    return at is not None and str(at.f_globals.get("__name__", "")).partition(".")[0] == "torch"


def _file_of(folder: Any, name: str) -> ModuleType | None:
    """Import a submodule of Weft's, if there is one."""
    if not isinstance(folder, ModuleType) or folder.__name__.partition(".")[0] != WEFT:
        return None
    path = f"{folder.__name__}.{name}"
    try:
        return importlib.import_module(path)
    except ModuleNotFoundError as error:
        if error.name != path:
            raise
        return None


def _named(path: str) -> Any:
    """The object of a dotted name."""
    folder, _, name = path.rpartition(".")
    try:
        return importlib.import_module(path)
    except ModuleNotFoundError:
        return getattr(importlib.import_module(folder), name)


def _exchange(names: dict[str, Any], mocked: bool) -> None:
    """Swap torch modules that the caller imported already for their mocks, or back."""
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


def enable(lazy: bool = False, extra_dict: Mapping[str, Any] | None = None, packages: Sequence[str] = ()) -> _Switch:
    """From now on, or in a `with`, torch is Weft: in imports to come, and for modules the caller has imported.

    With `lazy`, what Weft lacks is an error when it is called, not when it is imported. `extra_dict` says what stands
    for a name: `{"torch.special_thing": "my_module.thing"}`, or the thing itself. Installed packages that are named
    see Weft, too, in a copy of their own: `with flow.mock_torch.enable(packages=["timm"]): import timm`.
    """
    _mock.ask(lazy, extra_dict, packages)
    return _Switch(True, sys._getframe(1).f_globals)


def disable() -> _Switch:
    """From now on, or in a `with`, torch is torch."""
    return _Switch(False, sys._getframe(1).f_globals)


def named(module: str, name: str) -> Any:
    """What stands for a name in a module of torch's."""
    return functools.reduce(getattr, name.split("."), _mock.find(module))


def sees_weft(module: ModuleType) -> bool:
    """Whether this module's `import torch` gives Weft now."""
    return _mock.on and _mock.is_own(vars(module))


def is_enabled() -> bool:
    """Whether `import torch` gives Weft."""
    return _mock.on


__all__ = ["ModuleWrapper", "disable", "enable", "error_msg", "is_enabled"]
