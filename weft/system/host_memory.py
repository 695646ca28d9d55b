"""`flow.cpu`'s memory statistics: what the process has allocated, as the C library and the kernel count it.

Tensors on the CPU come from the C library's allocator, as much else does, so a tensor's memory is the difference of
two figures. Counting costs nothing until one is read.
"""

from __future__ import annotations

import contextlib
import ctypes
from pathlib import Path
from typing import Any

from weft.core.errors import DeviceError

_STATUS, _FORGET = Path("/proc/self/status"), Path("/proc/self/clear_refs")


class _Allocated(ctypes.Structure):
    """The C library's `struct mallinfo2`."""

    _fields_ = [
        (name, ctypes.c_size_t)
        for name in ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks")
    ] + [("keepcost", ctypes.c_size_t)]


def _library() -> Any:
    library = ctypes.CDLL(None)
    try:
        library.mallinfo2.restype = _Allocated
    except AttributeError:
        raise DeviceError("the memory of the CPU is counted by glibc's mallinfo2, which this C library lacks") from None
    return library


def memory_allocated(device: Any = None) -> int:
    """The bytes of host memory in use, tensors among them.

    >>> before = flow.cpu.memory_allocated()
    >>> x = flow.ones(1 << 20)
    >>> flow.cpu.memory_allocated() - before >= 4 << 20
    True
    """
    found = _library().mallinfo2()
    return found.uordblks + found.hblkhd


def memory_reserved(device: Any = None) -> int:
    """The bytes of host memory that the process holds, in use or not."""
    return _kilobytes("VmRSS") * 1024


def max_memory_reserved(device: Any = None) -> int:
    """The peak of `memory_reserved`, since the process began or `reset_peak_memory_stats()`."""
    return _kilobytes("VmHWM") * 1024


def reset_peak_memory_stats(device: Any = None) -> None:
    """Reset the peak of memory use."""
    with contextlib.suppress(OSError):  # some containers forbid it
        _FORGET.write_text("5")


def memory_stats(device: Any = None) -> dict[str, int]:
    """These figures, under CUDA's names."""
    return {
        "allocated_bytes.all.current": memory_allocated(), "reserved_bytes.all.current": memory_reserved(),
        "reserved_bytes.all.peak": max_memory_reserved(),
    }  # fmt: skip


def empty_cache() -> None:
    """Return unused memory to the host."""
    _library().malloc_trim(0)


def _kilobytes(name: str) -> int:
    for line in _STATUS.read_text().splitlines():
        if line.startswith(name + ":"):
            return int(line.split()[1])
    raise DeviceError(f"the kernel doesn't report {name} of a process")
