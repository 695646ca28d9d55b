"""`flow.comm`: collectives and messages on local tensors, spelled as in torch.distributed.

Every rank of the world, or of `group`, must call each collective, in the same order. Messages go from one rank to
rank to another. Ranks are always counted in the world.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import torch

from weft.core import dtype as dtypes
from weft.core.device import Device
from weft.core.dispatch import here, hooks
from weft.core.errors import ArgumentError, DeviceError, RankError, ShapeError
from weft.core.rank import current
from weft.tensor import header
from weft.tensor.blob import Blob
from weft.tensor.data import own_data
from weft.tensor.tensor import Tensor, of_torch
from weft.transport import Group, transport_of
from weft.vm.instruction import Instruction
from weft.vm.machine import vm_of

Ranks = Sequence[int] | None  # those of a group; None: everyone


def _ranks(what: str, group: Ranks) -> tuple[int, ...]:
    if group is None:
        return tuple(range(current().world_size))
    ranks = tuple(_rank(what, r) for r in group)
    if current().index not in ranks:
        raise RankError(f"comm.{what}(): rank {current().index} is not one of the group's ranks, {list(ranks)}")
    return ranks


def _members(what: str, group: Ranks = None) -> Group:
    transport = transport_of()
    transport.note(f"comm.{what}")
    return transport.group(_ranks(what, group))


def _place(what: str, rank: int, group: Ranks) -> int:
    """The index of a world rank within the group."""
    ranks = _ranks(what, group)
    if _rank(what, rank) not in ranks:
        raise RankError(f"comm.{what}(): rank {rank} is not one of the group's ranks, {list(ranks)}")
    return ranks.index(rank)


def _data(what: str, t: Any, write: bool = False) -> torch.Tensor:
    """The memory of a local tensor, once it is safe to read or write."""
    if not isinstance(t, Tensor):
        raise ArgumentError(f"comm.{what}(): takes tensors, not {type(t).__name__}")
    data = own_data(t, f"comm.{what}()")
    if data.is_meta:
        raise DeviceError(f"comm.{what}(): a tensor on the device meta has no data that ranks could exchange")
    if write and t.blob.access is not None:
        hooks.wait_write(t.blob)
    return data


def _rank(what: str, rank: int) -> int:
    size = current().world_size
    if not 0 <= rank < size:
        raise RankError(f"comm.{what}(): rank {rank} is outside this world of ranks 0 to {size - 1}")
    return rank


def _list(what: str, tensors: Any, group: Ranks, write: bool = False) -> list[torch.Tensor]:
    size = len(_ranks(what, group))
    if not isinstance(tensors, Sequence) or len(tensors) != size:
        count = len(tensors) if isinstance(tensors, Sequence) else type(tensors).__name__
        raise ArgumentError(f"comm.{what}(): takes one tensor per rank, {size} of them; got {count}")
    return [_data(what, t, write) for t in tensors]


def _dense(data: torch.Tensor) -> torch.Tensor:
    return data if data.is_contiguous() else data.to_dense().contiguous()


@contextlib.contextmanager
def _written(what: str, t: Any) -> Iterator[torch.Tensor]:
    """Contiguous memory for a local tensor's new data, which is the tensor's own if that is contiguous. A sparse one
    stays sparse."""
    data = _data(what, t, True)
    whole = _dense(data)
    yield whole
    if data.layout is torch.sparse_coo:
        t.blob = Blob(whole.to_sparse(data.sparse_dim()))
    elif whole is not data:
        data.copy_(whole)


def _same(what: str, left: torch.Tensor, right: torch.Tensor) -> None:
    if left.shape != right.shape or left.dtype != right.dtype:
        raise ShapeError(
            f"comm.{what}(): {left.dtype}{list(left.shape)} into {right.dtype}{list(right.shape)}: they must agree"
        )


def all_reduce(tensor: Tensor, op: str = "sum", group: Ranks = None) -> Tensor:
    """Replace the tensor on every rank with the sum (or max, min) over all ranks."""
    with _written("all_reduce", tensor) as whole:
        _members("all_reduce", group).all_reduce(whole, op)
    return tensor


LATER = "later"  # the transport queue that keeps asynchronous sums in order


def all_reduce_later(tensor: Tensor, op: str = "sum", group: Ranks = None) -> Instruction | None:
    """`all_reduce` as an asynchronous instruction: reading or writing the tensor waits for it. All ranks of a group
    must begin such sums in one order. Returns None if it was done at once, because that is faster."""
    transport, ranks = transport_of(), _ranks("all_reduce", group)
    data = _data("all_reduce", tensor)
    if not transport.overlaps or not data.is_contiguous() or here.trace is not None:
        all_reduce(tensor, op, group)
        return None
    machine, members = vm_of(), transport.group(ranks, LATER)
    stream = machine.stream(f"collective:{','.join(map(str, ranks))}", "worker")
    return machine.submit(
        "collective", stream, lambda: members.all_reduce(data.data, op), mut=[tensor.blob], name="all_reduce"
    )


def all_gather(tensor_list: Sequence[Tensor], tensor: Tensor, group: Ranks = None) -> None:
    """Fill the list with every rank's tensor, in rank order."""
    outs = _list("all_gather", tensor_list, group, True)
    _members("all_gather", group).all_gather(outs, _dense(_data("all_gather", tensor)))


def all_gather_into_tensor(output_tensor: Tensor, input_tensor: Tensor, group: Ranks = None) -> None:
    """Fill the output with every rank's tensor, concatenated along the first dimension."""
    out, data = _data("all_gather_into_tensor", output_tensor, True), _data("all_gather_into_tensor", input_tensor)
    size = len(_ranks("all_gather_into_tensor", group))
    if out.numel() != data.numel() * size:
        raise ShapeError(
            f"comm.all_gather_into_tensor(): {size} ranks' {list(data.shape)} make {data.numel() * size} elements, "
            f"but the output has shape {list(out.shape)}"
        )
    parts = out.view(size, *data.shape)
    _members("all_gather_into_tensor", group).all_gather(list(parts.unbind(0)), _dense(data))


def reduce_scatter(output: Tensor, input_list: Sequence[Tensor], op: str = "sum", group: Ranks = None) -> None:
    """Sum the lists over all ranks elementwise; the output becomes the sum at this rank's index."""
    parts = [_dense(p) for p in _list("reduce_scatter", input_list, group)]
    out = _data("reduce_scatter", output, True)
    _same("reduce_scatter", parts[_place("reduce_scatter", current().index, group)], out)
    _members("reduce_scatter", group).reduce_scatter(out, parts, op)


def reduce_scatter_tensor(output_tensor: Tensor, input_tensor: Tensor, op: str = "sum", group: Ranks = None) -> None:
    """The output becomes this rank's shard, along the first dimension, of the sum of all ranks' tensors."""
    out, data = _data("reduce_scatter_tensor", output_tensor, True), _data("reduce_scatter_tensor", input_tensor)
    size = len(_ranks("reduce_scatter_tensor", group))
    if data.numel() != out.numel() * size:
        raise ShapeError(
            f"comm.reduce_scatter_tensor(): a {size}th of {list(data.shape)} goes to each rank, but the output has "
            f"shape {list(out.shape)}"
        )
    parts = list(_dense(data).view(size, *out.shape).unbind(0))
    _members("reduce_scatter_tensor", group).reduce_scatter(out, parts, op)


def broadcast(tensor: Tensor, src: int = 0, group: Ranks = None) -> None:
    """Replace the tensor on every rank with the one of rank `src`."""
    with _written("broadcast", tensor) as whole:
        _members("broadcast", group).broadcast(whole, _place("broadcast", src, group))


def reduce(tensor: Tensor, dst: int = 0, op: str = "sum", group: Ranks = None) -> None:
    """Replace the tensor on rank `dst` with the sum (or max, min) over all ranks."""
    place, members = _place("reduce", dst, group), _members("reduce", group)
    with _written("reduce", tensor) as whole:
        parts = _only(place, whole, members)
        members.reduce_scatter(parts[members.index], parts, op)


def gather(tensor: Tensor, gather_list: Sequence[Tensor] | None = None, dst: int = 0, group: Ranks = None) -> None:
    """Fill the list of rank `dst` with every rank's tensor."""
    data, place, members = _dense(_data("gather", tensor)), _place("gather", dst, group), _members("gather", group)
    parts = _only(place, data, members)
    outs = _list("gather", gather_list, group, True) if members.index == place else [data.new_empty(0)] * members.size
    members.all_to_all(outs, parts)


def scatter(tensor: Tensor, scatter_list: Sequence[Tensor] | None = None, src: int = 0, group: Ranks = None) -> None:
    """Replace the tensor on every rank with the one at its index in the list of rank `src`."""
    data, place, members = _data("scatter", tensor, True), _place("scatter", src, group), _members("scatter", group)
    parts = [data.new_empty(0)] * members.size
    if members.index == place:
        parts = [_dense(t) for t in _list("scatter", scatter_list, group)]
    members.all_to_all(_only(place, data, members), parts)


def _only(place: int, data: torch.Tensor, members: Group) -> list[torch.Tensor]:
    """This tensor for one member and nothing for the others: so collectives with a root compare who that is."""
    return [data if i == place else data.new_empty(0) for i in range(members.size)]


def all_to_all(output_tensor_list: Sequence[Tensor], input_tensor_list: Sequence[Tensor], group: Ranks = None) -> None:
    """Send the i-th tensor of the input to rank i; the i-th of the output comes from rank i."""
    outs = _list("all_to_all", output_tensor_list, group, True)
    parts = [_dense(p) for p in _list("all_to_all", input_tensor_list, group)]
    _members("all_to_all", group).all_to_all(outs, parts)


def send(input: Tensor, dst: int, send_meta: bool = True) -> None:
    """Send a tensor to another rank, which must `recv`. Its shape and dtype go before it, with `send_meta` or without:
    a receiver needn't know which was chosen, and one that expects another tensor is told."""
    data, transport = _dense(_data("send", input)), transport_of()
    transport.note(f"comm.send to rank {_rank('send', dst)}")
    transport.send(header.encoded(data.shape, input.dtype), dst)
    transport.send(data, dst)


def recv(src: int, shape: Any = None, dtype: Any = None, device: Any = None, *, out: Tensor | None = None) -> Tensor:
    """The tensor that rank `src` sends, in `out` if given. `shape` and `dtype` are checked."""
    transport = transport_of()
    transport.note(f"comm.recv from rank {_rank('recv', src)}")
    if (shape is None) != (dtype is None):
        raise ArgumentError(f"comm.recv(): give both shape and dtype, or neither; got shape={shape}, dtype={dtype}")
    known = {"the call expects": None if shape is None else (tuple(shape), dtypes.of(dtype))}
    if out is not None:
        known["out is"] = tuple(_data("recv", out, True).shape), out.dtype
    row = torch.empty(header.LENGTH, dtype=torch.int64)
    transport.recv(row, src)
    sent = header.read(row, src)
    wrong = [f"{what} {form[1]}{list(form[0])}" for what, form in known.items() if form not in (None, sent)]
    if out is not None and not wrong:
        with _written("recv", out) as whole:
            transport.recv(whole, src)
        return out
    data = torch.empty(sent[0], dtype=sent[1].torch, device=None if device is None else Device(device).torch)
    transport.recv(data, src)
    if wrong:  # after the message, so that the next one can be received
        raise ArgumentError(f"comm.recv(): rank {src} sent {sent[1]}{list(sent[0])}, and {' and '.join(wrong)}")
    return of_torch(data)


def barrier(group: Ranks = None) -> None:
    """Wait until every rank has called this."""
    _members("barrier", group).barrier()


def exchange(sends: Sequence[tuple[int, Tensor]], receives: Sequence[tuple[int, Tensor]]) -> None:
    """Several messages at once: (rank, tensor) pairs to send, and (rank, tensor) pairs to receive into. A number may be
    received into a tensor of one."""
    out = [(_rank("exchange", r), _dense(torch.atleast_1d(_data("exchange", t)))) for r, t in sends]
    into = [(_rank("exchange", r), torch.atleast_1d(_data("exchange", t, True))) for r, t in receives]
    dense = [(r, torch.empty_like(t, memory_format=torch.contiguous_format)) for r, t in into]
    transport_of().note("comm.exchange")
    transport_of().exchange(out, dense)
    for (_, t), (_, got) in zip(into, dense, strict=True):
        t.copy_(got)
