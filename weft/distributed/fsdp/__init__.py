"""`flow.distributed.fsdp`: fully-sharded data parallelism under PyTorch's names."""

from weft.distributed.tensor import DTensor
from weft.parallel.fsdp import FSDPModule, UnshardHandle, fully_shard, register_fsdp_forward_method
from weft.parallel.policies import CPUOffloadPolicy, MixedPrecisionPolicy, OffloadPolicy

__all__ = [
    "CPUOffloadPolicy", "DTensor", "FSDPModule", "MixedPrecisionPolicy", "OffloadPolicy", "UnshardHandle",
    "fully_shard", "register_fsdp_forward_method",
]  # fmt: skip
