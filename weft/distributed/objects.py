"""Plain Python objects from rank to rank, as MessagePack: nothing that is received can run code."""

from __future__ import annotations

from typing import Any

import msgspec
import torch

from weft.core.errors import ArgumentError
from weft.distributed.collectives import all_gather, broadcast
from weft.distributed.groups import get_rank, get_world_size
from weft.tensor.tensor import of_torch


def _encoded(what: str, value: Any) -> torch.Tensor:
    try:
        raw = msgspec.msgpack.encode(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise ArgumentError(
            f"{what}(): objects travel as plain data (None, bool, int, float, str, bytes, lists, tuples and dicts of "
            f"them), since unpickling what another process sends would run its code; {error}. Send tensors as tensors"
        ) from None
    return torch.frombuffer(bytearray(raw), dtype=torch.uint8)


def _decoded(data: torch.Tensor, length: int) -> Any:
    return msgspec.msgpack.decode(data[:length].numpy().tobytes())


def _lengths(mine: int, group: Any) -> list[int]:
    given = of_torch(torch.tensor([mine]))
    found = [of_torch(torch.zeros(1, dtype=torch.int64)) for _ in range(get_world_size(group))]
    all_gather(found, given, group)
    return [int(t.item()) for t in found]


def all_gather_object(object_list: list[Any], obj: Any, group: Any = None) -> None:
    """Fill the list with every rank's object. Tuples arrive as lists."""
    size = get_world_size(group)
    if len(object_list) != size:
        raise ArgumentError(
            f"all_gather_object(): the list has a place for each of {size} ranks; got {len(object_list)}"
        )
    raw = _encoded("all_gather_object", obj)
    lengths = _lengths(len(raw), group)
    padded = torch.zeros(max(lengths), dtype=torch.uint8)
    padded[: len(raw)] = raw
    found = [of_torch(torch.empty_like(padded)) for _ in range(size)]
    all_gather(found, of_torch(padded), group)
    object_list[:] = [_decoded(t.to_torch(), n) for t, n in zip(found, lengths, strict=True)]


def gather_object(obj: Any, object_gather_list: list[Any] | None = None, dst: int = 0, group: Any = None) -> None:
    """Fill the list of one rank with every rank's object."""
    found: list[Any] = [None] * get_world_size(group)
    all_gather_object(found, obj, group)
    if get_rank() == dst:
        if object_gather_list is None or len(object_gather_list) != len(found):
            raise ArgumentError(f"gather_object(): rank {dst} gives a list with a place for each of {len(found)} ranks")
        object_gather_list[:] = found


def broadcast_object_list(object_list: list[Any], src: int = 0, group: Any = None, device: Any = None) -> None:
    """Replace the objects of the list on every rank with those of one."""
    mine = get_rank() == src
    raw = _encoded("broadcast_object_list", list(object_list)) if mine else torch.zeros(0, dtype=torch.uint8)
    length = of_torch(torch.tensor([len(raw)]))
    broadcast(length, src, group)
    data = of_torch(raw if mine else torch.empty(int(length.item()), dtype=torch.uint8))
    broadcast(data, src, group)
    found = _decoded(data.to_torch(), int(length.item()))
    if len(found) != len(object_list):
        raise ArgumentError(f"broadcast_object_list(): rank {src} sends {len(found)} objects, not {len(object_list)}")
    object_list[:] = object_list if mine else found


def scatter_object_list(
    scatter_object_output_list: list[Any], scatter_object_input_list: list[Any] | None = None, src: int = 0,
    group: Any = None,
) -> None:  # fmt: skip
    """The first element of the output becomes the object in this rank's place of one rank's list."""
    size = get_world_size(group)
    whole: list[Any] = [None] * size
    if get_rank() == src:
        if scatter_object_input_list is None or len(scatter_object_input_list) != size:
            raise ArgumentError(f"scatter_object_list(): rank {src} gives one object for each of {size} ranks")
        whole = list(scatter_object_input_list)
    broadcast_object_list(whole, src, group)
    scatter_object_output_list[0] = whole[get_rank(group)]
