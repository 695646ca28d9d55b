"""Write a model as if for one very large device, and run it on many: `import weft as flow`.

The folders lie in the order of the path of data, which docs/architecture.md draws.
"""

# ruff: noqa: E402

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

_collecting = gc.isenabled()
gc.disable()  # imports free nothing, yet a full collection amid them walks all of torch: a third of the time

from weft import amp, autograd, boxing, checkpoint, data, functional, graph, launch, nn, optim, parallel, profiler, vm
from weft.amp import (
    autocast,
    autocast_decorator,
    clear_autocast_cache,
    get_autocast_cpu_dtype,
    get_autocast_gpu_dtype,
    is_autocast_cache_enabled,
    is_autocast_enabled,
)  # fmt: skip
from weft.autograd import recompute
from weft.autograd.modes import enable_grad, inference_mode, is_grad_enabled, no_grad, set_grad_enabled
from weft.checkpoint import load, save
from weft.core import dtype as _dtypes
from weft.core import errors, sbp
from weft.core.device import Device as device
from weft.core.dtype import (
    DType as dtype,
)
from weft.core.dtype import (
    bfloat16,
    complex64,
    complex128,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
)  # fmt: skip
from weft.core.placement import Placement as placement
from weft.functional import comm, cuda, distributions, env, jit, linalg
from weft.functional.bound import _C, register
from weft.functional.creation import get_default_dtype, set_default_dtype
from weft.functional.random import Generator, default_generator
from weft.tensor.parameter import Parameter
from weft.tensor.printing import set_printoptions
from weft.tensor.tensor import Size, Tensor

__version__ = "0.1.0"

# every public function of the table: flow.relu, flow.matmul, flow.ones, ...
globals().update(functional.functions)
# names that Python has too
globals().update(
    bool=_dtypes.bool_, float=float32, double=float64, half=float16, int=int32, long=int64, short=int16, char=int8,
    byte=uint8,
)  # fmt: skip
# modules whose public path isn't their folder's
utils = ModuleType(f"{__name__}.utils", "flow.utils: data, checkpoint")
utils.data, utils.checkpoint = data, recompute  # type: ignore[attr-defined]
PATHS = {
    "comm": comm, "cuda": cuda, "env": env, "linalg": linalg, "sbp": sbp, "nn.graph": graph, "nn.parallel": parallel,
    "utils": utils, "utils.data": data, "utils.checkpoint": recompute,
    "distributions": distributions, "jit": jit,
}  # fmt: skip
sys.modules.update({f"{__name__}.{path}": module for path, module in PATHS.items()})
# layers that nn doesn't know of, under the names that people know them by
nn.Graph, nn.graph, nn.parallel = graph.Graph, graph, parallel  # type: ignore[attr-defined]

if _collecting:
    gc.enable()


def __getattr__(name: str) -> Callable[..., Any]:
    found = functional.table.lookup("flow", name) if name in functional.names.FLOW else None
    if found is None:
        raise AttributeError(f"weft has no {name!r}")
    return globals().setdefault(name, found)


__all__ = [
    "Generator", "Parameter", "Size", "Tensor", "_C", "amp", "autocast", "autocast_decorator", "autograd", "bfloat16",
    "boxing", "checkpoint", "clear_autocast_cache", "comm", "complex128", "complex64", "cuda", "data",
    "default_generator", "device", "distributions", "dtype", "enable_grad", "env", "errors", "float16", "float32",
    "float64", "functional", "get_autocast_cpu_dtype", "get_autocast_gpu_dtype", "get_default_dtype", "graph",
    "inference_mode", "int16", "int32", "int64", "int8", "is_autocast_cache_enabled", "is_autocast_enabled",
    "is_grad_enabled", "jit", "launch", "linalg", "load", "nn", "no_grad", "optim", "parallel", "placement", "profiler",
    "register", "save", "sbp", "set_default_dtype", "set_grad_enabled", "set_printoptions", "uint8", "utils", "vm",
]  # fmt: skip
