"""Data-parallel recipes over the public API: DistributedDataParallel and FSDP. It is `flow.nn.parallel`."""

from weft.nn.data_parallel import DataParallel
from weft.parallel.ddp import DistributedDataParallel, no_sync
from weft.parallel.fsdp import FSDPModule, fully_shard

__all__ = ["DataParallel", "DistributedDataParallel", "FSDPModule", "fully_shard", "no_sync"]
