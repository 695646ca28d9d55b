# Written by `make stubs` from the tables that bind these names. Whatever is changed here is lost.

"""`flow.comm`: collectives and messages on local tensors, spelled as in torch.distributed.

Every rank of the world, or of `group`, must call each collective, in the same order. Messages go from one rank to
rank to another. Ranks are always counted in the world.
"""

from weft.system.comm import (
    all_gather as all_gather, all_gather_into_tensor as all_gather_into_tensor, all_reduce as all_reduce,
    all_reduce_later as all_reduce_later, all_to_all as all_to_all, barrier as barrier, broadcast as broadcast,
    exchange as exchange, gather as gather, recv as recv, reduce as reduce, reduce_scatter as reduce_scatter,
    reduce_scatter_tensor as reduce_scatter_tensor, scatter as scatter, send as send
)
