"""`flow.comm`: collectives and messages on local tensors, spelled as in torch.distributed.

Every rank of the world takes part, in the same order of calls. Messages go from one rank to another.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from weft.core import dtype as dtypes
from weft.core.device import Device
from weft.core.dispatch import hooks
from weft.core.errors import ArgumentError, RankError, SbpError, ShapeError
from weft.core.rank import current
from weft.tensor.tensor import Tensor, of_torch
from weft.transport import Group, transport_of

MOST_DIMS = 16


def _everyone(what: str) -> Group:
    transport = transport_of()
    transport.note(f"comm.{what}")
    return transport.group(tuple(range(transport.world_size)))


def _data(what: str, t: Any, write: bool = False) -> torch.Tensor:
    """The memory of a local tensor, there to be read or written."""
    if not isinstance(t, Tensor):
        raise ArgumentError(f"comm.{what}(): takes tensors, not {type(t).__name__}")
    if t.spec is not None:
        raise SbpError(f"comm.{what}() works on local tensors; move a global one with x.to_global(sbp=...)")
    data = t._local(f"comm.{what}()")
    if write and t.blob.access is not None:
        hooks.wait_write(t.blob)
    return data


def _rank(what: str, rank: int) -> int:
    size = current().world_size
    if not 0 <= rank < size:
        raise RankError(f"comm.{what}(): rank {rank} is outside this world of ranks 0 to {size - 1}")
    return rank


def _list(what: str, tensors: Any, write: bool = False) -> list[torch.Tensor]:
    size = current().world_size
    if not isinstance(tensors, Sequence) or len(tensors) != size:
        count = len(tensors) if isinstance(tensors, Sequence) else type(tensors).__name__
        raise ArgumentError(f"comm.{what}(): takes one tensor per rank, {size} of them; got {count}")
    return [_data(what, t, write) for t in tensors]


def _dense(data: torch.Tensor) -> torch.Tensor:
    return data if data.is_contiguous() else data.contiguous()


def _same(what: str, left: torch.Tensor, right: torch.Tensor) -> None:
    if left.shape != right.shape or left.dtype != right.dtype:
        raise ShapeError(
            f"comm.{what}(): {left.dtype}{list(left.shape)} into {right.dtype}{list(right.shape)}: they must agree"
        )


def all_reduce(tensor: Tensor, op: str = "sum") -> Tensor:
    """Replace the tensor on every rank with the sum (or max, min) of all ranks' ones."""
    data = _data("all_reduce", tensor, True)
    whole = _dense(data)
    _everyone("all_reduce").all_reduce(whole, op)
    if whole is not data:
        data.copy_(whole)
    return tensor


def all_gather(tensor_list: Sequence[Tensor], tensor: Tensor) -> None:
    """Fill the list with every rank's tensor, in the order of the ranks."""
    outs = _list("all_gather", tensor_list, True)
    _everyone("all_gather").all_gather(outs, _dense(_data("all_gather", tensor)))


def all_gather_into_tensor(output_tensor: Tensor, input_tensor: Tensor) -> None:
    """Fill the output with every rank's tensor, one after another along the first dimension."""
    out, data = _data("all_gather_into_tensor", output_tensor, True), _data("all_gather_into_tensor", input_tensor)
    size = current().world_size
    if out.numel() != data.numel() * size:
        raise ShapeError(
            f"comm.all_gather_into_tensor(): {size} ranks' {list(data.shape)} make {data.numel() * size} elements, "
            f"but the output has shape {list(out.shape)}"
        )
    parts = out.view(size, *data.shape)
    _everyone("all_gather_into_tensor").all_gather(list(parts.unbind(0)), _dense(data))


def reduce_scatter(output: Tensor, input_list: Sequence[Tensor], op: str = "sum") -> None:
    """The output becomes the sum over all ranks of their tensor in this rank's place of the list."""
    parts = [_dense(p) for p in _list("reduce_scatter", input_list)]
    out = _data("reduce_scatter", output, True)
    _same("reduce_scatter", parts[current().index], out)
    _everyone("reduce_scatter").reduce_scatter(out, parts, op)


def reduce_scatter_tensor(output_tensor: Tensor, input_tensor: Tensor, op: str = "sum") -> None:
    """The output becomes this rank's part, along the first dimension, of the sum of all ranks' tensors."""
    out, data = _data("reduce_scatter_tensor", output_tensor, True), _data("reduce_scatter_tensor", input_tensor)
    size = current().world_size
    if data.numel() != out.numel() * size:
        raise ShapeError(
            f"comm.reduce_scatter_tensor(): a {size}th of {list(data.shape)} goes to each rank, but the output has "
            f"shape {list(out.shape)}"
        )
    _everyone("reduce_scatter_tensor").reduce_scatter(out, list(_dense(data).view(size, *out.shape).unbind(0)), op)


def broadcast(tensor: Tensor, src: int = 0) -> None:
    """Replace the tensor on every rank with that of one."""
    data = _data("broadcast", tensor, True)
    whole = _dense(data)
    _everyone("broadcast").broadcast(whole, _rank("broadcast", src))
    if whole is not data:
        data.copy_(whole)


def reduce(tensor: Tensor, dst: int = 0, op: str = "sum") -> None:
    """Replace the tensor on one rank with the sum (or max, min) of all ranks' ones."""
    data = _data("reduce", tensor, True)
    whole = data.clone(memory_format=torch.contiguous_format)
    _everyone("reduce").all_reduce(whole, op)
    if current().index == _rank("reduce", dst):
        data.copy_(whole)


def gather(tensor: Tensor, gather_list: Sequence[Tensor] | None = None, dst: int = 0) -> None:
    """Fill the list of one rank with every rank's tensor."""
    data, here = _dense(_data("gather", tensor)), current().index
    receives = []
    if here == _rank("gather", dst):
        receives = list(enumerate(_list("gather", gather_list, True)))
    transport_of().note("comm.gather")
    transport_of().exchange([(dst, data)], receives)


def scatter(tensor: Tensor, scatter_list: Sequence[Tensor] | None = None, src: int = 0) -> None:
    """Replace the tensor on every rank with the one in its place of one rank's list."""
    data, here = _data("scatter", tensor, True), current().index
    sends = []
    if here == _rank("scatter", src):
        sends = [(r, _dense(t)) for r, t in enumerate(_list("scatter", scatter_list))]
    transport_of().note("comm.scatter")
    transport_of().exchange(sends, [(src, data)])


def all_to_all(output_tensor_list: Sequence[Tensor], input_tensor_list: Sequence[Tensor]) -> None:
    """Send the i-th tensor of the input to rank i; the i-th of the output comes from rank i."""
    outs = _list("all_to_all", output_tensor_list, True)
    parts = [_dense(p) for p in _list("all_to_all", input_tensor_list)]
    _everyone("all_to_all").all_to_all(outs, parts)


def send(input: Tensor, dst: int, send_meta: bool = True) -> None:
    """Send a tensor to another rank, which must `recv`; with its shape and dtype, unless the receiver knows them."""
    data, transport = _dense(_data("send", input)), transport_of()
    transport.note(f"comm.send to rank {_rank('send', dst)}")
    if send_meta:
        form = torch.zeros(MOST_DIMS + 2, dtype=torch.int64)
        form[0], form[1] = data.dim(), dtypes.every.index(input.dtype)
        form[2 : 2 + data.dim()] = torch.tensor(tuple(data.shape), dtype=torch.int64)
        transport.send(form, dst)
    transport.send(data, dst)


def recv(src: int, shape: Any = None, dtype: Any = None, device: Any = None, *, out: Tensor | None = None) -> Tensor:
    """The tensor that another rank sends. Give shape and dtype, or `out`, where it sends without them."""
    transport = transport_of()
    transport.note(f"comm.recv from rank {_rank('recv', src)}")
    if out is not None:
        data = _data("recv", out, True)
        dense = _dense(data)
        transport.recv(dense, src)
        if dense is not data:
            data.copy_(dense)
        return out
    if (shape is None) != (dtype is None):
        raise ArgumentError(f"comm.recv(): give both shape and dtype, or neither; got shape={shape}, dtype={dtype}")
    if shape is None:
        form = torch.empty(MOST_DIMS + 2, dtype=torch.int64)
        transport.recv(form, src)
        shape, kind = form[2 : 2 + int(form[0])].tolist(), dtypes.every[int(form[1])]
    else:
        kind = dtypes.of(dtype)
    data = torch.empty(tuple(shape), dtype=kind.torch, device=None if device is None else Device(device).torch)
    transport.recv(data, src)
    return of_torch(data)


def barrier() -> None:
    """Wait until every rank is here."""
    _everyone("barrier").barrier()
