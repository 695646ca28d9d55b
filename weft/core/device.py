"""A device: a type and an index, printed as OneFlow prints it (`cpu:0`)."""

from __future__ import annotations

import functools
import threading
from typing import Any, Final

import torch

from weft.core.dispatch import here, set_modes
from weft.core.errors import DeviceError, NoDeviceError
from weft.core.rank import current

capturing: Final = threading.Lock()  # held while kernels are captured: nobody may wait for the whole device meanwhile


ASKED_FOR: Final = ("mps", "xpu")  # by programs that compare devices with theirs


class Device:
    """`flow.device("cuda:1")` or `flow.device("cuda", 1)`. Equal means identical; torch's is equal, too.

    As a context manager, it is the default device of this thread's new tensors.

    >>> with flow.device("meta"):
    ...     flow.nn.Linear(2, 3).weight.device.type
    'meta'
    """

    type: str
    index: int
    torch: torch.device

    def __new__(cls, type: Any = "cpu", index: int | None = None) -> Device:
        if isinstance(type, Device):
            return type
        if type == "cuda" and index is None:
            return _one("cuda", current_cuda())
        return _make(str(type), index)

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, torch.device) and self.torch == other)

    __hash__ = object.__hash__  # the fastest, as devices are keys here: torch's finds no entry of ours

    def __reduce__(self) -> tuple[object, tuple[str, int]]:
        return Device, (self.type, self.index)

    def __repr__(self) -> str:
        return f"device(type='{self.type}', index={self.index})"

    def __str__(self) -> str:
        return f"{self.type}:{self.index}"

    def check(self) -> Device:
        """Raise if this machine doesn't have the device."""
        if self.type in ASKED_FOR:
            raise DeviceError(f"{self} was asked for, and Weft computes on 'cpu' and 'cuda'")
        if self.type == "cuda" and self.index >= torch.cuda.device_count():
            have = torch.cuda.device_count()
            raise DeviceError(
                f"{self} was asked for, but torch sees {have or 'no'} CUDA device{'s' * (have != 1)} here; "
                + (f"use cuda:0 to cuda:{have - 1}, or 'cpu'" if have else "use device='cpu'")
            )
        return self

    def __enter__(self) -> Device:
        chosen.outer = (*chosen.outer, here.device)
        choose_usual(self)
        return self

    def __exit__(self, *_: object) -> None:
        *outer, device = chosen.outer
        chosen.outer = tuple(outer)
        set_modes(device=device)


class _Chosen(threading.local):
    cuda: bool = False
    outer: tuple[Device | None, ...] = ()  # the default outside each `with` block


chosen = _Chosen()


def choose_usual(device: Device | None) -> None:
    """Set the default device of this thread's new tensors."""
    set_modes(device=None if device is None else device.check())


def choose_cuda(index: int) -> None:
    """Let "cuda" mean this device in this thread."""
    torch.cuda.set_device(index)
    chosen.cuda = True


def current_cuda() -> int:
    """The index that "cuda" means. Until this thread chooses, the ranks of a host take its devices in turn."""
    count = torch.cuda.device_count()
    if not count:
        return 0
    if not chosen.cuda:
        mine = current().local_index % count
        if mine and not torch.cuda.current_device():
            torch.cuda.set_device(mine)
        chosen.cuda = True
    return torch.cuda.current_device()


@functools.cache
def _make(text: str, index: int | None) -> Device:
    kind, colon, number = text.partition(":")
    if (
        kind not in ("cpu", "cuda", "meta", *ASKED_FOR)
        or (colon and not number.isdigit())
        or (colon and index is not None)
    ):
        raise NoDeviceError(f"{text!r} is not a device; write 'cpu', 'cuda' or 'cuda:1'")
    if index is not None and not (hasattr(index, "__index__") and index >= 0):
        raise NoDeviceError(f"device({text!r}, {index!r}): the index of a device is an integer from 0")
    return _one(kind, int(number) if colon else index or 0)


@functools.cache
def _one(kind: str, index: int) -> Device:
    self = object.__new__(Device)
    self.type, self.index = kind, index
    self.torch = torch.device(kind, index) if kind == "cuda" else torch.device(kind)
    return self


device = Device


def of_torch(value: torch.device) -> Device:
    return _twins.get(value) or _twins.setdefault(value, _one(value.type, value.index or 0))


_twins: dict[torch.device, Device] = {}
