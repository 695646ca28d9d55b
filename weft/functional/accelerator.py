"""`flow.accelerator`: the device beside the CPU, whichever there is; CUDA's is the one that is known here."""

from __future__ import annotations

from typing import Any

from weft.core.device import Device
from weft.core.errors import DeviceError
from weft.functional import cuda


def is_available() -> bool:
    """Whether there is one.

    >>> flow.device("cuda" if flow.accelerator.is_available() else "cpu").type in ("cpu", "cuda")
    True
    """
    return cuda.is_available()


def current_accelerator(check_available: bool = False) -> Device | None:
    """The kind of device that there is, or None."""
    return Device("cuda") if cuda.is_available() else None


def device_count() -> int:
    """How many there are."""
    return cuda.device_count()


def current_device_index() -> int:
    """The number of the device that is used unless another is named."""
    _there("current_device_index")
    return cuda.current_device()


def set_device_index(device: Any) -> None:
    """Use this device unless another is named."""
    _there("set_device_index")
    cuda.set_device(device)


def synchronize(device: Any = None) -> None:
    """Wait for all that this rank has under way."""
    cuda.synchronize(device)


def _there(name: str) -> None:
    if not cuda.is_available():
        raise DeviceError(f"accelerator.{name}(): there is none here; ask is_available() first, or use the CPU")


__all__ = [
    "current_accelerator", "current_device_index", "device_count", "is_available", "set_device_index", "synchronize",
]  # fmt: skip
