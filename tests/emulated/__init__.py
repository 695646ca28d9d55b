"""CUDA devices where there are none: tensors that say they are on one, and lie in the host's memory.

It is for tests of what Weft's own code does on such devices: which device each operand is on, what is captured, what
goes over which group, and whether each access to memory waits for those before it on other streams: kernels run at
once, but every access is checked, as by a detector of races. Kernels are the CPU's, and NCCL is Gloo: that a kernel
differs on CUDA, or how long anything takes, is not seen.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import torch
import torch.distributed as dist

from tests.emulated import streams
from tests.emulated.graphs import Graph, capturing
from tests.emulated.nccl import Nccl
from tests.emulated.streams import COUNT, DEFAULT, Event, Stream, current_stream, here, index_of
from tests.emulated.tensors import Composing, Launching, to


class Generator(torch.Generator):
    """One that draws on the host, and says it is on a device."""

    def __new__(cls, device: Any = "cpu") -> Any:
        return super().__new__(cls, device="cpu")

    def __init__(self, device: Any = "cpu") -> None:
        self._where = torch.device(device)

    @property
    def device(self) -> torch.device:
        return self._where

    def clone_state(self) -> Any:
        return self.get_state()

    def graphsafe_set_state(self, state: Any) -> Any:
        return self.set_state(state)


@contextlib.contextmanager
def on_device(device: Any) -> Iterator[None]:
    before = here.device
    set_device(device)
    try:
        yield
    finally:
        here.device = before


def set_device(device: Any) -> None:
    here.device = index_of(device)


def install() -> None:
    """Let torch have CUDA devices in this process, whose Weft has not been imported yet."""
    names: dict[str, Any] = {
        "is_available": lambda: True, "device_count": lambda: COUNT, "current_device": lambda: here.device,
        "set_device": set_device, "device": on_device, "Stream": Stream, "Event": Event, "stream": streams.on_stream,
        "StreamContext": streams.on_stream, "current_stream": current_stream, "set_stream": streams.set_stream,
        "synchronize": streams.synchronize, "default_stream": lambda device=None: DEFAULT[index_of(device)],
        "CUDAGraph": Graph, "graph": capturing, "graph_pool_handle": lambda: (0, 1), "_lazy_init": lambda: None,
        "is_current_stream_capturing": lambda: here.capture is not None, "empty_cache": lambda: None,
        "default_generators": [Generator(f"cuda:{i}") for i in range(COUNT)], "init": lambda: None,
        "get_device_name": lambda device=None: "emulated", "get_device_capability": lambda device=None: (9, 0),
        "get_device_properties": lambda device=None: SimpleNamespace(name="emulated", total_memory=2**36),
        "is_bf16_supported": lambda including_emulation=True: True, "is_initialized": lambda: True,
    }  # fmt: skip
    for name, value in names.items():
        setattr(torch.cuda, name, value)
    torch.Generator, dist.ProcessGroupNCCL = Generator, Nccl  # type: ignore[misc]
    torch._C._cuda_endAllocateToPool = torch._C._cuda_releasePool = lambda *_: None  # type: ignore[assignment]
    torch.Tensor.to, torch.Tensor.cpu = to, lambda x, *_, **__: to(x, "cpu")  # type: ignore[method-assign]
    torch.Tensor.cuda = lambda x, device=None, *_, **__: to(x, f"cuda:{index_of(device)}")  # type: ignore[method-assign]
    torch.Tensor.pin_memory, torch.Tensor.is_pinned = _pinned, lambda x, *_: hasattr(x, "_pinned")  # type: ignore
    torch.__future__.set_overwrite_module_params_on_conversion(True)
    torch.UntypedStorage.resize_ = _resized  # type: ignore[method-assign]
    run = threading.Thread.run

    def emulating(self: threading.Thread) -> None:
        with Launching(), Composing():
            run(self)

    threading.Thread.run = emulating  # type: ignore[method-assign]
    Launching().__enter__()
    Composing().__enter__()


def _resized(storage: Any, size: int) -> Any:
    made = torch._C.StorageBase.resize_(storage, size)
    if size and streams.accesses[storage.data_ptr()]:
        streams.reuse(storage.data_ptr(), current_stream(), "resize_")
    return made


def _pinned(x: torch.Tensor, *_: Any) -> torch.Tensor:
    made = x.clone()
    made._pinned = True  # type: ignore[attr-defined]
    return made
