"""Readable recipes over the public API, which decide where data lies; the layers below move it. `flow.nn.parallel`."""

from weft.nn.replicas import DataParallel
from weft.parallel.ddp import DistributedDataParallel, no_sync

__all__ = ["DataParallel", "DistributedDataParallel", "no_sync"]
