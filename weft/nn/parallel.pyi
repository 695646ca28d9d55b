# Written by `make stubs` from the tables that bind these names. Whatever is changed here is lost.

"""Readable recipes over the public API, which decide where data lies; the layers below move it. `flow.nn.parallel`."""


__all__ = [
    "DataParallel", "DistributedDataParallel", "no_sync"
]

from weft.nn.replicas import DataParallel as DataParallel
from weft.parallel.ddp import DistributedDataParallel as DistributedDataParallel
from weft.parallel.ddp import no_sync as no_sync

