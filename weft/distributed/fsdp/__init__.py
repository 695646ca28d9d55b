"""`flow.distributed.fsdp`: fully-sharded data parallelism under PyTorch's names, those of its first version too."""

from typing import TYPE_CHECKING, Final

from weft.core.derived import Derived, lazily
from weft.distributed.tensor import DTensor
from weft.parallel.fsdp import FSDPModule, UnshardHandle, fully_shard, register_fsdp_forward_method
from weft.parallel.policies import CPUOffloadPolicy, MixedPrecisionPolicy, OffloadPolicy

if TYPE_CHECKING:
    from weft.distributed.fsdp import wrap
    from weft.distributed.fsdp.api import *  # noqa: F403  (its stub lists them)
    from weft.distributed.fsdp.fully_sharded_data_parallel import FullyShardedDataParallel

FILES: Final = {
    "api": (
        "BackwardPrefetch", "CPUOffload", "FullOptimStateDictConfig", "FullStateDictConfig",
        "LocalOptimStateDictConfig", "LocalStateDictConfig", "MixedPrecision", "OptimStateDictConfig",
        "ShardedOptimStateDictConfig", "ShardedStateDictConfig", "ShardingStrategy", "StateDictConfig",
        "StateDictSettings", "StateDictType",
    ),
    "fully_sharded_data_parallel": ("FullyShardedDataParallel",), "wrap": (),
}  # fmt: skip
for _file in ("api", "wrap"):
    Derived(f"{__name__}.{_file}", f"torch.distributed.fsdp.{_file}")
__getattr__ = lazily(__name__, FILES)

# ruff: noqa: F405
__all__ = [
    "BackwardPrefetch", "CPUOffload", "CPUOffloadPolicy", "DTensor", "FSDPModule", "FullOptimStateDictConfig",
    "FullStateDictConfig", "FullyShardedDataParallel", "LocalOptimStateDictConfig", "LocalStateDictConfig",
    "MixedPrecision", "MixedPrecisionPolicy", "OffloadPolicy", "OptimStateDictConfig",
    "ShardedOptimStateDictConfig", "ShardedStateDictConfig", "ShardingStrategy", "StateDictConfig",
    "StateDictSettings", "StateDictType", "UnshardHandle", "fully_shard", "register_fsdp_forward_method", "wrap",
]  # fmt: skip
