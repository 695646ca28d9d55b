# Written by `make stubs` from the tables that bind these names. Whatever is changed here is lost.

"""flow.cpu: is_available, device_count, current_device, synchronize, empty_cache, max_memory_reserved, memory_allocated, memory_reserved, memory_stats, reset_peak_memory_stats"""

from weft.system.devices import current_device as current_device, synchronize as synchronize
from weft.system.host_memory import (
    empty_cache as empty_cache, max_memory_reserved as max_memory_reserved, memory_allocated as memory_allocated,
    memory_reserved as memory_reserved, memory_stats as memory_stats, reset_peak_memory_stats as reset_peak_memory_stats
)

def device_count() -> int:
    """How many cpu devices Weft computes on here."""

def is_available() -> bool:
    """Whether Weft computes on cpu devices here."""
