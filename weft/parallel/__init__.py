"""Readable recipes over the public API, which decide where data lies; the layers below move it. `flow.nn.parallel`."""

from weft.parallel.ddp import DistributedDataParallel, no_sync

__all__ = ["DistributedDataParallel", "no_sync"]
