# Written by `make stubs` from the tables that bind these names. Whatever is changed here is lost.

"""`flow.cuda`: what there is of CUDA devices, and types of tensors on them. Without a device, the questions say so."""

from weft.functional.typed import TensorType

__all__ = [
    "BoolTensor", "ByteTensor", "CharTensor", "DoubleTensor", "Event", "FloatTensor", "HalfTensor", "IntTensor",
    "LongTensor", "OutOfMemoryError", "Stream", "current_device", "current_stream", "default_stream", "device",
    "device_count", "empty_cache", "get_device_capability", "get_device_name", "get_device_properties", "get_rng_state",
    "get_rng_state_all", "init", "initial_seed", "is_available", "is_bf16_supported", "is_initialized", "manual_seed",
    "manual_seed_all", "max_memory_allocated", "max_memory_reserved", "mem_get_info", "memory_allocated",
    "memory_reserved", "memory_stats", "memory_summary", "reset_peak_memory_stats", "seed", "seed_all", "set_device",
    "set_rng_state", "set_rng_state_all", "stream", "synchronize"
]

BoolTensor: TensorType
ByteTensor: TensorType
CharTensor: TensorType
DoubleTensor: TensorType
FloatTensor: TensorType
HalfTensor: TensorType
IntTensor: TensorType
LongTensor: TensorType
from torch.cuda.streams import Event as Event
from torch.cuda.streams import Stream as Stream
from weft.core.errors import OutOfMemoryError as OutOfMemoryError
from weft.cuda import amp as amp
from weft.functional.cuda import current_device as current_device
from weft.functional.cuda import current_stream as current_stream
from weft.functional.cuda import default_stream as default_stream
from weft.functional.cuda import device as device
from weft.functional.cuda import device_count as device_count
from weft.functional.cuda import empty_cache as empty_cache
from weft.functional.cuda import get_device_capability as get_device_capability
from weft.functional.cuda import get_device_name as get_device_name
from weft.functional.cuda import get_device_properties as get_device_properties
from weft.functional.cuda import get_rng_state as get_rng_state
from weft.functional.cuda import get_rng_state_all as get_rng_state_all
from weft.functional.cuda import init as init
from weft.functional.cuda import initial_seed as initial_seed
from weft.functional.cuda import is_available as is_available
from weft.functional.cuda import is_bf16_supported as is_bf16_supported
from weft.functional.cuda import is_initialized as is_initialized
from weft.functional.cuda import manual_seed as manual_seed
from weft.functional.cuda import manual_seed_all as manual_seed_all
from weft.functional.cuda import max_memory_allocated as max_memory_allocated
from weft.functional.cuda import max_memory_reserved as max_memory_reserved
from weft.functional.cuda import mem_get_info as mem_get_info
from weft.functional.cuda import memory_allocated as memory_allocated
from weft.functional.cuda import memory_reserved as memory_reserved
from weft.functional.cuda import memory_stats as memory_stats
from weft.functional.cuda import memory_summary as memory_summary
from weft.functional.cuda import reset_peak_memory_stats as reset_peak_memory_stats
from weft.functional.cuda import seed as seed
from weft.functional.cuda import seed as seed_all
from weft.functional.cuda import set_device as set_device
from weft.functional.cuda import set_rng_state as set_rng_state
from weft.functional.cuda import set_rng_state_all as set_rng_state_all
from weft.functional.cuda import stream as stream
from weft.functional.cuda import synchronize as synchronize

