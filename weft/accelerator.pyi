# Written by `make stubs` from the tables that bind these names. Whatever is changed here is lost.

"""`flow.accelerator`: the device beside the CPU, whichever there is; CUDA's is the one that is known here."""


__all__ = [
    "current_accelerator", "current_device_index", "device_count", "is_available", "set_device_index", "synchronize"
]

from weft.functional.accelerator import current_accelerator as current_accelerator
from weft.functional.accelerator import current_device_index as current_device_index
from weft.functional.accelerator import device_count as device_count
from weft.functional.accelerator import is_available as is_available
from weft.functional.accelerator import set_device_index as set_device_index
from weft.functional.accelerator import synchronize as synchronize

