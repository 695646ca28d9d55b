"""`flow.accelerator`: the accelerator device, which is CUDA's where there is one."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from weft.core.device import Device
from weft.core.errors import DeviceError
from weft.system import cuda


def is_available() -> bool:
    """Whether there is an accelerator.

    >>> flow.device("cuda" if flow.accelerator.is_available() else "cpu").type in ("cpu", "cuda")
    True
    """
    return cuda.is_available()


def current_accelerator(check_available: bool = False) -> Device | None:
    """The accelerator's device type, or None."""
    return Device("cuda") if cuda.is_available() else None


def current_device_index() -> int:
    """The index of the current device."""
    _there("current_device_index")
    return cuda.current_device()


def set_device_index(device: Any) -> None:
    """Set the current device."""
    _there("set_device_index")
    cuda.set_device(device)


device_count, synchronize = cuda.device_count, cuda.synchronize
empty_cache, current_stream, set_stream = cuda.empty_cache, cuda.current_stream, cuda.set_stream
memory_allocated, max_memory_allocated = cuda.memory_allocated, cuda.max_memory_allocated
memory_reserved, max_memory_reserved = cuda.memory_reserved, cuda.max_memory_reserved
memory_stats, get_memory_info = cuda.memory_stats, cuda.mem_get_info
reset_peak_memory_stats = cuda.reset_peak_memory_stats
reset_accumulated_memory_stats = cuda.reset_accumulated_memory_stats
current_device_idx, set_device_idx = current_device_index, set_device_index  # deprecated names


@contextlib.contextmanager
def device_index(device: int | None) -> Iterator[None]:
    """A context manager that sets the current device; None changes nothing."""
    _there("device_index")
    with contextlib.nullcontext() if device is None else cuda.device(device):
        yield


def _there(name: str) -> None:
    if not cuda.is_available():
        raise DeviceError(
            f"accelerator.{name}(): there is no accelerator here; check is_available() first, or use the CPU"
        )


__all__ = [
    "current_accelerator", "current_device_idx", "current_device_index", "current_stream", "device_count",
    "device_index", "empty_cache", "get_memory_info", "is_available", "max_memory_allocated", "max_memory_reserved",
    "memory_allocated", "memory_reserved", "memory_stats", "reset_accumulated_memory_stats", "reset_peak_memory_stats",
    "set_device_idx", "set_device_index", "set_stream", "synchronize",
]  # fmt: skip
