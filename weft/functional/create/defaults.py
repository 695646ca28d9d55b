"""The default device of new tensors."""

from __future__ import annotations

from typing import Any

from weft.api.table import public
from weft.core.device import Device, choose_usual, usual


@public("flow")
def set_default_device(device: Any) -> None:
    """Set the default device of this thread's new tensors and layers.

    >>> flow.set_default_device("meta"); flow.zeros(2).device.type
    'meta'
    >>> flow.set_default_device(None)
    """
    choose_usual(None if device is None else Device(device))


@public("flow")
def get_default_device() -> Device:
    """The default device of this thread's new tensors."""
    return usual() or Device("cpu")
