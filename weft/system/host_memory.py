"""`flow.cpu`'s figures of memory: what the process has taken of the host's, as its allocator and the kernel count it.

Tensors on the CPU come from the C library's allocator, as much else does; so what a tensor takes is the difference of
two figures. Nothing is counted while nobody asks.
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
    """The bytes of the host's memory that are in use, those of tensors among them.

    >>> before = flow.cpu.memory_allocated()
    >>> x = flow.ones(1 << 20)
    >>> flow.cpu.memory_allocated() - before >= 4 << 20
    True
    """
    found = _library().mallinfo2()
    return found.uordblks + found.hblkhd


def memory_reserved(device: Any = None) -> int:
    """The bytes that the process has of the host's memory, whether in use or not."""
    return _kilobytes("VmRSS") * 1024


def max_memory_reserved(device: Any = None) -> int:
    """The most that it has had, since it began or `reset_peak_memory_stats()`."""
    return _kilobytes("VmHWM") * 1024


def reset_peak_memory_stats(device: Any = None) -> None:
    """Let the most be counted from now on."""
    with contextlib.suppress(OSError):  # some containers forbid it
        _FORGET.write_text("5")


def memory_stats(device: Any = None) -> dict[str, int]:
    """These figures, under the names of CUDA's."""
    return {
        "allocated_bytes.all.current": memory_allocated(), "reserved_bytes.all.current": memory_reserved(),
        "reserved_bytes.all.peak": max_memory_reserved(),
    }  # fmt: skip


def empty_cache() -> None:
    """Give memory that nothing uses back to the host."""
    _library().malloc_trim(0)


def _kilobytes(name: str) -> int:
    for line in _STATUS.read_text().splitlines():
        if line.startswith(name + ":"):
            return int(line.split()[1])
    raise DeviceError(f"the kernel doesn't tell {name} of a process")
