# Written by `make stubs` from the tables that bind these names. Whatever is changed here is lost.

"""Data-parallel recipes over the public API: DistributedDataParallel and FSDP. It is `flow.nn.parallel`."""

from weft.nn import DataParallel as DataParallel
from weft.parallel.ddp import DistributedDataParallel as DistributedDataParallel, no_sync as no_sync
from weft.parallel.fsdp import FSDPModule as FSDPModule, fully_shard as fully_shard
