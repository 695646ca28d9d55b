# Written by `make stubs` from the tables that bind these names. Whatever is changed here is lost.

# pyright: reportArgumentType=false, reportIncompatibleMethodOverride=false
# pyright: reportIncompatibleVariableOverride=false
"""Torch's own code, on Weft's tensors: see torch.distributed.algorithms.ddp_comm_hooks."""

from enum import Enum
from typing import Any

class DDPCommHookType(Enum):
    ALLREDUCE: Any
    FP16_COMPRESS: Any
    BF16_COMPRESS: Any
    QUANTIZE_PER_TENSOR: Any
    QUANTIZE_PER_CHANNEL: Any
    POWER_SGD: Any
    POWER_SGD_RANK2: Any
    BATCHED_POWER_SGD: Any
    BATCHED_POWER_SGD_RANK2: Any
    NOOP: Any

def register_ddp_comm_hook(comm_hook_type: DDPCommHookType, model: Any, state: Any = None) -> Any: ...
