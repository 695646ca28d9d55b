# Written by `make stubs` from the tables that bind these names. Whatever is changed here is lost.

# pyright: reportArgumentType=false, reportIncompatibleMethodOverride=false
# pyright: reportIncompatibleVariableOverride=false
"""Torch's own code, on Weft's tensors: see torch.distributed.fsdp.api."""

from collections.abc import Sequence
from enum import Enum
from typing import Any
from weft.core.dtype import DType
from weft.nn.module.module import Module

class BackwardPrefetch(Enum):
    BACKWARD_PRE: Any
    BACKWARD_POST: Any

class CPUOffload:
    offload_params: bool
    def __init__(self, offload_params: bool = False) -> None: ...

class OptimStateDictConfig:
    offload_to_cpu: bool
    def __init__(self, offload_to_cpu: bool = True) -> None: ...

class FullOptimStateDictConfig(OptimStateDictConfig):
    rank0_only: bool
    def __init__(self, offload_to_cpu: bool = True, rank0_only: bool = False) -> None: ...

class StateDictConfig:
    offload_to_cpu: bool
    def __init__(self, offload_to_cpu: bool = False) -> None: ...

class FullStateDictConfig(StateDictConfig):
    rank0_only: bool
    def __init__(self, offload_to_cpu: bool = False, rank0_only: bool = False) -> None: ...

class LocalOptimStateDictConfig(OptimStateDictConfig):
    def __init__(self, offload_to_cpu: bool = False) -> None: ...

class LocalStateDictConfig(StateDictConfig): ...

class MixedPrecision:
    param_dtype: Any
    reduce_dtype: Any
    buffer_dtype: Any
    keep_low_precision_grads: bool
    cast_forward_inputs: bool
    cast_root_forward_inputs: bool
    def __init__(
        self, param_dtype: DType | None = None, reduce_dtype: DType | None = None, buffer_dtype: DType | None = None,
        keep_low_precision_grads: bool = False, cast_forward_inputs: bool = False,
        cast_root_forward_inputs: bool = True, _module_classes_to_ignore: Sequence[type[Module]] = ...
    ) -> None: ...

class ShardedOptimStateDictConfig(OptimStateDictConfig):
    def __init__(self, offload_to_cpu: bool = True, _use_dtensor: bool = False) -> None: ...

class ShardedStateDictConfig(StateDictConfig):
    def __init__(self, offload_to_cpu: bool = False, _use_dtensor: bool = False) -> None: ...

class ShardingStrategy(Enum):
    FULL_SHARD: Any
    SHARD_GRAD_OP: Any
    NO_SHARD: Any
    HYBRID_SHARD: Any

class StateDictSettings:
    def __init__(
        self, state_dict_type: StateDictType, state_dict_config: StateDictConfig,
        optim_state_dict_config: OptimStateDictConfig
    ) -> None: ...

class StateDictType(Enum):
    FULL_STATE_DICT: Any
    LOCAL_STATE_DICT: Any
    SHARDED_STATE_DICT: Any

