"""Where new tensors go if nobody says so."""

from __future__ import annotations

import threading
from typing import Any

from weft.core.device import Device
from weft.functional.table import public


class _Default(threading.local):
    device: Device | None = None


_default = _Default()


def default_device() -> Device | None:
    """Where this thread's tensors go of which nothing else is said; None for the CPU."""
    return _default.device


@public("flow")
def set_default_device(device: Any) -> None:
    """Let this thread make tensors and layers on a device where nothing else is said.

    >>> flow.set_default_device("meta"); flow.zeros(2).device.type
    'meta'
    >>> flow.set_default_device(None)
    """
    _default.device = None if device is None else Device(device).check()


@public("flow")
def get_default_device() -> Device:
    """Where this thread's tensors go of which nothing else is said."""
    return _default.device or Device("cpu")
