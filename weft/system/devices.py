"""Availability of each kind of device: `flow.cpu`, `flow.xpu`, `flow.mps`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from weft.system import cuda, host_memory


def _questions(kind: str, count: int) -> dict[str, Callable[..., Any]]:
    """The functions that say whether there are such devices, and how many."""

    def is_available() -> bool:
        return count > 0

    def device_count() -> int:
        return count

    is_available.__doc__ = f"Whether Weft computes on {kind} devices here."
    device_count.__doc__ = f"How many {kind} devices Weft computes on here."
    return {"is_available": is_available, "device_count": device_count}


def current_device() -> str:
    """The CPU's name."""
    return "cpu"


def synchronize(device: Any = None) -> None:
    """Wait for all pending work of this rank."""
    cuda.synchronize()


MEMORY: Final = (
    host_memory.empty_cache, host_memory.max_memory_reserved, host_memory.memory_allocated,
    host_memory.memory_reserved, host_memory.memory_stats, host_memory.reset_peak_memory_stats,
)  # fmt: skip
CPU: Final = {
    **_questions("cpu", 1), "current_device": current_device, "synchronize": synchronize,
    **{f.__name__: f for f in MEMORY},
}  # fmt: skip
XPU: Final = _questions("xpu", 0)
MPS: Final = _questions("mps", 0)
