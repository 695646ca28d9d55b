"""`flow.cuda`: CUDA devices, their streams, memory and random numbers. Queries work without a device."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from types import NoneType
from typing import Any, TypeVar

import torch

from weft.api.table import named
from weft.core import random as sources
from weft.core.device import Device, capturing, choose_cuda
from weft.core.errors import OptionError, OutOfMemoryError
from weft.functional.create.typed_tensors import TensorType
from weft.functional.random import generators
from weft.functional.tensor.conversion import TYPES
from weft.tensor.data import local_data
from weft.tensor.tensor import Tensor, of_torch
from weft.vm.machine import vm_of

T = TypeVar("T")


def is_available() -> bool:
    """Whether a CUDA device can be used.

    >>> flow.device("cuda" if flow.cuda.is_available() else "cpu").type in ("cpu", "cuda")
    True
    """
    return torch.cuda.is_available()


def _index(device: Any) -> int:
    found = Device("cuda", device) if isinstance(device, int) else Device("cuda" if device is None else device)
    return found.check().index


def _asks(name: str, gives: type[T], says: str, *without: T) -> Callable[..., T]:
    """A question about a device that torch answers, or `without` one."""
    question = getattr(torch.cuda, name)

    @named(name, says)
    def ask(device: Any = None) -> Any:
        return without[0] if without and not is_available() else question(_index(device))

    ask.__annotations__["return"] = gives
    return ask


def current_device() -> int:
    """The index of the current CUDA device: what was set, or else the rank's own on its host."""
    return Device("cuda").check().index


def set_device(device: Any) -> None:
    """Set the current CUDA device."""
    choose_cuda(_index(device))


@contextlib.contextmanager
def device(device: Any) -> Iterator[None]:
    """A context manager that sets the current CUDA device."""
    with torch.cuda.device(_index(device)):
        yield


def synchronize(device: Any = None) -> None:
    """Wait for all pending work of this rank, here and on the device; raises its errors that nobody saw."""
    vm_of().sync()
    if is_available():
        with capturing:
            torch.cuda.synchronize(_index(device))


Stream = torch.cuda.Stream  # kernels are torch's, and so are their streams


class Event(torch.cuda.Event):
    """A mark in a stream: `record()` puts it behind all that the program has asked of it."""

    def record(self, stream: Any = None) -> None:
        vm_of().drain()
        super().record(stream)


def current_stream(device: Any = None) -> torch.cuda.Stream:
    """The stream of this thread's ops on a device, with all that the program has asked of it."""
    vm_of().drain()
    return torch.cuda.current_stream(_index(device))


def default_stream(device: Any = None) -> torch.cuda.Stream:
    """The stream that ops use unless `stream` says otherwise; likewise."""
    vm_of().drain()
    return torch.cuda.default_stream(_index(device))


@contextlib.contextmanager
def stream(stream: torch.cuda.Stream | None) -> Iterator[None]:
    """A context manager: this thread's ops use another stream; None changes nothing. Order streams by `wait_stream`."""
    vm_of().drain()
    with torch.cuda.stream(stream):
        yield


def set_stream(stream: torch.cuda.Stream) -> None:
    """Let this thread's ops use another stream from now on."""
    vm_of().drain()
    torch.cuda.set_stream(stream)


def manual_seed(seed: int) -> None:
    """Seed this rank's random numbers, if there is CUDA: its generators share one seed."""
    if is_available():
        generators.manual_seed(seed)


def manual_seed_all(seed: int) -> None:
    """Likewise, on every device of this rank."""
    manual_seed(seed)


initial_seed, seed, seed_all = generators.initial_seed, generators.seed, generators.seed


def get_rng_state(device: Any = "cuda") -> Tensor:
    """The state of this rank's generator on a device, for `set_rng_state`."""
    return of_torch(_generator(device).get_state())


def get_rng_state_all() -> list[Tensor]:
    """The generator states of every device."""
    return [get_rng_state(i) for i in range(device_count())]


def set_rng_state(new_state: Tensor, device: Any = "cuda") -> None:
    """Go on with random numbers on a device where `get_rng_state` was taken."""
    _generator(device).set_state(local_data(new_state, "set_rng_state()").cpu())


def set_rng_state_all(new_states: Iterable[Tensor]) -> None:
    """Likewise, on every device."""
    for i, state in enumerate(new_states):
        set_rng_state(state, i)


def _generator(device: Any) -> torch.Generator:
    source = sources.of()
    source.settle()
    return source.on(torch.device("cuda", _index(device)))


def memory_stats(device: Any = None) -> dict[str, Any]:
    """Statistics of the device's memory; empty without a device."""
    return dict(torch.cuda.memory_stats(_index(device))) if is_available() else {}


def memory_summary(device: Any = None, abbreviated: bool = False) -> str:
    """Likewise, as a table for reading."""
    return torch.cuda.memory_summary(_index(device), abbreviated) if is_available() else "there is no CUDA device here"


get_device_name = _asks("get_device_name", str, "The product name of the device.")
get_device_capability = _asks("get_device_capability", tuple[int, int], "The device's compute capability.")


def get_device_properties(device: Any = None) -> Any:
    """Name, memory and other properties of a device."""
    return torch.cuda.get_device_properties(_index(device))


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether the device computes in bfloat16, by emulation if need be."""
    return is_available() and torch.cuda.is_bf16_supported(including_emulation)


def is_tf32_supported() -> bool:
    """Whether the device computes in TF32."""
    return is_available() and torch.cuda.is_tf32_supported()


memory_allocated, max_memory_allocated, memory_reserved, max_memory_reserved = (
    _asks(name, int, f"{says}, in bytes; 0 without a device.", 0)
    for name, says in (
        ("memory_allocated", "Device memory that tensors use"),
        ("max_memory_allocated", "Peak device memory that tensors used"),
        ("memory_reserved", "Device memory that the process has reserved"),
        ("max_memory_reserved", "Peak device memory that the process reserved"),
    )
)
memory_cached, max_memory_cached = memory_reserved, max_memory_reserved
mem_get_info = _asks("mem_get_info", tuple[int, int], "The device's free and total memory, in bytes.")
reset_peak_memory_stats = _asks("reset_peak_memory_stats", NoneType, "Reset the peak of memory use.", None)
reset_accumulated_memory_stats = _asks(
    "reset_accumulated_memory_stats", NoneType, "Reset the accumulated memory statistics.", None
)
reset_max_memory_allocated = reset_max_memory_cached = reset_peak_memory_stats  # deprecated names


def set_per_process_memory_fraction(fraction: float, device: Any = None) -> None:
    """Limit this process to a fraction of the device's memory; more is an OutOfMemoryError."""
    if not isinstance(fraction, (int, float)) or not 0 <= fraction <= 1:
        raise OptionError(f"set_per_process_memory_fraction(): takes a fraction from 0 to 1; got {fraction!r}")
    torch.cuda.set_per_process_memory_fraction(float(fraction), _index(device))


get_per_process_memory_fraction = _asks(
    "get_per_process_memory_fraction", float, "The fraction of the device's memory that this process may use."
)


def can_device_access_peer(device: Any, peer_device: Any) -> bool:
    """Whether one device can access the other's memory directly."""
    return torch.cuda.can_device_access_peer(_index(device), _index(peer_device))


@contextlib.contextmanager
def device_of(obj: Any) -> Iterator[None]:
    """A context manager that sets the current device to a tensor's; a CPU tensor changes nothing."""
    with device(obj.device) if obj.is_cuda else contextlib.nullcontext():
        yield


utilization, memory_usage, temperature, power_draw, clock_rate = (
    _asks(name, int, f"{says}, as the device's driver reports it.")
    for name, says in (
        ("utilization", "Utilization over the last second, in percent"),
        ("memory_usage", "Memory bandwidth utilization over the last second, in percent"),
        ("temperature", "Temperature, in degrees Celsius"),
        ("power_draw", "Power draw, in milliwatts"),
        ("clock_rate", "Clock rate, in MHz"),
    )
)
list_gpu_processes = _asks(
    "list_gpu_processes", str, "Processes that use the device's memory, and how much, as its driver reports it."
)

# torch's own: what neither takes nor returns tensors
device_count, init, is_initialized = torch.cuda.device_count, torch.cuda.init, torch.cuda.is_initialized
empty_cache = torch.cuda.empty_cache
nvtx, StreamContext, ExternalStream = torch.cuda.nvtx, torch.cuda.StreamContext, torch.cuda.ExternalStream
cudart, ipc_collect, get_arch_list = torch.cuda.cudart, torch.cuda.ipc_collect, torch.cuda.get_arch_list
get_gencode_flags, get_allocator_backend = torch.cuda.get_gencode_flags, torch.cuda.get_allocator_backend
get_sync_debug_mode, set_sync_debug_mode = torch.cuda.get_sync_debug_mode, torch.cuda.set_sync_debug_mode
is_current_stream_capturing, memory_snapshot = torch.cuda.is_current_stream_capturing, torch.cuda.memory_snapshot

BFloat16Tensor, BoolTensor, ByteTensor, CharTensor, DoubleTensor, FloatTensor, HalfTensor, IntTensor, LongTensor = (
    TensorType(f"{name}Tensor", TYPES[f"{name}Tensor"], is_cuda=True)
    for name in ("BFloat16", "Bool", "Byte", "Char", "Double", "Float", "Half", "Int", "Long")
)
ShortTensor = TensorType("ShortTensor", TYPES["ShortTensor"], is_cuda=True)

__all__ = [
    "BFloat16Tensor", "BoolTensor", "ByteTensor", "CharTensor", "DoubleTensor", "Event", "ExternalStream",
    "FloatTensor", "HalfTensor", "IntTensor", "LongTensor", "OutOfMemoryError", "ShortTensor", "Stream",
    "StreamContext", "can_device_access_peer", "clock_rate", "cudart", "current_device", "current_stream",
    "default_stream", "device", "device_count", "device_of", "empty_cache", "get_allocator_backend", "get_arch_list",
    "get_device_capability", "get_device_name", "get_device_properties", "get_gencode_flags",
    "get_per_process_memory_fraction", "get_rng_state", "get_rng_state_all", "get_sync_debug_mode", "init",
    "initial_seed", "ipc_collect", "is_available", "is_bf16_supported", "is_current_stream_capturing", "is_initialized",
    "is_tf32_supported", "list_gpu_processes", "manual_seed", "manual_seed_all", "max_memory_allocated",
    "max_memory_cached", "max_memory_reserved", "mem_get_info", "memory_allocated", "memory_cached", "memory_reserved",
    "memory_snapshot", "memory_stats", "memory_summary", "memory_usage", "nvtx", "power_draw",
    "reset_accumulated_memory_stats", "reset_max_memory_allocated", "reset_max_memory_cached",
    "reset_peak_memory_stats", "seed", "seed_all", "set_device", "set_per_process_memory_fraction", "set_rng_state",
    "set_rng_state_all", "set_stream", "set_sync_debug_mode", "stream", "synchronize", "temperature", "utilization",
]  # fmt: skip
