# Written by `make stubs` from the tables that bind these names. Whatever is changed here is lost.

"""`flow.accelerator`: the accelerator device, which is CUDA's where there is one."""

from torch.cuda import device_count as device_count
from torch.cuda.memory import empty_cache as empty_cache
from weft.system.accelerator import (
    current_accelerator as current_accelerator, current_device_index as current_device_idx,
    current_device_index as current_device_index, device_index as device_index, is_available as is_available,
    set_device_index as set_device_idx, set_device_index as set_device_index
)
from weft.system.cuda import (
    current_stream as current_stream, mem_get_info as get_memory_info, max_memory_allocated as max_memory_allocated,
    max_memory_reserved as max_memory_reserved, memory_allocated as memory_allocated,
    memory_reserved as memory_reserved, memory_stats as memory_stats,
    reset_accumulated_memory_stats as reset_accumulated_memory_stats,
    reset_peak_memory_stats as reset_peak_memory_stats, set_stream as set_stream, synchronize as synchronize
)
