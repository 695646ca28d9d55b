"""Registers between ranks whose tasks run on a CUDA device: each end has its copies there, and a channel carries them
from host to host. At the producer's end a thread waits for the kernels that write a copy; at the consumer's the streams
wait, and no thread."""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Callable
from typing import Any, Protocol

import torch
from torch import Tensor

from weft.transport.base import Channel


class Device(Protocol):
    """The interface of an asynchronous device."""

    def stream(self) -> Any: ...
    def own(self) -> Any: ...
    def current(self) -> Any: ...
    def event(self) -> Any: ...
    def on(self, stream: Any) -> contextlib.AbstractContextManager[Any]: ...


class Cuda:
    def __init__(self, device: torch.device) -> None:
        self.device = device

    def stream(self) -> Any:
        return torch.cuda.Stream(self.device)

    def own(self) -> Any:
        """A thread's stream, unless the program chooses another."""
        return torch.cuda.default_stream(self.device)

    def current(self) -> Any:
        return torch.cuda.current_stream(self.device)

    def event(self) -> Any:
        return torch.cuda.Event()

    def on(self, stream: Any) -> contextlib.AbstractContextManager[Any]:
        return torch.cuda.stream(stream)


class Staged(Channel):
    """One end of a channel. `streams` are those of the tasks at this end."""

    def __init__(self, channel: Channel, size: int, at: torch.device, device: Device, sends: bool) -> None:
        self.shape, self.dtype, self.copies = (size,), torch.uint8, channel.copies
        self._channel, self._device = channel, device
        self._host = [channel.buffer(slot)[:size] for slot in range(self.copies)]
        self._buffers = [torch.zeros(size, dtype=torch.uint8, device=at) for _ in range(self.copies)]
        self._copying, made = device.stream(), device.event()
        made.record(device.own())
        self._copying.wait_event(made)
        self.streams: list[Any] = []
        self.ready = [device.event() for _ in range(self.copies)]  # after which the consumer's tasks read a copy
        self._done: list[list[Any]] = [[] for _ in range(self.copies)]  # events after a copy's last use at this end
        self._began = self._ended = 0  # how many copies were written, and how many acknowledged
        self._error: BaseException | None = None
        self._leaving: queue.SimpleQueue[int | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._send, name="weft-staging", daemon=True)
        if sends:
            self._thread.start()

    def buffer(self, slot: int) -> Tensor:
        return self._buffers[slot]

    def rings(self, bell: Callable[[], None]) -> bool:
        return self._channel.rings(bell)

    def _used(self, slot: int) -> None:
        """What was launched so far has used a copy."""
        self._done[slot] = [self._device.event() for _ in self.streams]
        for event, stream in zip(self._done[slot], self.streams, strict=True):
            event.record(stream)

    # ---- the producer's end ----

    def post(self) -> None:
        slot = self._began % self.copies
        self._began += 1
        self._used(slot)
        self._leaving.put(slot)

    def _send(self) -> None:
        try:
            while (slot := self._leaving.get()) is not None:
                for event in self._done[slot]:
                    event.synchronize()
                with self._device.on(self._copying):
                    self._host[slot].copy_(self._buffers[slot])
                self._channel.post()
        except BaseException as error:
            self._error = error

    def acknowledged(self) -> int:
        if self._error is not None:
            raise self._error
        return self._channel.acknowledged()

    def end(self, patience: float) -> None:
        """Send what was posted."""
        if self._thread.is_alive():
            self._leaving.put(None)
            self._thread.join(patience)

    # ---- the consumer's ----

    def arrived(self) -> int:
        there = self._channel.arrived()
        while self._began < there:
            slot = self._began % self.copies
            for event in self._done[slot]:
                self._copying.wait_event(event)
            with self._device.on(self._copying):
                self._buffers[slot].copy_(self._host[slot], non_blocking=True)
            self.ready[slot].record(self._copying)
            self._began += 1
        return self._began

    def acknowledge(self) -> None:
        slot = self._ended % self.copies
        self._ended += 1
        self.ready[slot].synchronize()  # by now the copy from the host is long over, in general
        self._used(slot)
        self._channel.acknowledge()
