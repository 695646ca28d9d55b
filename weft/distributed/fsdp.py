"""`flow.distributed.fsdp`: fully-sharded data parallelism under PyTorch's names."""

from weft.parallel.fsdp import FSDPModule, fully_shard

__all__ = ["FSDPModule", "fully_shard"]
