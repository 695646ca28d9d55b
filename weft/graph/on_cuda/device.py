"""An asynchronous device: CUDA, or what a test imitates."""

from __future__ import annotations

import contextlib
from typing import Any, Protocol

import torch


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
