"""Let functions of other libraries take Weft's tensors and modules: a table.

A function of torch's that supports `__torch_function__` calls Weft's op of the same name, so code written for torch's
tensors takes Weft's. Other functions are listed below. Each is wrapped once its module is imported: for Weft's values
it calls the replacement, for all others the original.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import sys
from collections.abc import Callable, Iterator
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import FrameType, FunctionType, ModuleType
from typing import Any, Final

import torch
from torch.utils.data._utils.collate import default_collate_fn_map

from weft.autograd.plain import taken
from weft.autograd.trees import leaves
from weft.core.derived import since
from weft.core.dispatch import here
from weft.core.errors import ArgumentError
from weft.core.program_line import warn
from weft.graph.graph import Graph
from weft.interop import bypasses
from weft.interop.entering import WEFTS, Callback, contains
from weft.interop.facade import Facade, Function, inward, outward
from weft.interop.inside import inside
from weft.interop.mock_torch import sees_weft
from weft.interop.replaced_classes import (
    data_parallel,
    scale_ours,
    with_our_classes,
    wrap_methods,
    wrap_optimizer,
    wrap_subclasses,
)
from weft.interop.torch_modules import data_of, on_torchs_tensors
from weft.nn import attention
from weft.nn.module.module import Module
from weft.nn.utils.stateless import functional_call
from weft.ops import ops
from weft.tensor.tensor import Tensor
from weft.transport.c10d import SENDING

# ---- torch's functions -------------------------------------------------------------------------------


def _answered(cls: type, func: Function, types: Any, args: Any = (), kwargs: Any = None) -> Any:
    """`__torch_function__` of Weft's tensors: Weft's function of the same name, or torch's Python on Weft's tensors.

    If Weft's own kernel called it, a tensor was passed for a number, and torch refuses it.
    """
    if _called_by_kernel():
        return NotImplemented
    kwargs = kwargs or {}
    for t in leaves((args, kwargs)):
        if isinstance(t, torch.Tensor) and type(t) is not Facade and torch.is_grad_enabled() and here.grad:
            taken(t)  # or why torch's tape would lack it
    return Callback(func)(*args, **kwargs)


def _called_by_kernel() -> bool:
    """Whether it is one of Weft's kernels that calls a function of torch's."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and frame.f_code.co_filename.startswith(TORCHS):
        frame = frame.f_back
    home = "" if frame is None else str(frame.f_globals.get("__name__"))
    return home.startswith(KERNELS) or (frame is not None and frame.f_code.co_filename.startswith(ENTRY))


@functools.cache  # torch has some under several names, each of which must stay the same function
def counterpart(theirs: Function, name: str) -> Function:
    """Wrap a function: for Weft's values, call Weft's of the same name; if it returns a function, wrap that, too."""
    path = theirs.__module__.partition(".")[2]
    path = PLACES.get(path) or PLACES.get(path.partition(".")[0], path)

    def ours(*args: Any, **kwargs: Any) -> Any:
        home = functools.reduce(getattr, path.split("."), sys.modules[WEFT])
        found = getattr(home, name, None)
        if found is None:
            raise ArgumentError(f"torch.{path}.{name} was given Weft's tensors, and flow.{path} has no {name}")
        if contains((*args, *kwargs.values()), (Facade,)):  # the parameters that an optimizer of torch's has
            args, kwargs = inward(args), inward(kwargs)
        return found(*args, **kwargs)

    @functools.wraps(theirs)
    def call(*args: Any, **kwargs: Any) -> Any:
        args = tuple(list(a) if isinstance(a, Iterator) else a for a in args)  # such as model.parameters()
        if not inside.depth and contains((*args, *kwargs.values()), WEFTS):
            return ours(*args, **kwargs)
        made = theirs(*args, **kwargs)
        if not callable(made):
            return made

        @functools.wraps(made)
        def later(*given: Any, **named: Any) -> Any:
            both = not inside.depth and contains((*given, *named.values()))
            return (ours(*args, **kwargs) if both else made)(*given, **named)

        return later

    return call


def _with_other_members(theirs: Function, name: str) -> Function:
    """What `torch.func.functional_call` calls: Weft's own for a module of Weft's, also inside a module of torch's."""

    @functools.wraps(theirs)
    def call(module: Any, given: Any, *args: Any, **kwargs: Any) -> Any:
        if not isinstance(module, Module):
            return theirs(module, given, *args, **kwargs)
        return functional_call(module, inward(given) if inside.depth else given, *args, **kwargs)

    return call


def _with_torchs_kinds(theirs: Function, name: str) -> Function:
    """What reads the arguments of `to` of torch's modules: they may be a device, a dtype and a tensor of Weft's."""

    def kind(v: Any) -> Any:
        if isinstance(v, (Tensor, Facade)):
            v = outward(v)
            return torch.empty(0, dtype=v.dtype, device=v.device)
        return v if isinstance(v, torch.Tensor) else outward(v)

    @functools.wraps(theirs)
    def call(*args: Any, **kwargs: Any) -> Any:
        return theirs(*map(kind, args), **{k: kind(v) for k, v in kwargs.items()})

    return call


def _grouping(theirs: Function, name: str) -> Function:
    """What sorts the lists of an optimizer's tensors by the device and dtype of those in the first."""

    @functools.wraps(theirs)
    def call(lists: Any, with_indices: bool = False) -> Any:
        if not contains(lists, WEFTS):
            return theirs(lists, with_indices)
        groups: dict[Any, tuple[list[list[Any]], list[int]]] = {}
        for i, first in enumerate(lists[0]):
            parts, indices = groups.setdefault((first.device, first.dtype), ([[] for _ in lists], []))
            indices += [i] * with_indices
            for part, several in zip(parts, lists, strict=True):
                part += several[i : i + 1]
        return groups

    call.__qualname__ = name  # C's function has another
    return call


@functools.cache  # for functions under several names
def _of_torchs_modules(theirs: Function, name: str) -> Function:
    """What replaces layers of torch's classes, and would leave a module of Weft's as it is, or traces them."""

    @functools.wraps(theirs)
    def call(model: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(model, Module):
            raise ArgumentError(
                f"{name}() knows torch's layers alone, and this {type(model).__name__} is Weft's. Train here, and give "
                "it torch's twin: flow.to_torch(model) of one that from_torch took; of another, torch's class, "
                "made in `with flow.mock_torch.disable():`, which loads the state"
            )
        return theirs(model, *args, **kwargs)

    return call


def _scripted(theirs: Function, name: str) -> Function:
    """`torch.jit.script`: a module's torch twin is what is compiled; names in the text of all else are the caller's."""

    @functools.wraps(theirs)
    def call(obj: Any, *args: Any, _frames_up: int = 0, **kwargs: Any) -> Any:
        of = on_torchs_tensors(theirs) if isinstance(obj, Module) else theirs
        return of(obj, *args, _frames_up=_frames_up + 1, **kwargs)

    return call


def _compile(theirs: Function) -> Function:
    @functools.wraps(theirs)
    def compile(model: Any = None, *args: Any, **kwargs: Any) -> Any:
        if not isinstance(model, (Module, Graph)):
            compiled = theirs(model, *args, **kwargs)
            if model is None or isinstance(model, (type, torch.nn.Module)):
                return compiled
            return _compiled_for_torchs(model, compiled)
        warn(
            f"torch.compile({type(model).__name__}): it stays as it is. A graph compiles here: a class of nn.Graph's "
            "that calls it in build()"
        )
        return model

    return compile


def _compiled_for_torchs(function: Function, compiled: Function) -> Function:
    """Run it as it is on Weft's tensors."""

    @functools.wraps(compiled)
    def call(*args: Any, **kwargs: Any) -> Any:
        return (function if contains((*args, *kwargs.values())) else compiled)(*args, **kwargs)

    return call


def _ours_inside(ours: Function) -> Callable[[Function, str], Function]:
    """In torch's modules, Weft's function in the place of one that torch's own Python looks up."""
    with_stand_ins = bypasses.with_facades(ours)
    return lambda theirs, name: bypasses.inside_or_not(with_stand_ins, theirs)


def _of_distributions(theirs: Function, name: str) -> Function:
    """Weft's function of the same name, for Weft's distributions."""

    @functools.wraps(theirs)
    def call(p: Any, q: Any) -> Any:
        home = sys.modules[WEFT].distributions
        return (getattr(home, name) if isinstance(p, home.Distribution) else theirs)(p, q)

    return call


# ---- other packages ----------------------------------------------------------------------------------


class TorchState:
    """A module's state as torch's tensors, over the same memory."""

    def __init__(self, module: Module) -> None:
        self.module = module

    def state_dict(self) -> dict[str, Any]:
        return {name: data_of(t, name) for name, t in self.module.state_dict().items()}

    def load_state_dict(self, state: dict[str, Any], strict: bool = True) -> Any:
        return self.module.load_state_dict(state, strict=strict)


def _converting_first(convert: Function) -> Callable[[Function, str], Function]:
    """Convert the first argument."""

    def replaced(theirs: Function, name: str) -> Function:
        @functools.wraps(theirs)
        def call(first: Any, *args: Any, **kwargs: Any) -> Any:
            return theirs(convert(first), *args, **kwargs)

        return call

    return replaced


def _wrap_function(theirs: Function, name: str) -> Function:
    """For Weft's values, run the function as code of torch's modules is."""

    @functools.wraps(theirs)
    def call(*args: Any, **kwargs: Any) -> Any:
        weft = not inside.depth and contains((*args, *kwargs.values()))
        return (Callback(theirs) if weft else theirs)(*args, **kwargs)

    return call


def _of_layers(theirs: Function, name: str) -> Function:
    """What changes a layer: code of torch's modules for one of torch's, Weft's function for a layer of Weft's."""
    on_torchs, on_wefts = _wrap_function(theirs, name), counterpart(theirs, name)

    @functools.wraps(theirs)
    def call(module: Any, *args: Any, **kwargs: Any) -> Any:
        written_for_weft = isinstance(module, Module) and not isinstance(module, torch.nn.Module)
        return (on_wefts if written_for_weft else on_torchs)(module, *args, **kwargs)

    return call


def _wrap_calls(theirs: type, name: str) -> type:
    """Likewise for a class of layers, when they are called."""

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        run = super(theirs, self).__call__  # type: ignore[misc]
        return (run if isinstance(self, Module) else _wrap_function(run, name))(*args, **kwargs)

    theirs.__call__ = call
    return theirs


def _named_array(theirs: Function, name: str) -> Function:
    return functools.wraps(theirs)(lambda tag, x: theirs(tag, data_of(x)))


_first_as_array = _converting_first(lambda x: x.numpy() if isinstance(x, Tensor) else x)
_first_as_state = _converting_first(lambda x: TorchState(x) if isinstance(x, Module) else x)

TORCHS: Final = str(Path(torch.__file__).parent)
ENTRY: Final = "<weft entry"
ROOMS: Final = ("ops", "interpreter", "functional.create", "functional.shape", "functional.random")
KERNELS: Final = tuple(f"{__name__.partition('.')[0]}.{room}." for room in ROOMS)
TRANSFORMS: Final = ("vmap", "grad", "grad_and_value", "vjp", "jvp", "jacrev", "jacfwd", "hessian", "linearize",
                     "functionalize", "stack_module_state")  # fmt: skip
QUANTIZERS: Final = ("prepare", "prepare_qat", "convert", "quantize", "quantize_qat", "quantize_dynamic")
WEFT: Final = __name__.partition(".")[0]
PLACES: Final = {  # where those lie that torch defines elsewhere
    "_functorch": "func", "nn.utils.clip_grad": "nn.utils", "nn.utils.weight_norm": "nn.utils",
    "nn.utils.convert_parameters": "nn.utils", "testing._comparison": "testing",
}  # fmt: skip


def _functions_of(path: str) -> dict[str, Callable[[Any, str], Any]]:
    """Those of a module of torch's, each for Weft's of the same name."""
    members = vars(importlib.import_module(f"torch.{path}"))
    functions = [n for n, f in members.items() if isinstance(f, FunctionType) and f.__module__ == f"torch.{path}"]
    return {n: counterpart for n in functions if n[0] != "_"}


# By the module that defines them: packages above that have the same object are given the replacement, too.
REPLACED: Final[dict[str, dict[str, Callable[[Any, str], Any]]]] = {
    "torch": {"vmap": counterpart, "compile": lambda theirs, name: _compile(theirs)},
    "torch.serialization": {"save": on_torchs_tensors, "load": on_torchs_tensors},
    "torch._utils": {"_rebuild_tensor": on_torchs_tensors},
    "torch.distributed.distributed_c10d": dict.fromkeys(SENDING, on_torchs_tensors),
    "torch.nn.parallel.distributed": {"DistributedDataParallel": data_parallel},
    "torch.distributed.optim.zero_redundancy_optimizer": {"ZeroRedundancyOptimizer": wrap_methods},
    "torch.func": dict.fromkeys(TRANSFORMS, counterpart),
    "torch.nn.utils": dict.fromkeys(("clip_grads_with_norm_", "get_total_norm"), counterpart),
    "torch.nn.utils.weight_norm": dict.fromkeys(("weight_norm", "remove_weight_norm"), _of_layers),
    "torch.nn.utils.convert_parameters": _functions_of("nn.utils.convert_parameters"),
    "torch.nn.utils.rnn": _functions_of("nn.utils.rnn"),
    "torch.autograd.functional": _functions_of("autograd.functional"),
    "torch.testing._comparison": {"assert_close": counterpart},
    "torch.distributions.distribution": {"Distribution": with_our_classes},
    "torch.distributions.transforms": {"Transform": with_our_classes},
    "torch.distributions.kl": {"kl_divergence": _of_distributions},
    "torch.amp.grad_scaler": {"GradScaler": scale_ours},
    "torch.nn.utils.clip_grad": dict.fromkeys(("clip_grad_norm_", "clip_grad_value_"), counterpart),
    "torch.nn.utils.stateless": {"_functional_call": _with_other_members},
    "torch.nn.utils.parametrize": dict.fromkeys(("register_parametrization", "remove_parametrizations"), _of_layers),
    "torch.nn.utils.parametrizations": dict.fromkeys(("orthogonal", "spectral_norm", "weight_norm"), _of_layers),
    "torch.nn.init": {name: counterpart for name in vars(torch.nn.init) if name.endswith("_") and name[0] != "_"},
    "torch.nn.attention.flex_attention": {name: _ours_inside(ours) for name, ours in attention.INSTEAD.items()},
    "torch._dynamo.eval_frame": {  # where each call of a compiled function, whenever made, asks how to run it
        "_callback_from_stance": _ours_inside(lambda compiler: None),
        # nor count what was compiled
        **since("2.13", {"set_fullgraph_compiled_frame_count": _ours_inside(lambda count: count)}),
    },
    "torch._C": {"_group_tensors_by_device_and_dtype": _grouping},
    "torch._C._nn": {"_parse_to": _with_torchs_kinds},
    "torch.ao.quantization.quantize": dict.fromkeys(QUANTIZERS, _of_torchs_modules),
    "torch.quantization.quantize": dict.fromkeys(QUANTIZERS, _of_torchs_modules),
    "torch.ao.quantization.quantize_fx": {f"{name}_fx": _of_torchs_modules for name in QUANTIZERS[:3]},
    "torch.fx._symbolic_trace": {"symbolic_trace": _of_torchs_modules},
    "torch.onnx": {"export": on_torchs_tensors},
    "torch.export": {"export": on_torchs_tensors},
    "torch.jit._trace": {"trace": on_torchs_tensors},
    "torch.jit._script": {"script": _scripted},
    "torch.utils.tensorboard._convert_np": {"make_np": _first_as_array},
    "torch.utils.tensorboard.writer": {"graph": on_torchs_tensors, "tensor_proto": _named_array},
    "tensorboardX.x2num": {"make_np": _first_as_array},
    "torch.optim.optimizer": {"Optimizer": wrap_optimizer},
    "transformers.trainer": {"Trainer": wrap_methods},
    "diffusers.schedulers.scheduling_utils": {"SchedulerMixin": wrap_subclasses},
    "timm.utils.model_ema": dict.fromkeys(("ModelEmaV2", "ModelEmaV3"), wrap_methods),
    "torchmetrics.metric": {"Metric": wrap_subclasses},
    "accelerate.accelerator": {"Accelerator": wrap_methods},
    "skorch.net": {"NeuralNet": wrap_methods},
    **{f"{home}.trainer.trainer": {"Trainer": wrap_methods} for home in ("lightning.pytorch", "pytorch_lightning")},
    "einops.einops": dict.fromkeys(("reduce", "einsum", "parse_shape", "asnumpy"), _wrap_function),
    "einops.packing": dict.fromkeys(("pack", "unpack"), _wrap_function),
    "torchvision.transforms.v2._transform": {"Transform": _wrap_calls},  # which leave alone what is no torch.Tensor
    "safetensors.torch": {
        **dict.fromkeys(("save", "save_file", "load", "load_file"), on_torchs_tensors),
        "save_model": _first_as_state,
        "load_model": _first_as_state,
    },
}


def _replace(module: ModuleType) -> None:
    mocked = vars(module).get("torch", torch) is not torch or sees_weft(module)  # it runs on Weft's tensors
    for name, how in REPLACED[module.__name__].items():
        if hasattr(module, name) and not (mocked and how in (wrap_methods, wrap_subclasses, _wrap_function)):
            theirs = getattr(module, name)
            ours = how(theirs, name)
            for home in _homes(module.__name__):
                if vars(home).get(name) is theirs:
                    setattr(home, name, ours)


def _homes(path: str) -> Iterator[ModuleType]:
    """A module, and the packages that it is in."""
    while path:
        if path in sys.modules:
            yield sys.modules[path]
        path = path.rpartition(".")[0]


class ImportHook(MetaPathFinder, Loader):
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

    def get_code(self, name: str) -> Any:
        """The code of a module that was found and not loaded, from which another is derived."""
        return self.loaders[name].get_code(name)

    def exec_module(self, module: ModuleType) -> None:
        spec = module.__spec__
        assert spec is not None
        loader = spec.loader = module.__loader__ = self.loaders.pop(spec.name)
        loader.exec_module(module)
        _replace(module)


def install() -> None:
    """Install the hook, once for the process, when Weft is imported."""
    bypasses.install_everywhere()
    Tensor.__torch_function__ = classmethod(_answered)  # type: ignore[attr-defined]
    default_collate_fn_map[Tensor] = lambda batch, *, collate_fn_map=None: ops.stack(batch, 0)
    for name in REPLACED:
        if name in sys.modules:
            _replace(sys.modules[name])
    sys.meta_path.insert(0, ImportHook())
