"""Write a model as if for one very large device, and run it on many: `import weft as flow`.

The folders lie in the order of the path of data, which docs/architecture.md draws.
"""

# ruff: noqa: E402

from __future__ import annotations

import gc
import importlib
import math
import sys
from types import ModuleType
from typing import Any

import torch as _torch
from torch import Size

_collecting = gc.isenabled()
gc.disable()  # imports free nothing, yet a full collection amid them walks all of torch: a third of the time

from weft import (
    amp,
    autograd,
    boxing,
    checkpoint,
    compiler,
    data,
    distributed,
    functional,
    graph,
    launch,
    nn,
    optim,
    parallel,
    profiler,
    testing,
    vm,
)
from weft.amp import GradScaler
from weft.amp import cuda as _amp_cuda
from weft.amp.autocast import (
    autocast,
    autocast_decorator,
    clear_autocast_cache,
    get_autocast_cpu_dtype,
    get_autocast_dtype,
    get_autocast_gpu_dtype,
    is_autocast_cache_enabled,
    is_autocast_enabled,
    set_autocast_cache_enabled,
    set_autocast_cpu_dtype,
    set_autocast_dtype,
    set_autocast_enabled,
    set_autocast_gpu_dtype,
)
from weft.api import surface, table
from weft.api.bound import _C, register
from weft.autograd import recompute, transforms
from weft.autograd.modes import enable_grad, inference_mode, is_grad_enabled, no_grad, set_grad_enabled
from weft.autograd.vmap import vmap
from weft.checkpoint import hub as _hub  # noqa: F401  (makes weft.hub importable)
from weft.checkpoint import load, save
from weft.core import dtype as _dtypes
from weft.core import errors, sbp
from weft.core import log as _log
from weft.core.derived import GIVEN as _GIVEN
from weft.core.derived import names_of as _names_of
from weft.core.device import Device as device
from weft.core.dtype import DType as dtype
from weft.core.dtype import (
    bfloat16,
    complex64,
    complex128,
    float8_e4m3fn,
    float8_e5m2,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
)
from weft.core.errors import OutOfMemoryError
from weft.core.placement import Placement as placement
from weft.core.reading import Near as _Near
from weft.functional.create import global_view
from weft.functional.create.creation import get_default_dtype, set_default_dtype
from weft.functional.linalg import decompositions, norms, products, properties, solving, unchecked
from weft.functional.pointwise import special
from weft.functional.random import generators as _random
from weft.functional.random.generators import Generator, default_generator
from weft.functional.signal import fft, windows
from weft.interop import files as _files
from weft.interop import from_torch, mock_torch, to_torch
from weft.interop import oneflow as _oneflow
from weft.interop import other_libraries as _others
from weft.interpreter.explain_movements import explain
from weft.nn import averaging
from weft.nn import underscored as _inner
from weft.nn.utils import stateless
from weft.system import accelerator, asyncs, comm, cuda, devices, env, jit
from weft.tensor import parameter as _parameter
from weft.tensor.parameter import Parameter
from weft.tensor.printing import set_printoptions, show
from weft.tensor.tensor import Tensor

__version__ = "0.1.0"
__git_commit__ = "unknown"  # which OneFlow's programs write into their logs

# every public function of the table: flow.relu, flow.matmul, flow.ones, ...
globals().update(table.listed("flow"))
# names that Python has too
globals().update(
    bool=_dtypes.bool_, float=float32, double=float64, half=float16, int=int32, long=int64, short=int16, char=int8,
    byte=uint8, cfloat=complex64, cdouble=complex128,
)  # fmt: skip
# numbers, and PyTorch's words for how memory lies, which kernels decide here
pi, e, inf, nan, newaxis = math.pi, math.e, math.inf, math.nan, None
strided, preserve_format = _torch.strided, _torch.preserve_format
contiguous_format = _torch.contiguous_format
layout, memory_format = _torch.layout, _torch.memory_format  # what those words are, for annotations
channels_last, channels_last_3d = _torch.channels_last, _torch.channels_last_3d
backends = _torch.backends  # the kernels' settings: they are torch's
multiprocessing = _torch.multiprocessing  # torch's, too; what it starts joins by distributed.init_process_group


def _module(path: str, **members: Any) -> ModuleType:
    """A module whose public path isn't a folder's."""
    shown = ", ".join(n for n in members if not n.startswith("__"))
    made = ModuleType(f"{__name__}.{path}", f"flow.{path}: {shown}")
    vars(made).update(members, __path__=[])  # it has files: interop.files finds them
    return made


_distributed = _module("utils.data.distributed", Dataset=data.Dataset, DistributedSampler=data.DistributedSampler,
                       Sampler=data.Sampler)  # fmt: skip
version = _module("version", __version__=__version__, cuda=_torch.version.cuda, hip=_torch.version.hip)
linalg = _module(
    "linalg",
    **{n: getattr(m, n) for m in (decompositions, norms, solving, products, properties, unchecked) for n in m.__all__},
)
linalg.LinAlgError = errors.OpError  # type: ignore[attr-defined]  # what is raised where a kernel finds no solution
func = _module("func", vmap=vmap, **{n: getattr(m, n) for m in (transforms, stateless) for n in m.__all__})
optim.swa_utils = _module(  # type: ignore[attr-defined]
    "optim.swa_utils", __getattr__=optim.lr_scheduler.of_swa_utils, __all__=[*averaging.__all__, "SWALR"],
    **{n: getattr(averaging, n) for n in averaging.__all__},
)  # fmt: skip
signal = _module("signal", windows=windows)
dlpack = _module("utils.dlpack", **{n: globals()[n] for n in ("from_dlpack", "to_dlpack")})
cpu, xpu, mps = _module("cpu", **devices.CPU), _module("xpu", **devices.XPU), _module("mps", **devices.MPS)
utils = _module("utils", dlpack=dlpack, data=data, checkpoint=recompute, global_view=global_view)
compiler.__dict__.update(jit.COMPILER)
boxing.__dict__.update(graph.hints.setters("boxing."))  # type: ignore[attr-defined]
boxing.nccl = _module("boxing.nccl", **graph.hints.setters("boxing.nccl."))  # type: ignore[attr-defined]
cuda.amp = _module("cuda.amp", **_amp_cuda.of_cuda())  # type: ignore[attr-defined]
random = _module("random", **{n: globals().get(n, getattr(_random, n)) for n in _random.__all__})
autograd.profiler = profiler  # type: ignore[attr-defined]
data.distributed = _distributed  # type: ignore[attr-defined]
# layers that nn doesn't know of, under the names that people know them by
nn.Graph, nn.graph, nn.parallel = graph.Graph, graph, parallel
nn.modules = _module("nn.modules", **nn.OF_MODULES, **_inner.NAMES)  # type: ignore[attr-defined]
nn.parameter = _module("nn.parameter", **{n: getattr(_parameter, n) for n in _parameter.__all__})  # type: ignore[attr-defined]
PATHS = {
    "accelerator": accelerator, "asyncs": asyncs, "comm": comm, "cuda": cuda, "cuda.amp": cuda.amp,  # type: ignore[attr-defined]
    "cpu": cpu, "xpu": xpu, "mps": mps,
    "env": env,
    "fft": fft, "func": func, "jit": jit, "linalg": linalg, "mock_torch": mock_torch, "nn.graph": graph,
    "nn.modules": nn.modules, "nn.parallel": parallel, "nn.parameter": nn.parameter, "optim.swa_utils": optim.swa_utils,  # type: ignore[attr-defined]
    "random": random, "sbp": sbp, "signal": signal, "signal.windows": windows, "special": special, "utils": utils,
    "utils.checkpoint": recompute,
    "utils.data": data, "utils.data.distributed": _distributed, "utils.dlpack": dlpack,
    "utils.global_view": global_view,
}  # fmt: skip
sys.modules.update({f"{__name__}.{path}": module for path, module in PATHS.items()})
for _path, _names in _oneflow.modules(
    distributed.broadcast_object_list, profiler.range_push, profiler.range_pop
).items():
    PATHS[_path] = _module(_path, **_names)
    _above, _, _name = _path.rpartition(".")
    _names_of(sys.modules[f"{__name__}.{_above}"] if _above else sys.modules[__name__])[_name] = PATHS[_path]
    sys.modules[f"{__name__}.{_path}"] = PATHS[_path]
env.__dict__.update(_oneflow.RDMA)
PATHS["_oneflow_internal"].__dict__["_C"] = _C
_settings = [path for path in sys.modules if path.partition("torch.")[2].startswith("backends")]
sys.modules.update({f"{__name__}.{path.removeprefix('torch.')}": sys.modules[path] for path in _settings})
_unlisted: dict[str, Any] = {"multiprocessing": multiprocessing, "_C": _C, "version": version}
_unlisted["_oneflow_internal._C"] = _C
_unlisted["boxing.nccl"] = boxing.nccl  # type: ignore[attr-defined]
sys.modules.update({f"{__name__}.{path}": module for path, module in _unlisted.items()})
_files.spread()
_others.install()
_log.begin()

if _collecting:
    if not gc.get_freeze_count():  # nobody's objects are kept out of collections
        gc.freeze()
        gc.unfreeze()  # what was made here counts as old: else the next object made would have all of it walked
    gc.enable()


distributions: ModuleType
hub: ModuleType
DERIVED = ("distributions", "hub")  # what is read when it is first used


def __getattr__(name: str) -> Any:
    if name in DERIVED:
        return importlib.import_module(f"{__name__}.{name}")
    if name.startswith("_foreach_") and hasattr(_torch, name):
        return importlib.import_module(f"{__name__}.interop.torch_compositions").COMPOSED[getattr(_torch, name)]
    private = _GIVEN.get(f"torch.{name}") if name.startswith("_") else None  # as public programs call some
    found = table.lookup("flow", name) if name in surface.PUBLIC["flow"] else private
    if found is None:
        theirs = ", and torch has: `import torch` for it; its tensors are x.to_torch(), and flow.from_torch(y) back"
        raise AttributeError(
            f"weft has no {name!r}" + theirs * hasattr(_torch, name),
            name=name,
            obj=_Near(name, {*__all__, *surface.PUBLIC["flow"]}),
        )
    return globals().setdefault(name, found)


__all__ = [
    "Generator", "GradScaler", "OutOfMemoryError", "Parameter", "Size", "Tensor", "_C", "accelerator", "amp", "asyncs",
    "autocast", "autocast_decorator", "autograd", "backends", "bfloat16", "boxing", "channels_last", "channels_last_3d",
    "checkpoint", "clear_autocast_cache", "comm", "complex128", "complex64", "contiguous_format", "cpu", "cuda", "data",
    "default_generator", "device", "distributed", "distributions", "dtype", "e", "enable_grad", "env", "errors",
    "explain", "fft", "float16", "float32", "float64", "float8_e4m3fn", "float8_e5m2", "from_torch", "func",
    "functional", "get_autocast_cpu_dtype", "get_autocast_dtype", "get_autocast_gpu_dtype",
    "get_default_dtype", "graph", "hub", "inf", "inference_mode", "int16", "int32", "int64", "int8",
    "is_autocast_cache_enabled", "is_autocast_enabled", "is_grad_enabled", "jit", "launch", "layout", "linalg", "load",
    "memory_format", "mock_torch", "mps", "multiprocessing", "nan", "newaxis", "nn", "no_grad", "optim", "parallel",
    "pi", "placement", "preserve_format", "profiler", "random", "register", "save", "sbp", "set_autocast_cache_enabled",
    "set_autocast_cpu_dtype", "set_autocast_dtype", "set_autocast_enabled", "set_autocast_gpu_dtype",
    "set_default_dtype", "set_grad_enabled", "set_printoptions", "show", "signal", "special", "strided", "testing",
    "to_torch", "uint16", "uint32", "uint64", "uint8", "utils", "version", "vm", "vmap", "xpu",
]  # fmt: skip
_more = {name for name in surface.PUBLIC["flow"] if name[0] != "_"} - {*__all__}
__all__ += sorted(_more)  # pyright: ignore[reportUnsupportedDunderAll]  # `from weft import *` gives all, as torch's
