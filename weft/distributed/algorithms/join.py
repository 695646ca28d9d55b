"""`torch.distributed.algorithms.join`: ranks with unequal numbers of batches."""

from weft.parallel.uneven import Join, Joinable, JoinHook

__all__ = ["Join", "JoinHook", "Joinable"]
