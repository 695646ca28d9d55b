"""`flow._C` names of collectives that only OneFlow's programs use."""

from __future__ import annotations

from typing import Any

from weft.api.table import public
from weft.ops import ops
from weft.system import comm


@public("bound")
def local_all_reduce(x: Any, inplace: bool = False) -> Any:
    """The sum over all ranks of a local tensor."""
    return comm.all_reduce(x if inplace else ops.clone(x.detach()))


@public("bound")
def local_all_gather(output: Any, x: Any) -> Any:
    """Concatenate every rank's tensor into the output."""
    comm.all_gather_into_tensor(output, x)
    return output


@public("bound")
def local_reduce_scatter(output: Any, x: Any) -> Any:
    """This rank's shard of the sum over all ranks, into the output."""
    comm.reduce_scatter_tensor(output, x)
    return output


@public("bound")
def local_reduce(x: Any, dst: int = 0, inplace: bool = False) -> Any:
    """The sum over all ranks, on rank `dst`."""
    y = x if inplace else ops.clone(x.detach())
    comm.reduce(y, dst)
    return y


@public("bound")
def comm_broadcast(x: Any, src_rank: int = 0, inplace: bool = False) -> Any:
    """The tensor of rank `src_rank`, or each of several, on every rank."""
    if isinstance(x, (list, tuple)):
        return tuple(comm_broadcast(t, src_rank, inplace) for t in x)
    y = x if inplace else ops.clone(x.detach())
    comm.broadcast(y, src_rank)
    return y


public("bound")(comm.send)
public("bound")(comm.recv)
