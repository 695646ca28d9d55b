"""Modules at OneFlow's paths that aren't folders here: a table of their names."""

from __future__ import annotations

import itertools
import unittest
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch._utils import ExceptionWrapper
from torch.nn import common_types

from weft.api import table
from weft.checkpoint import load, save
from weft.core import dtype as dtypes
from weft.core.device import Device
from weft.core.dispatch import here, tracing
from weft.core.errors import ArgumentError, OptionError, TraceError, WeftError
from weft.core.placement import Placement
from weft.core.program_line import warn
from weft.core.rank import current
from weft.core.sbp import Sbp
from weft.data import default_collate, default_convert, get_worker_info
from weft.functional.create import creation
from weft.graph.blocks import GraphBlock, GraphModule, GraphTensor, Proxy, ProxyModule
from weft.interop import one_embedding
from weft.interop.args_tree import ArgsTree, NamedArg
from weft.ops import ops
from weft.optim.ftrl import Ftrl
from weft.system import cuda, host_memory
from weft.system.devices import synchronize
from weft.tensor.tensor import Tensor


class TensorTuple(list[Tensor]):
    """A list of tensors, checked."""

    def __init__(self, tensors: Iterable[Tensor] = ()) -> None:
        super().__init__()
        self.merge_from(tensors)

    def append(self, tensor: Tensor) -> None:
        if not isinstance(tensor, Tensor):
            raise ArgumentError(f"a TensorTuple holds tensors, not {type(tensor).__name__}")
        super().append(tensor)

    def merge_from(self, tensors: Iterable[Tensor]) -> None:
        for t in tensors:
            self.append(t)


class lazy_mode:
    """Whether a graph is being traced."""

    @staticmethod
    def is_enabled() -> bool:
        return here.trace is not None

    @staticmethod
    def guard(enabled: bool) -> AbstractContextManager[Any]:
        """`guard(False)` inside build: run calls eagerly, outside of the graph."""
        if enabled and here.trace is None:
            raise TraceError("lazy_mode.guard(True) outside of build(): only a graph that is being traced has such ops")
        return nullcontext() if enabled else tracing(None)


# ---- parts and ranges --------------------------------------------------------------------------------


def BalancedPartNums(total: int, part_size: int) -> list[int]:
    """The sizes of `part_size` balanced parts; the first ones get the remainder."""
    each, rest = divmod(total, part_size)
    return [each + (i < rest) for i in range(part_size)]


def BalancedRanges(total: int, part_size: int) -> list[tuple[int, int]]:
    """The range of each balanced part: begin and end."""
    ends = [0, *itertools.accumulate(BalancedPartNums(total, part_size))]
    return list(itertools.pairwise(ends))


def _flatten_dense_tensors(tensors: Sequence[Tensor]) -> Tensor:
    """All elements, concatenated."""
    flat = [ops.reshape(t, (-1,)) for t in tensors]
    return flat[0] if len(flat) == 1 else ops.cat(flat, 0)


def _unflatten_dense_tensors(flat: Tensor, tensors: Sequence[Tensor]) -> list[Tensor]:
    """Split a flat tensor into the shapes of `tensors`."""
    starts = [0, *itertools.accumulate(t.numel() for t in tensors)]
    return [
        ops.reshape(ops.narrow(flat, 0, start, t.numel()), tuple(t.shape))
        for start, t in zip(starts, tensors, strict=False)
    ]


# ---- from torch, and to it ---------------------------------------------------------------------------


def to_torch(flow_tensor: Tensor) -> torch.Tensor:
    """A torch tensor over a local tensor's memory, or with a copy of a global one's values."""
    return torch.from_numpy(flow_tensor.numpy().copy()) if flow_tensor.is_global else flow_tensor.to_torch()


def convert_numpy_dtype_to_oneflow_dtype(numpy_dtype: Any) -> dtypes.DType:
    return dtypes.of(numpy_dtype)


# ---- how it was built --------------------------------------------------------------------------------


def get_cuda_version() -> int:
    """CUDA's version as a number: 12040 is 12.4; 0 without CUDA."""
    major, _, minor = (torch.version.cuda or "0.0").partition(".")
    return int(major) * 1000 + int(minor) * 10


def _nothing_to_build(name: str) -> Callable[[], Any]:
    def refuse() -> Any:
        raise OptionError(
            f"sysconfig.{name}(): Weft is Python, and has no library, headers or build to compile against. An op of "
            "a custom op is a Python function: docs/adding-an-op.md"
        )

    refuse.__name__ = name
    return refuse


def _no() -> bool:
    """False: Weft has no such feature."""
    return False


def with_cuda() -> bool:
    """Whether the kernels were built with CUDA."""
    return torch.version.cuda is not None


BUILD = ("cmake_build_type", "get_compile_flags", "get_include", "get_lib", "get_liboneflow_link_flags",
         "get_link_flags")  # fmt: skip
WITHOUT = ("has_rpc_backend_grpc", "has_rpc_backend_local", "with_mlir", "with_mlir_cuda_codegen", "with_rdma")


# ---- what it raises ------------------------------------------------------------------------------------

# OneFlow's own errors of these names are Python's, too, as Weft's are
RAISED = {kind.__name__: kind for kind in (IndexError, NotImplementedError, RuntimeError, TypeError)}


# ---- how much memory it uses ---------------------------------------------------------------------------


def cuda_megabytes() -> float:
    """Memory of the current CUDA device that is in use, by any process; 0 without one."""
    free, total = cuda.mem_get_info() if cuda.is_available() else (0, 0)
    return (total - free) / 2**20


def host_megabytes() -> float:
    """Host memory that this process holds."""
    return host_memory.memory_reserved() / 2**20


# ---- in its programs' tests ---------------------------------------------------------------------------


def _unless(hosts: int, ranks: int) -> Callable[[], Callable[[Any], Any]]:
    """A decorator of tests that run in a world of so many ranks on each host."""

    def skip_unless() -> Callable[[Any], Any]:
        n = hosts * ranks
        return unittest.skipUnless(current().world_size == n, f"it takes {n} ranks: weft.launch --nproc_per_node {n}")

    return skip_unless


TESTS = {f"skip_unless_{n}n{d}d": _unless(n, d) for n in (1, 2) for d in (1, 2, 4)}


# ---- between hosts -----------------------------------------------------------------------------------


def init_rdma() -> None:
    """Bytes between hosts go through c10d: this warns, as OneFlow does where it finds no RDMA, and changes nothing."""
    warn("env.init_rdma(): there is no RDMA here; bytes between hosts go through c10d")


RDMA: dict[str, Callable[[], Any]] = {"init_rdma": init_rdma, "rdma_is_initialized": _no, "destory_rdma": lambda: None}


def modules(
    broadcast_object_list: Callable[[list[Any], int], Any], range_push: Callable[[str], None],
    range_pop: Callable[[], None],
) -> dict[str, dict[str, Any]]:  # fmt: skip
    """The names of each module, by its path; parents before children. Functions of folders above this one are given."""
    kinds = ("set_default_tensor_type", "is_floating_point", "convert_oneflow_dtype_to_numpy_dtype")

    def _broadcast_py_object(obj: Any, src: int = 0) -> Any:
        """One rank's object, on every rank."""
        held = [obj]
        broadcast_object_list(held, src)
        return held[0]

    sysconfig = {
        "get_cuda_version": get_cuda_version, "with_cuda": with_cuda, **dict.fromkeys(WITHOUT, _no),
        **{n: _nothing_to_build(n) for n in BUILD},
    }  # fmt: skip
    return {
        "framework": {},
        "framework.tensor": {"Tensor": Tensor, "TensorTuple": TensorTuple},
        "framework.dtype": {
            "get_default_dtype": creation.get_default_dtype, "set_default_dtype": creation.set_default_dtype,
            **{n: table.lookup("flow", n) for n in kinds},
            "convert_numpy_dtype_to_oneflow_dtype": convert_numpy_dtype_to_oneflow_dtype,
        },
        "framework.balanced_splitter": {"BalancedPartNums": BalancedPartNums, "BalancedRanges": BalancedRanges},
        "framework.graph_build_util": {"lazy_mode": lazy_mode},
        "framework.check_point_v2": {"load": load, "save": save, "_broadcast_py_object": _broadcast_py_object},
        "utils.tensor": {"from_torch": creation.from_torch, "to_torch": to_torch},
        "utils.data._utils": {},
        "utils.data._utils.collate": {"default_collate": default_collate, "default_convert": default_convert},
        "utils.data._utils.worker": {"ExceptionWrapper": ExceptionWrapper, "get_worker_info": get_worker_info},
        "_oneflow_internal": {
            "Size": torch.Size, "Tensor": Tensor, "TensorTuple": TensorTuple, "device": Device, "dtype": dtypes.DType,
            "placement": Placement, "GetCUDAMemoryUsed": cuda_megabytes, "GetCPUMemoryUsed": host_megabytes,
            "lazy_mode": lazy_mode, **{d.name: d for d in dtypes.every},
        },
        "_oneflow_internal.eager": {"Sync": synchronize},
        "_oneflow_internal.sbp": {"sbp": Sbp},
        "_oneflow_internal.exception": {"Exception": WeftError, **RAISED},
        "_oneflow_internal.flags": {
            "with_cuda": with_cuda, "cuda_version": get_cuda_version, **dict.fromkeys(WITHOUT, _no),
        },
        "_oneflow_internal.profiler": {"RangePush": range_push, "RangePop": range_pop},
        "_utils": {
            "ExceptionWrapper": ExceptionWrapper, "_flatten_dense_tensors": _flatten_dense_tensors,
            "_unflatten_dense_tensors": _unflatten_dense_tensors,
        },
        "nn.common_types": {n: v for n, v in vars(common_types).items() if n.endswith("_t")},
        "framework.args_tree": {"ArgsTree": ArgsTree, "NamedArg": NamedArg},
        "nn.graph.util": {"ArgsTree": ArgsTree, "NamedArg": NamedArg},
        "nn.graph.proxy": {"Proxy": Proxy, "ProxyModule": ProxyModule},
        "nn.graph.graph_block": {"GraphBlock": GraphBlock, "GraphModule": GraphModule, "GraphTensor": GraphTensor},
        "one_embedding": {"Ftrl": Ftrl, **one_embedding.NAMES},
        "unittest": {"TestCase": unittest.TestCase, **TESTS},
        "unittest.env": {
            "node_size": lambda: 1, "device_num": lambda: current().world_size, "has_world_size": lambda: True,
            "world_size": lambda: current().world_size, "eager_execution_enabled": lambda: True,
            "typing_check_enabled": _no, "has_node_list": _no,
        },
        "sysconfig": sysconfig, "framework.sysconfig": sysconfig,
    }  # fmt: skip
