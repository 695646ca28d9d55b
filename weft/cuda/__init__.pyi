# Written by `make stubs` from the tables that bind these names. Whatever is changed here is lost.

"""`flow.cuda`: CUDA devices, their streams, memory and random numbers. Queries work without a device."""

from weft.functional.create.typed_tensors import TensorType

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
    "set_rng_state_all", "set_stream", "set_sync_debug_mode", "stream", "synchronize", "temperature", "utilization"
]

from torch.cuda import (
    StreamContext as StreamContext, cudart as cudart, device_count as device_count, get_arch_list as get_arch_list,
    get_gencode_flags as get_gencode_flags, get_sync_debug_mode as get_sync_debug_mode, init as init,
    ipc_collect as ipc_collect, is_initialized as is_initialized, nvtx as nvtx,
    set_sync_debug_mode as set_sync_debug_mode
)
from torch.cuda.graphs import is_current_stream_capturing as is_current_stream_capturing
from torch.cuda.memory import (
    empty_cache as empty_cache, get_allocator_backend as get_allocator_backend, memory_snapshot as memory_snapshot
)
from torch.cuda.streams import ExternalStream as ExternalStream, Stream as Stream
from weft import OutOfMemoryError as OutOfMemoryError
from weft.cuda import amp as amp
from weft.functional.random.generators import initial_seed as initial_seed, seed as seed, seed as seed_all
from weft.system.cuda import (
    Event as Event, can_device_access_peer as can_device_access_peer, clock_rate as clock_rate,
    current_device as current_device, current_stream as current_stream, default_stream as default_stream,
    device as device, device_of as device_of, get_device_capability as get_device_capability,
    get_device_name as get_device_name, get_device_properties as get_device_properties,
    get_per_process_memory_fraction as get_per_process_memory_fraction, get_rng_state as get_rng_state,
    get_rng_state_all as get_rng_state_all, is_available as is_available, is_bf16_supported as is_bf16_supported,
    is_tf32_supported as is_tf32_supported, list_gpu_processes as list_gpu_processes, manual_seed as manual_seed,
    manual_seed_all as manual_seed_all, max_memory_allocated as max_memory_allocated,
    max_memory_reserved as max_memory_cached, max_memory_reserved as max_memory_reserved, mem_get_info as mem_get_info,
    memory_allocated as memory_allocated, memory_reserved as memory_cached, memory_reserved as memory_reserved,
    memory_stats as memory_stats, memory_summary as memory_summary, memory_usage as memory_usage,
    power_draw as power_draw, reset_accumulated_memory_stats as reset_accumulated_memory_stats,
    reset_peak_memory_stats as reset_max_memory_allocated, reset_peak_memory_stats as reset_max_memory_cached,
    reset_peak_memory_stats as reset_peak_memory_stats, set_device as set_device,
    set_per_process_memory_fraction as set_per_process_memory_fraction, set_rng_state as set_rng_state,
    set_rng_state_all as set_rng_state_all, set_stream as set_stream, stream as stream, synchronize as synchronize,
    temperature as temperature, utilization as utilization
)

BFloat16Tensor: TensorType
BoolTensor: TensorType
ByteTensor: TensorType
CharTensor: TensorType
DoubleTensor: TensorType
FloatTensor: TensorType
HalfTensor: TensorType
IntTensor: TensorType
LongTensor: TensorType
ShortTensor: TensorType
