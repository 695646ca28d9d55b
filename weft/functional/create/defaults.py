"""Where new tensors go if nobody says so."""

from __future__ import annotations

from typing import Any

from weft.api.table import public
from weft.core.device import Device, choose_usual, usual


@public("flow")
def set_default_device(device: Any) -> None:
    """Let this thread make tensors and layers on a device where nothing else is said.

    >>> flow.set_default_device("meta"); flow.zeros(2).device.type
    'meta'
    >>> flow.set_default_device(None)
    """
    choose_usual(None if device is None else Device(device))


@public("flow")
def get_default_device() -> Device:
    """Where this thread's tensors go of which nothing else is said."""
    return usual() or Device("cpu")
