"""`flow.cuda`: what there is of CUDA devices, and types of tensors on them. Without a device, the questions say so."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch

from weft.core.device import Device, choose_cuda
from weft.functional import random
from weft.functional.conversion import TYPES
from weft.functional.typed import TensorType
from weft.vm.machine import vm_of


def is_available() -> bool:
    """Whether a CUDA device can be used.

    >>> flow.device("cuda" if flow.cuda.is_available() else "cpu").type in ("cpu", "cuda")
    True
    """
    return torch.cuda.is_available()


def device_count() -> int:
    """How many CUDA devices this process sees."""
    return torch.cuda.device_count()


def _index(device: Any) -> int:
    found = Device("cuda", device) if isinstance(device, int) else Device("cuda" if device is None else device)
    return found.check().index


def current_device() -> int:
    """The number of the device that "cuda" stands for: what was set, or else the rank's own on its host."""
    return Device("cuda").check().index


def set_device(device: Any) -> None:
    """Let "cuda" stand for this device."""
    choose_cuda(_index(device))


@contextlib.contextmanager
def device(device: Any) -> Iterator[None]:
    """Let "cuda" stand for this device for a while."""
    with torch.cuda.device(_index(device)):
        yield


def synchronize(device: Any = None) -> None:
    """Wait for all that this rank has under way, here and on the device; raises an error of it that nobody saw."""
    vm_of().sync()
    if is_available():
        torch.cuda.synchronize(_index(device))


Stream, Event = torch.cuda.Stream, torch.cuda.Event  # kernels are torch's, and so are the queues that they wait in


def current_stream(device: Any = None) -> torch.cuda.Stream:
    """The queue to which this thread's ops on a device go."""
    return torch.cuda.current_stream(_index(device))


def default_stream(device: Any = None) -> torch.cuda.Stream:
    """The queue to which ops go unless `stream` says otherwise."""
    return torch.cuda.default_stream(_index(device))


@contextlib.contextmanager
def stream(stream: torch.cuda.Stream | None) -> Iterator[None]:
    """Let this thread's ops go to another queue; None changes nothing. Between queues, `wait_stream` orders."""
    with torch.cuda.stream(stream):  # type: ignore[arg-type]
        yield


def empty_cache() -> None:
    """Give memory that no tensor uses back to the device."""
    torch.cuda.empty_cache()


def manual_seed(seed: int) -> None:
    """Start this rank's random numbers anew: its generators share one seed."""
    random.manual_seed(seed)


def manual_seed_all(seed: int) -> None:
    """Likewise, on every device of this rank."""
    random.manual_seed(seed)


def get_device_name(device: Any = None) -> str:
    """What the device is sold as."""
    return torch.cuda.get_device_name(_index(device))


def get_device_properties(device: Any = None) -> Any:
    """Name, memory and more of a device."""
    return torch.cuda.get_device_properties(_index(device))


def get_device_capability(device: Any = None) -> tuple[int, int]:
    """The device's compute capability."""
    return torch.cuda.get_device_capability(_index(device))


def is_bf16_supported() -> bool:
    """Whether the device computes in bfloat16."""
    return is_available() and torch.cuda.is_bf16_supported()


def _counted(name: str, says: str) -> Callable[..., int]:
    count = getattr(torch.cuda, name)

    def ask(device: Any = None) -> int:
        return count(_index(device)) if is_available() else 0

    ask.__name__ = ask.__qualname__ = name
    ask.__doc__ = f"{says}, in bytes; 0 without a device."
    return ask


memory_allocated = _counted("memory_allocated", "What tensors hold of the device's memory")
max_memory_allocated = _counted("max_memory_allocated", "The most that tensors have held of the device's memory")
memory_reserved = _counted("memory_reserved", "What the process has taken of the device's memory")
max_memory_reserved = _counted("max_memory_reserved", "The most that the process has taken of the device's memory")


def mem_get_info(device: Any = None) -> tuple[int, int]:
    """The device's memory, in bytes: what is free, and all of it."""
    return torch.cuda.mem_get_info(_index(device))


def reset_peak_memory_stats(device: Any = None) -> None:
    """Let the largest use of memory be counted from now on."""
    if is_available():
        torch.cuda.reset_peak_memory_stats(_index(device))


BoolTensor, ByteTensor, CharTensor, DoubleTensor, FloatTensor, HalfTensor, IntTensor, LongTensor = (
    TensorType(f"{name}Tensor", TYPES[f"{name}Tensor"], is_cuda=True)
    for name in ("Bool", "Byte", "Char", "Double", "Float", "Half", "Int", "Long")
)

__all__ = [
    "BoolTensor", "ByteTensor", "CharTensor", "DoubleTensor", "Event", "FloatTensor", "HalfTensor", "IntTensor",
    "LongTensor", "Stream", "current_device", "current_stream", "default_stream", "device", "device_count",
    "empty_cache", "get_device_capability", "get_device_name", "get_device_properties", "is_available",
    "is_bf16_supported", "manual_seed", "manual_seed_all", "max_memory_allocated", "max_memory_reserved",
    "mem_get_info", "memory_allocated", "memory_reserved", "reset_peak_memory_stats", "set_device", "stream",
    "synchronize",
]  # fmt: skip
