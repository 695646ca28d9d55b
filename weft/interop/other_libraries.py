"""Let functions of other libraries take Weft's tensors and modules: a table.

A function of torch's that supports `__torch_function__` calls Weft's op of the same name, so code written for torch's
tensors takes Weft's. Other functions are listed below. Each is wrapped once its module is imported: for Weft's values
it calls the replacement, for all others the original.
"""

from __future__ import annotations

import functools
import importlib.util
import sys
from collections.abc import Callable, Iterable, Iterator
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any, Final

import torch
from torch.utils._pytree import tree_map_only

from weft.autograd.plain import taken
from weft.core.dispatch import here
from weft.core.errors import ArgumentError
from weft.core.program_line import warn
from weft.graph.graph import Graph
from weft.interop.entering import Callback
from weft.interop.facade import Facade
from weft.interop.inside import inside
from weft.interop.torch_modules import to_module
from weft.nn.module.module import Module
from weft.tensor.tensor import Tensor

Function = Callable[..., Any]


# ---- torch's functions -------------------------------------------------------------------------------


def _answered(cls: type, func: Function, types: Any, args: Any = (), kwargs: Any = None) -> Any:
    """`__torch_function__` of Weft's tensors: Weft's function of the same name, or torch's Python on Weft's tensors.

    If Weft's own kernel called it, a tensor was passed for a number, and torch refuses it.
    """
    if _of_kernel():
        return NotImplemented
    kwargs = kwargs or {}
    for t in _tensors((args, tuple(kwargs.values()))):
        if type(t) is not Facade and torch.is_grad_enabled() and here.grad:
            taken(t)  # or why torch's tape would lack it
    return Callback(func)(*args, **kwargs)


def _of_kernel() -> bool:
    """Whether it is one of Weft's kernels that calls a function of torch's."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and frame.f_code.co_filename.startswith(TORCHS):
        frame = frame.f_back
    home = "" if frame is None else str(frame.f_globals.get("__name__"))
    return home.startswith(KERNELS) or (frame is not None and frame.f_code.co_filename.startswith(ENTRY))


def _tensors(values: Any) -> Iterable[torch.Tensor]:
    for v in values:
        if isinstance(v, torch.Tensor):
            yield v
        elif isinstance(v, (list, tuple)):
            yield from _tensors(v)


def holds(values: Iterable[Any]) -> bool:
    """Whether one of Weft's tensors or modules is among the values, or in tuples, lists and dicts of them."""
    for v in values:
        if isinstance(v, (Tensor, Module)):
            return True
        if isinstance(v, (list, tuple, dict)) and holds(v.values() if isinstance(v, dict) else v):
            return True
    return False


@functools.cache  # torch has some under several names, each of which must stay the same function
def counterpart(theirs: Function, name: str) -> Function:
    """Wrap a function: for Weft's values, call Weft's of the same name; if it returns a function, wrap that, too."""
    path = PLACES.get(name, theirs.__module__.partition(".")[2])

    def ours(*args: Any, **kwargs: Any) -> Any:
        home = functools.reduce(getattr, path.split("."), sys.modules[WEFT])
        found = getattr(home, name, None)
        if found is None:
            raise ArgumentError(f"torch.{path}.{name} was given Weft's tensors, and flow.{path} has no {name}")
        return found(*args, **kwargs)

    @functools.wraps(theirs)
    def call(*args: Any, **kwargs: Any) -> Any:
        args = tuple(list(a) if isinstance(a, Iterator) else a for a in args)  # such as model.parameters()
        if not inside.depth and holds((*args, *kwargs.values())):
            return ours(*args, **kwargs)
        made = theirs(*args, **kwargs)
        if not callable(made):
            return made

        @functools.wraps(made)
        def later(*given: Any, **named: Any) -> Any:
            both = not inside.depth and holds((*given, *named.values()))
            return (ours(*args, **kwargs) if both else made)(*given, **named)

        return later

    return call


def _compile(theirs: Function) -> Function:
    @functools.wraps(theirs)
    def compile(model: Any = None, *args: Any, **kwargs: Any) -> Any:
        if not isinstance(model, (Module, Graph)):
            return theirs(model, *args, **kwargs)
        warn(
            f"torch.compile({type(model).__name__}): it stays as it is. A graph compiles here: a class of nn.Graph's "
            "that calls it in build()"
        )
        return model

    return compile


# ---- other packages ----------------------------------------------------------------------------------


def _data(t: Any, name: str = "") -> Any:
    """A local tensor as torch's, over the same memory; other values unchanged."""
    if not isinstance(t, Tensor):
        return t
    if t.is_global:
        raise ArgumentError(
            f"safetensors.torch writes what one rank has{name and f', and {name} is global'}: "
            "flow.save(state, 'model.safetensors') writes the same format, and flow.save(state, folder, "
            "max_shard_size='5GB') a model's folder, each rank its own slices"
        )
    return t.detach().to_torch()


class States:
    """A module's state as torch's tensors, over the same memory."""

    def __init__(self, module: Module) -> None:
        self.module = module

    def state_dict(self) -> dict[str, Any]:
        return {name: _data(t, name) for name, t in self.module.state_dict().items()}

    def load_state_dict(self, state: dict[str, Any], strict: bool = True) -> Any:
        return self.module.load_state_dict(state, strict=strict)


@functools.cache
def _exporting(theirs: Function, name: str) -> Function:
    """For what writes a model down, make a torch module of one that `from_torch` took, and torch's tensors."""

    @functools.wraps(theirs)
    def call(model: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(model, Module):
            model = to_module(model)
            args, kwargs = tree_map_only(Tensor, lambda t: t.detach().to_torch(), (args, kwargs))
        return theirs(model, *args, **kwargs)

    return call


def _first(convert: Function) -> Callable[[Function, str], Function]:
    """Convert the first argument."""

    def replaced(theirs: Function, name: str) -> Function:
        @functools.wraps(theirs)
        def call(first: Any, *args: Any, **kwargs: Any) -> Any:
            return theirs(convert(first), *args, **kwargs)

        return call

    return replaced


def _entering(theirs: Function, name: str) -> Function:
    """For Weft's values, run the function as code of torch's modules is."""

    @functools.wraps(theirs)
    def call(*args: Any, **kwargs: Any) -> Any:
        weft = not inside.depth and holds((*args, *kwargs.values()))
        return (Callback(theirs) if weft else theirs)(*args, **kwargs)

    return call


def _calls(theirs: type, name: str) -> type:
    """Likewise for a class of layers, when they are called."""

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        run = super(theirs, self).__call__  # type: ignore[misc]
        return (run if isinstance(self, Module) else _entering(run, name))(*args, **kwargs)

    theirs.__call__ = call
    return theirs


def _named_array(theirs: Function, name: str) -> Function:
    return functools.wraps(theirs)(lambda tag, x: theirs(tag, _data(x)))


_array = _first(lambda x: x.numpy() if isinstance(x, Tensor) else x)
_state = _first(lambda x: {k: _data(t, k) for k, t in x.items()} if isinstance(x, dict) else x)
_module = _first(lambda x: States(x) if isinstance(x, Module) else x)

TORCHS: Final = str(Path(torch.__file__).parent)
ENTRY: Final = "<weft entry"
ROOMS: Final = ("ops", "interpreter", "functional.create", "functional.shape", "functional.random")
KERNELS: Final = tuple(f"{__name__.partition('.')[0]}.{room}." for room in ROOMS)
TRANSFORMS: Final = ("vmap", "grad", "grad_and_value", "vjp", "jvp", "jacrev", "jacfwd", "hessian", "linearize",
                     "functionalize", "functional_call")  # fmt: skip
CLIPS: Final = ("clip_grad_norm_", "clip_grad_value_", "clip_grads_with_norm_", "get_total_norm")
WEFT: Final = __name__.partition(".")[0]
PLACES: Final = {**dict.fromkeys(TRANSFORMS, "func"), **dict.fromkeys(CLIPS, "nn.utils")}
REPLACED: Final[dict[str, dict[str, Callable[[Any, str], Any]]]] = {
    "torch": {"vmap": counterpart, "compile": lambda theirs, name: _compile(theirs)},
    "torch.func": dict.fromkeys(TRANSFORMS, counterpart),
    "torch.nn.utils": dict.fromkeys(CLIPS, counterpart),
    "torch.nn.utils.clip_grad": dict.fromkeys(CLIPS[:2], counterpart),
    "torch.nn.init": {name: counterpart for name in vars(torch.nn.init) if name.endswith("_") and name[0] != "_"},
    "torch.onnx": {"export": _exporting},
    "torch.export": {"export": _exporting},
    "torch.jit": {"trace": _exporting},
    "torch.jit._trace": {"trace": _exporting},
    "torch.utils.tensorboard._convert_np": {"make_np": _array},
    "torch.utils.tensorboard.writer": {"graph": _exporting, "tensor_proto": _named_array},
    "tensorboardX.x2num": {"make_np": _array},
    "einops.einops": dict.fromkeys(("reduce", "einsum", "parse_shape", "asnumpy"), _entering),
    "einops.packing": dict.fromkeys(("pack", "unpack"), _entering),
    "torchvision.transforms.v2._transform": {"Transform": _calls},  # which leave alone what is no torch.Tensor
    "safetensors.torch": {"save": _state, "save_file": _state, "save_model": _module, "load_model": _module},
}


def _replace(module: ModuleType) -> None:
    for name, how in REPLACED[module.__name__].items():
        if hasattr(module, name):
            setattr(module, name, how(getattr(module, name), name))


class Later(MetaPathFinder, Loader):
    """An import hook: after the import of a module of the table, wrap its functions."""

    def find_spec(self, name: str, path: Any, target: ModuleType | None = None) -> ModuleSpec | None:
        if name not in REPLACED or name in self.looking:
            return None
        self.looking.add(name)
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self.looking.discard(name)
        if spec is None or spec.loader is None:
            return None
        self.loaders[name], spec.loader = spec.loader, self
        return spec

    def __init__(self) -> None:
        self.looking: set[str] = set()
        self.loaders: dict[str, Any] = {}

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self.loaders[spec.name].create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        spec = module.__spec__
        assert spec is not None
        loader = spec.loader = module.__loader__ = self.loaders.pop(spec.name)
        loader.exec_module(module)
        _replace(module)


def install() -> None:
    """Install the hook, once for the process, when Weft is imported."""
    Tensor.__torch_function__ = classmethod(_answered)  # type: ignore[attr-defined]
    for name in REPLACED:
        if name in sys.modules:
            _replace(sys.modules[name])
    sys.meta_path.insert(0, Later())
