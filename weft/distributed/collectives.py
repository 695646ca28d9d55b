"""Collectives with `torch.distributed`'s signatures, on top of `flow.comm`."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from weft.core.errors import ArgumentError
from weft.core.idle import idle
from weft.distributed.groups import get_world_size, members, root
from weft.distributed.messages import Begun, Work, settle
from weft.system import comm
from weft.tensor.tensor import Tensor


class ReduceOp(enum.StrEnum):
    """The reductions."""

    SUM, AVG, MAX, MIN, PRODUCT = "sum", "avg", "max", "min", "prod"
    BAND, BOR, BXOR = "band", "bor", "bxor"
    RedOpType = enum.nonmember(str)  # of each


def _ready(group: Any) -> tuple[int, ...] | None:
    """The group's ranks, after pending messages were sent."""
    settle()
    return members(group)


def _done(async_op: bool, outputs: Sequence[Tensor] | None = ()) -> Work | None:
    return Work(outputs=outputs or ()) if async_op else None


def all_reduce(tensor: Tensor, op: str = ReduceOp.SUM, group: Any = None, async_op: bool = False) -> Work | None:
    """Replace the tensor on every rank with the reduction over all ranks. `async_op` over c10d runs in the background;
    reading the tensor waits."""
    if not async_op:
        comm.all_reduce(tensor, op, _ready(group))
        return None
    begun = comm.all_reduce_later(tensor, op, _ready(group))
    return Work(outputs=[tensor]) if begun is None else Begun(begun, [tensor])


def broadcast(
    tensor: Tensor, src: int | None = None, group: Any = None, async_op: bool = False, group_src: int | None = None
) -> Work | None:
    """Replace the tensor on every rank with the one of rank `src`."""
    comm.broadcast(tensor, root("broadcast", src, group_src, group), _ready(group))
    return _done(async_op, [tensor])


def reduce(
    tensor: Tensor, dst: int | None = None, op: str = ReduceOp.SUM, group: Any = None, async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:  # fmt: skip
    """Replace the tensor on rank `dst` with the reduction over all ranks."""
    comm.reduce(tensor, root("reduce", dst, group_dst, group), op, _ready(group))
    return _done(async_op, [tensor])


def all_gather(tensor_list: Sequence[Tensor], tensor: Tensor, group: Any = None, async_op: bool = False) -> Work | None:
    """Fill the list with every rank's tensor, in rank order."""
    comm.all_gather(tensor_list, tensor, _ready(group))
    return _done(async_op, tensor_list)


def all_gather_into_tensor(
    output_tensor: Tensor, input_tensor: Tensor, group: Any = None, async_op: bool = False
) -> Work | None:
    """Fill the output with every rank's tensor, concatenated along the first dimension."""
    comm.all_gather_into_tensor(output_tensor, input_tensor, _ready(group))
    return _done(async_op, [output_tensor])


def reduce_scatter(
    output: Tensor, input_list: Sequence[Tensor], op: str = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Work | None:
    """Reduce the lists over all ranks elementwise; the output becomes the result at this rank's index."""
    comm.reduce_scatter(output, input_list, op, _ready(group))
    return _done(async_op, [output])


def reduce_scatter_tensor(
    output: Tensor, input: Tensor, op: str = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Work | None:
    """The output becomes this rank's shard, along the first dimension, of the reduction over all ranks."""
    comm.reduce_scatter_tensor(output, input, op, _ready(group))
    return _done(async_op, [output])


def gather(
    tensor: Tensor, gather_list: Sequence[Tensor] | None = None, dst: int | None = None, group: Any = None,
    async_op: bool = False, group_dst: int | None = None,
) -> Work | None:  # fmt: skip
    """Fill the list of rank `dst` with every rank's tensor."""
    comm.gather(tensor, gather_list, root("gather", dst, group_dst, group, 0), _ready(group))
    return _done(async_op, gather_list)


def scatter(
    tensor: Tensor, scatter_list: Sequence[Tensor] | None = None, src: int | None = None, group: Any = None,
    async_op: bool = False, group_src: int | None = None,
) -> Work | None:  # fmt: skip
    """Replace the tensor on every rank with the one at its index in the list of rank `src`."""
    comm.scatter(tensor, scatter_list, root("scatter", src, group_src, group, 0), _ready(group))
    return _done(async_op, [tensor])


def all_to_all(
    output_tensor_list: Sequence[Tensor], input_tensor_list: Sequence[Tensor], group: Any = None, async_op: bool = False
) -> Work | None:
    """Send the i-th tensor of the input to rank i; the i-th of the output comes from rank i."""
    comm.all_to_all(output_tensor_list, input_tensor_list, _ready(group))
    return _done(async_op, output_tensor_list)


def all_to_all_single(
    output: Tensor, input: Tensor, output_split_sizes: Sequence[int] | None = None,
    input_split_sizes: Sequence[int] | None = None, group: Any = None, async_op: bool = False,
) -> Work | None:  # fmt: skip
    """As `all_to_all`, with slices of one tensor along the first dimension: equal ones, or of the sizes given."""
    outs, parts = _parts(output, output_split_sizes, group), _parts(input, input_split_sizes, group)
    comm.all_to_all(outs, parts, _ready(group))
    return _done(async_op, [output])


def _parts(t: Tensor, sizes: Sequence[int] | None, group: Any) -> Sequence[Tensor]:
    n = get_world_size(group)
    if sizes is None and t.shape[0] % n:
        raise ArgumentError(f"all_to_all_single(): {n} ranks can't share {t.shape[0]} rows evenly; give split sizes")
    return t.detach().split(list(sizes) if sizes is not None else t.shape[0] // n)


def barrier(
    group: Any = None, async_op: bool = False, device_ids: Any = None, timeout: timedelta | None = None
) -> Work | None:
    """Wait until every rank has called this. A rank that fails is noticed by watching it, whatever the timeout."""
    idle("distributed.barrier(timeout)", timeout)
    comm.barrier(_ready(group))
    return _done(async_op)


def monitored_barrier(group: Any = None, timeout: timedelta | None = None, wait_all_ranks: bool = False) -> None:
    """As `barrier`: every wait watches the other ranks."""
    idle("distributed.monitored_barrier(timeout)", timeout)
    idle("distributed.monitored_barrier(wait_all_ranks)", wait_all_ranks)
    comm.barrier(_ready(group))
