# Written by `make stubs` from the tables that bind these names. Whatever is changed here is lost.

"""`flow.accelerator`: the accelerator device, which is CUDA's where there is one."""


__all__ = [
    "current_accelerator", "current_device_idx", "current_device_index", "current_stream", "device_count",
    "device_index", "empty_cache", "get_memory_info", "is_available", "max_memory_allocated", "max_memory_reserved",
    "memory_allocated", "memory_reserved", "memory_stats", "reset_accumulated_memory_stats", "reset_peak_memory_stats",
    "set_device_idx", "set_device_index", "set_stream", "synchronize"
]

from torch.cuda import device_count as device_count
from torch.cuda import set_stream as set_stream
from torch.cuda.memory import empty_cache as empty_cache
from weft.system.accelerator import current_accelerator as current_accelerator
from weft.system.accelerator import current_device_index as current_device_idx
from weft.system.accelerator import current_device_index as current_device_index
from weft.system.accelerator import device_index as device_index
from weft.system.accelerator import is_available as is_available
from weft.system.accelerator import set_device_index as set_device_idx
from weft.system.accelerator import set_device_index as set_device_index
from weft.system.cuda import current_stream as current_stream
from weft.system.cuda import max_memory_allocated as max_memory_allocated
from weft.system.cuda import max_memory_reserved as max_memory_reserved
from weft.system.cuda import mem_get_info as get_memory_info
from weft.system.cuda import memory_allocated as memory_allocated
from weft.system.cuda import memory_reserved as memory_reserved
from weft.system.cuda import memory_stats as memory_stats
from weft.system.cuda import reset_accumulated_memory_stats as reset_accumulated_memory_stats
from weft.system.cuda import reset_peak_memory_stats as reset_peak_memory_stats
from weft.system.cuda import synchronize as synchronize

