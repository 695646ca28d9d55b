"""Copies between the host and a CUDA device: who waits for whom, on queues that write down what they are told.

That the bytes arrive is shown on devices (tests/cuda).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest
import torch

from weft.core import device
from weft.ops.create import move

HOST, CUDA = device.Device("cpu"), device._one("cuda", 0)


class Queue:
    def __init__(self, name: str, told: list[str]) -> None:
        self.name, self.told = name, told

    def wait_stream(self, other: Queue) -> None:
        self.told.append(f"{self.name} waits for {other.name}")

    def synchronize(self) -> None:
        self.told.append(f"the host waits for {self.name}")


class Memory:
    """What the kernel sees of a tensor."""

    def __init__(self, where: torch.device, pinned: bool, told: list[str], current: list[Queue]) -> None:
        self.device, self.pinned, self.told, self.current = where, pinned, told, current

    def is_pinned(self) -> bool:
        return self.pinned

    def to(self, where: Any, non_blocking: bool = False) -> Memory:
        self.told.append(f"copy to {torch.device(where).type} on {self.current[-1].name}" + ", ahead" * non_blocking)
        return Memory(torch.device(where), False, self.told, self.current)

    def record_stream(self, queue: Queue) -> None:
        self.told.append(f"{queue.name} use the memory")


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> tuple[list[str], list[Queue]]:
    log: list[str] = []
    kernels, copies = Queue("kernels", log), Queue("copies", log)
    current = [kernels]

    @contextlib.contextmanager
    def stream(queue: Queue) -> Iterator[None]:
        current.append(queue)
        yield
        current.pop()

    monkeypatch.setattr(torch.cuda, "current_stream", lambda _: current[-1])
    monkeypatch.setattr(torch.cuda, "stream", stream)
    monkeypatch.setattr(move, "_copies", lambda _: copies)
    return log, current


@pytest.mark.parametrize("pinned, wait", [(False, True), (True, False), (True, True)])
def test_kernels_wait_for_a_copy_and_not_the_copy_for_kernels(told: Any, pinned: bool, wait: bool) -> None:
    log, current = told
    x: Any = Memory(HOST.torch, pinned, log, current)
    y = move.to_device.kernel(x, CUDA, HOST, wait)
    assert y.device == CUDA.torch and current == current[:1]
    end = ["the host waits for copies"] if pinned and wait else []
    assert log == ["copy to cuda on copies, ahead", "kernels use the memory", "kernels waits for copies", *end]


def test_a_copy_to_the_host_waits_for_what_makes_it(told: Any) -> None:
    log, current = told
    x: Any = Memory(CUDA.torch, False, log, current)
    assert move.to_device.kernel(x, HOST, CUDA).device == HOST.torch
    assert log == ["copies waits for kernels", "copy to cpu on copies"]
