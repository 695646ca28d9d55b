"""`flow.distributed.fsdp`: fully-sharded data parallelism under PyTorch's names."""

from weft.distributed.tensor import DTensor
from weft.parallel.fsdp import CPUOffloadPolicy, FSDPModule, MixedPrecisionPolicy, OffloadPolicy, fully_shard

__all__ = ["CPUOffloadPolicy", "DTensor", "FSDPModule", "MixedPrecisionPolicy", "OffloadPolicy", "fully_shard"]
