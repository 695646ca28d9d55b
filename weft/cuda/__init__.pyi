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
from torch.cuda import StreamContext as StreamContext
from torch.cuda import cudart as cudart
from torch.cuda import device_count as device_count
from torch.cuda import get_arch_list as get_arch_list
from torch.cuda import get_gencode_flags as get_gencode_flags
from torch.cuda import get_sync_debug_mode as get_sync_debug_mode
from torch.cuda import init as init
from torch.cuda import ipc_collect as ipc_collect
from torch.cuda import is_initialized as is_initialized
from torch.cuda import nvtx as nvtx
from torch.cuda import set_stream as set_stream
from torch.cuda import set_sync_debug_mode as set_sync_debug_mode
from torch.cuda.graphs import is_current_stream_capturing as is_current_stream_capturing
from torch.cuda.memory import empty_cache as empty_cache
from torch.cuda.memory import get_allocator_backend as get_allocator_backend
from torch.cuda.memory import memory_snapshot as memory_snapshot
from torch.cuda.streams import Event as Event
from torch.cuda.streams import ExternalStream as ExternalStream
from torch.cuda.streams import Stream as Stream
from weft.core.errors import OutOfMemoryError as OutOfMemoryError
from weft.cuda import amp as amp
from weft.functional.random.generators import initial_seed as initial_seed
from weft.functional.random.generators import seed as seed
from weft.functional.random.generators import seed as seed_all
from weft.system.cuda import can_device_access_peer as can_device_access_peer
from weft.system.cuda import clock_rate as clock_rate
from weft.system.cuda import current_device as current_device
from weft.system.cuda import current_stream as current_stream
from weft.system.cuda import default_stream as default_stream
from weft.system.cuda import device as device
from weft.system.cuda import device_of as device_of
from weft.system.cuda import get_device_capability as get_device_capability
from weft.system.cuda import get_device_name as get_device_name
from weft.system.cuda import get_device_properties as get_device_properties
from weft.system.cuda import get_per_process_memory_fraction as get_per_process_memory_fraction
from weft.system.cuda import get_rng_state as get_rng_state
from weft.system.cuda import get_rng_state_all as get_rng_state_all
from weft.system.cuda import is_available as is_available
from weft.system.cuda import is_bf16_supported as is_bf16_supported
from weft.system.cuda import is_tf32_supported as is_tf32_supported
from weft.system.cuda import list_gpu_processes as list_gpu_processes
from weft.system.cuda import manual_seed as manual_seed
from weft.system.cuda import manual_seed_all as manual_seed_all
from weft.system.cuda import max_memory_allocated as max_memory_allocated
from weft.system.cuda import max_memory_reserved as max_memory_cached
from weft.system.cuda import max_memory_reserved as max_memory_reserved
from weft.system.cuda import mem_get_info as mem_get_info
from weft.system.cuda import memory_allocated as memory_allocated
from weft.system.cuda import memory_reserved as memory_cached
from weft.system.cuda import memory_reserved as memory_reserved
from weft.system.cuda import memory_stats as memory_stats
from weft.system.cuda import memory_summary as memory_summary
from weft.system.cuda import memory_usage as memory_usage
from weft.system.cuda import power_draw as power_draw
from weft.system.cuda import reset_accumulated_memory_stats as reset_accumulated_memory_stats
from weft.system.cuda import reset_peak_memory_stats as reset_max_memory_allocated
from weft.system.cuda import reset_peak_memory_stats as reset_max_memory_cached
from weft.system.cuda import reset_peak_memory_stats as reset_peak_memory_stats
from weft.system.cuda import set_device as set_device
from weft.system.cuda import set_per_process_memory_fraction as set_per_process_memory_fraction
from weft.system.cuda import set_rng_state as set_rng_state
from weft.system.cuda import set_rng_state_all as set_rng_state_all
from weft.system.cuda import stream as stream
from weft.system.cuda import synchronize as synchronize
from weft.system.cuda import temperature as temperature
from weft.system.cuda import utilization as utilization

