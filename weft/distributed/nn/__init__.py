"""Differentiable collectives, as in `torch.distributed.nn`."""

from weft.distributed.nn.functional import (
    all_gather,
    all_reduce,
    all_to_all,
    all_to_all_single,
    broadcast,
    reduce,
    reduce_scatter,
)

__all__ = ["all_gather", "all_reduce", "all_to_all", "all_to_all_single", "broadcast", "reduce", "reduce_scatter"]
