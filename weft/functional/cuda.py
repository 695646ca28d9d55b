"""`flow.cuda`: what there is of CUDA devices, and types of tensors on them. Without a device, the questions say so."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch

from weft.core import random as sources
from weft.core.device import Device, choose_cuda
from weft.core.errors import OutOfMemoryError
from weft.functional import random
from weft.functional.conversion import TYPES
from weft.functional.typed import TensorType
from weft.tensor.tensor import Tensor, of_torch
from weft.vm.machine import vm_of


def is_available() -> bool:
    """Whether a CUDA device can be used.

    >>> flow.device("cuda" if flow.cuda.is_available() else "cpu").type in ("cpu", "cuda")
    True
    """
    return torch.cuda.is_available()


def device_count() -> int:
    """How many CUDA devices this process sees."""
    return torch.cuda.device_count()


def _index(device: Any) -> int:
    found = Device("cuda", device) if isinstance(device, int) else Device("cuda" if device is None else device)
    return found.check().index


def current_device() -> int:
    """The number of the device that "cuda" stands for: what was set, or else the rank's own on its host."""
    return Device("cuda").check().index


def set_device(device: Any) -> None:
    """Let "cuda" stand for this device."""
    choose_cuda(_index(device))


@contextlib.contextmanager
def device(device: Any) -> Iterator[None]:
    """Let "cuda" stand for this device for a while."""
    with torch.cuda.device(_index(device)):
        yield


def synchronize(device: Any = None) -> None:
    """Wait for all that this rank has under way, here and on the device; raises an error of it that nobody saw."""
    vm_of().sync()
    if is_available():
        torch.cuda.synchronize(_index(device))


Stream, Event = torch.cuda.Stream, torch.cuda.Event  # kernels are torch's, and so are the queues that they wait in


def current_stream(device: Any = None) -> torch.cuda.Stream:
    """The queue to which this thread's ops on a device go."""
    return torch.cuda.current_stream(_index(device))


def default_stream(device: Any = None) -> torch.cuda.Stream:
    """The queue to which ops go unless `stream` says otherwise."""
    return torch.cuda.default_stream(_index(device))


@contextlib.contextmanager
def stream(stream: torch.cuda.Stream | None) -> Iterator[None]:
    """Let this thread's ops go to another queue; None changes nothing. Between queues, `wait_stream` orders."""
    with torch.cuda.stream(stream):  # type: ignore[arg-type]
        yield


def empty_cache() -> None:
    """Give memory that no tensor uses back to the device."""
    torch.cuda.empty_cache()


def manual_seed(seed: int) -> None:
    """Start this rank's random numbers anew: its generators share one seed."""
    random.manual_seed(seed)


def manual_seed_all(seed: int) -> None:
    """Likewise, on every device of this rank."""
    random.manual_seed(seed)


def initial_seed() -> int:
    """The seed that this rank's random numbers started from."""
    return random.initial_seed()


def seed() -> int:
    """Start this rank's random numbers anew from a seed that nobody knows; gives the seed."""
    return random.seed()


seed_all = seed


def get_rng_state(device: Any = "cuda") -> Tensor:
    """The state of this rank's random numbers on a device, for `set_rng_state`."""
    return of_torch(_source(device).get_state())


def get_rng_state_all() -> list[Tensor]:
    """The state on every device; of none, where there is none."""
    return [get_rng_state(i) for i in range(device_count())]


def set_rng_state(new_state: Tensor, device: Any = "cuda") -> None:
    """Go on with random numbers on a device where `get_rng_state` was taken."""
    _source(device).set_state(new_state._local("set_rng_state()").cpu())


def set_rng_state_all(new_states: Iterable[Tensor]) -> None:
    """Likewise, on every device."""
    for i, state in enumerate(new_states):
        set_rng_state(state, i)


def _source(device: Any) -> torch.Generator:
    return sources.of().generator(torch.device("cuda", _index(device)))


def init() -> None:
    """Begin with the device now, which the first tensor there does by itself."""
    torch.cuda.init()


def is_initialized() -> bool:
    """Whether the process has begun with a device."""
    return torch.cuda.is_initialized()


def memory_stats(device: Any = None) -> dict[str, Any]:
    """Figures of the device's memory; none without a device."""
    return dict(torch.cuda.memory_stats(_index(device))) if is_available() else {}


def memory_summary(device: Any = None, abbreviated: bool = False) -> str:
    """Likewise, as a table to be read."""
    return torch.cuda.memory_summary(_index(device), abbreviated) if is_available() else "there is no CUDA device here"


def get_device_name(device: Any = None) -> str:
    """What the device is sold as."""
    return torch.cuda.get_device_name(_index(device))


def get_device_properties(device: Any = None) -> Any:
    """Name, memory and more of a device."""
    return torch.cuda.get_device_properties(_index(device))


def get_device_capability(device: Any = None) -> tuple[int, int]:
    """The device's compute capability."""
    return torch.cuda.get_device_capability(_index(device))


def is_bf16_supported() -> bool:
    """Whether the device computes in bfloat16."""
    return is_available() and torch.cuda.is_bf16_supported()


def _counted(name: str, says: str) -> Callable[..., int]:
    count = getattr(torch.cuda, name)

    def ask(device: Any = None) -> int:
        return count(_index(device)) if is_available() else 0

    ask.__name__ = ask.__qualname__ = name
    ask.__doc__ = f"{says}, in bytes; 0 without a device."
    return ask


memory_allocated = _counted("memory_allocated", "What tensors hold of the device's memory")
max_memory_allocated = _counted("max_memory_allocated", "The most that tensors have held of the device's memory")
memory_reserved = _counted("memory_reserved", "What the process has taken of the device's memory")
max_memory_reserved = _counted("max_memory_reserved", "The most that the process has taken of the device's memory")


def mem_get_info(device: Any = None) -> tuple[int, int]:
    """The device's memory, in bytes: what is free, and all of it."""
    return torch.cuda.mem_get_info(_index(device))


def reset_peak_memory_stats(device: Any = None) -> None:
    """Let the largest use of memory be counted from now on."""
    if is_available():
        torch.cuda.reset_peak_memory_stats(_index(device))


BoolTensor, ByteTensor, CharTensor, DoubleTensor, FloatTensor, HalfTensor, IntTensor, LongTensor = (
    TensorType(f"{name}Tensor", TYPES[f"{name}Tensor"], is_cuda=True)
    for name in ("Bool", "Byte", "Char", "Double", "Float", "Half", "Int", "Long")
)

__all__ = [
    "BoolTensor", "ByteTensor", "CharTensor", "DoubleTensor", "Event", "FloatTensor", "HalfTensor", "IntTensor",
    "LongTensor", "OutOfMemoryError", "Stream", "current_device", "current_stream", "default_stream", "device",
    "device_count", "empty_cache", "get_device_capability", "get_device_name", "get_device_properties", "get_rng_state",
    "get_rng_state_all", "init", "initial_seed", "is_available", "is_bf16_supported", "is_initialized", "manual_seed",
    "manual_seed_all", "max_memory_allocated", "max_memory_reserved", "mem_get_info", "memory_allocated",
    "memory_reserved", "memory_stats", "memory_summary", "reset_peak_memory_stats", "seed", "seed_all", "set_device",
    "set_rng_state", "set_rng_state_all", "stream", "synchronize",
]  # fmt: skip
