"""What goes on beside the modules that compute: on a thread of its own, or on CUDA on a stream."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Protocol

import torch

from weft.core.device import Device
from weft.core.rank import current
from weft.tensor.blob import Blob
from weft.transport.line import Line
from weft.vm import vm_of

BESIDE = "collective:parts"  # the stream's name, and the line's: its calls overlap with the program's own


class UnderWay(Protocol):
    def wait(self) -> object:
        """Let what comes now be after it. For CPU tensors it isn't needed, as who reads them waits."""


class Queued:
    """An action on the stream of a device. It keeps what the action reads until it is waited for."""

    def __init__(self, action: Callable[[Line], object], line: Line, device: torch.device) -> None:
        self._action: Callable[[Line], object] | None = action
        stream = current().resource(f"stream beside modules on {device}", lambda _: torch.cuda.Stream(device))
        stream.wait_stream(torch.cuda.current_stream(device))
        with torch.cuda.stream(stream):
            action(line)
        self._device, self._done = device, stream.record_event()

    def wait(self) -> None:
        if self._action is not None:
            torch.cuda.current_stream(self._device).wait_event(self._done)
            self._action = None


def begin(
    action: Callable[[Line], object], line: Line, device: Device, reads: Iterable[Blob], writes: Iterable[Blob],
    name: str,
) -> UnderWay:  # fmt: skip
    """Begin an action on a line, which reads and writes these."""
    if device.type == "cuda":
        return Queued(action, line, device.torch)
    return vm_of().submit("collective", BESIDE, functools.partial(action, line), [*reads], mut2=[*writes], name=name)
