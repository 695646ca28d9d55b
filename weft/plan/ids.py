"""The id of a task says where it runs: rank 19 | device type 5 | device index 7 | stream 12 | task 21 bits."""

from __future__ import annotations

from typing import Final, NamedTuple

from weft.core.errors import CompileError

BITS: Final = {"rank": 19, "device": 5, "device index": 7, "stream": 12, "task": 21}
DEVICES: Final = ("", "cpu", "cuda", "meta")  # 0 is unused, so that an unset id is invalid


class TaskId(NamedTuple):
    """The fields of an id. It prints as `0.cpu.0.1.5`, which `parse_id` reads.

    >>> decode(TaskId(1, "cpu", 0, 2, 7).encode())
    TaskId(rank=1, device='cpu', device_index=0, stream=2, task=7)
    """

    rank: int
    device: str
    device_index: int
    stream: int
    task: int

    def encode(self) -> int:
        if self.device not in DEVICES[1:]:
            raise CompileError(f"a task can't be on device type {self.device!r}; there are {', '.join(DEVICES[1:])}")
        number = 0
        fields = (self.rank, DEVICES.index(self.device), self.device_index, self.stream, self.task)
        for (field, bits), value in zip(BITS.items(), fields, strict=True):
            if not 0 <= value < 1 << bits:
                raise CompileError(f"{field} {value} doesn't fit a task id: at least 0 and below {1 << bits}")
            number = number << bits | value
        return number

    def __str__(self) -> str:
        return ".".join(map(str, self))


def encode(rank: int, device: str, device_index: int, stream: int, task: int) -> int:
    return TaskId(rank, device, device_index, stream, task).encode()


def decode(number: int) -> TaskId:
    if not 0 <= number < 1 << 64:
        raise CompileError(f"{number} is no task id: it takes more than 64 bits")
    fields = []
    for bits in reversed(BITS.values()):
        fields.append(number & (1 << bits) - 1)
        number >>= bits
    task, stream, device_index, device, rank = fields
    if not 0 < device < len(DEVICES):
        raise CompileError(f"no task id: its device type is {device}, and there are 1 to {len(DEVICES) - 1}")
    return TaskId(rank, DEVICES[device], device_index, stream, task)


def parse_id(text: str) -> int:
    """The id of a text like `0.cpu.0.1.5`."""
    parts = text.split(".")
    if len(parts) != len(BITS) or not all(p.isdecimal() and len(p) < 20 for p in parts[:1] + parts[2:]):
        raise CompileError(f"{text!r} is no task's address; write rank.device.index.stream.task, like 0.cpu.0.1.5")
    rank, device, device_index, stream, task = parts
    return encode(int(rank), device, int(device_index), int(stream), int(task))


def rank_of(number: int) -> int:
    return number >> 45


def stream_of(number: int) -> int:
    return number >> 21 & 0xFFF
