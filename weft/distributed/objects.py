"""Collectives and messages of plain Python objects, as MessagePack: nothing that is received can run code."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
import torch

from weft.core import dtype as dtypes
from weft.core.dtype import DType
from weft.core.errors import ArgumentError, RankError, WeftError
from weft.core.reading import MALFORMED
from weft.distributed.collectives import all_gather, broadcast, gather
from weft.distributed.groups import get_rank, get_world_size, root
from weft.distributed.messages import recv, send
from weft.tensor.tensor import Tensor, of_torch

# MessagePack extensions for other types: a type code, and the parts.
TUPLE, SET, FROZENSET, ITEMS, COMPLEX, ARRAY, TENSOR, DTYPE, FORM = range(1, 10)


def _plain(value: Any) -> Any:
    """The value in MessagePack's types and extensions, restored exactly by the receiver."""
    if isinstance(value, list):
        return [_plain(v) for v in value]
    if isinstance(value, dict):
        if all(type(k) is str for k in value):
            return {k: _plain(v) for k, v in value.items()}
        return _extension(ITEMS, [[_plain(k), _plain(v)] for k, v in value.items()])
    for kind, code in ((tuple, TUPLE), (set, SET), (frozenset, FROZENSET)):
        if isinstance(value, kind):
            return _extension(code, [_plain(v) for v in value])
    if type(value) is complex:
        return _extension(COMPLEX, [value.real, value.imag])
    if isinstance(value, (np.ndarray, np.generic)) and value.dtype.kind in "biufcSUmM":
        alone = isinstance(value, np.generic)
        return _extension(ARRAY, [value.dtype.str, list(value.shape), value.tobytes(), alone])
    if isinstance(value, Tensor) and value.is_local and value.is_meta:
        return _extension(FORM, [value.dtype.name, list(value.shape), list(value.stride())])
    if isinstance(value, Tensor):
        data = value.detach().to_torch().contiguous().cpu()
        return _extension(
            TENSOR, [value.dtype.name, list(data.shape), data.view(-1).view(torch.uint8).numpy().tobytes()]
        )
    if isinstance(value, DType):
        return _extension(DTYPE, value.name)
    return value


def _extension(code: int, parts: Any) -> msgspec.msgpack.Ext:
    return msgspec.msgpack.Ext(code, msgspec.msgpack.encode(parts))


def _read(raw: Any) -> Any:
    """Decode the bytes of `_plain`; only the canonical encoding is accepted."""
    tree = msgspec.msgpack.decode(raw)
    if msgspec.msgpack.encode(tree) != bytes(raw):
        raise ValueError("it repeats a key, or isn't written as Weft writes it")
    return _whole(tree)


def _whole(tree: Any) -> Any:
    if isinstance(tree, list):
        return [_whole(v) for v in tree]
    if isinstance(tree, dict):
        return {k: _whole(v) for k, v in tree.items()}
    return _made(tree.code, _read(tree.data)) if isinstance(tree, msgspec.msgpack.Ext) else tree


def _made(code: int, parts: Any) -> Any:
    """The value of an extension."""
    if code == ARRAY:
        form, shape, data, alone = parts
        dtype = np.dtype(form) if re.fullmatch(r"[<>|=][biufcSUmM]\d+(\[\d*\w+\])?", form) else None
        if dtype is None or not _fits(shape, dtype.itemsize, data):
            raise ValueError(f"an array of {form!r} and shape {shape} in {len(data)} bytes")
        array = np.frombuffer(bytearray(data), dtype).reshape(shape) if len(data) else np.empty(shape, dtype)
        return array[()] if alone else array
    if code == TENSOR:
        name, shape, data = parts
        kind = dtypes.named(name)
        if not _fits(shape, kind.itemsize, data):
            raise ValueError(f"a tensor of {name} and shape {shape} in {len(data)} bytes")
        made = torch.frombuffer(bytearray(data), dtype=kind.torch) if data else torch.empty(0, dtype=kind.torch)
        return of_torch(made.view(shape))
    if code == FORM:
        name, shape, strides = parts
        return of_torch(torch.empty_strided(shape, strides, dtype=dtypes.named(name).torch, device="meta"))
    if code == ITEMS:
        found = {k: v for k, v in parts}
        if len(found) < len(parts):
            raise ValueError("a dict repeats a key")
        return found
    if code in (TUPLE, SET, FROZENSET) and not isinstance(parts, list):
        raise ValueError(f"expected a list of elements, not {type(parts).__name__}")
    return {TUPLE: tuple, SET: set, FROZENSET: frozenset, COMPLEX: lambda c: complex(*c), DTYPE: dtypes.named}[code](
        parts
    )


def _fits(shape: Any, itemsize: int, data: Any) -> bool:
    """Whether the bytes have the size of the shape."""
    count = itemsize
    for n in shape:
        if type(n) is not int or not 0 <= n < 1 << 48:
            return False
        count *= n
    return isinstance(data, bytes) and len(data) == count


def _encoded(what: str, value: Any) -> torch.Tensor:
    try:
        raw = msgspec.msgpack.encode(_plain(value))
    except MALFORMED as error:
        raise ArgumentError(
            f"{what}(): objects travel as plain data (None, numbers, str, bytes, arrays, local tensors, and lists, "
            f"tuples, sets and dicts of them), since unpickling could run code of another process; {error}"
        ) from None
    return torch.frombuffer(bytearray(raw), dtype=torch.uint8)


def _decoded(data: torch.Tensor, length: int, what: str = "an object") -> Any:
    """The object from its bytes, or an error if they are malformed. Nothing in them can run code."""
    try:
        return _read(data[:length].numpy().tobytes())
    except (*MALFORMED, RuntimeError, msgspec.MsgspecError, WeftError) as error:
        raise RankError(f"{what}: received a malformed object: {type(error).__name__}: {error}") from None


def _room(what: str, length: int, filled: int | None = None) -> torch.Tensor:
    """A buffer for the number of bytes that another rank announces."""
    try:
        return (
            torch.empty(length, dtype=torch.uint8)
            if filled is None
            else torch.full((length,), filled, dtype=torch.uint8)
        )
    except RuntimeError:
        raise RankError(f"{what}(): another rank announces {length} bytes, for which there is no memory") from None


def _list(what: str, data: torch.Tensor, src: int, wanted: int) -> list[Any]:
    found = _decoded(data, len(data), what)
    if not isinstance(found, list) or len(found) != wanted:
        count = len(found) if isinstance(found, list) else "no list of"
        raise ArgumentError(f"{what}(): rank {src} sends {count} objects, not {wanted}")
    return found


def _lengths(mine: int, group: Any) -> list[int]:
    given = of_torch(torch.tensor([mine]))
    found = [of_torch(torch.zeros(1, dtype=torch.int64)) for _ in range(get_world_size(group))]
    all_gather(found, given, group)
    return [int(t.item()) for t in found]


def _gathered(
    what: str, obj: Any, group: Any, gather: Callable[[list[Tensor], Tensor], object]
) -> Callable[[], list[Any]]:
    """Let `gather` fill a list with every rank's object, in bytes; returns what reads them."""
    raw = _encoded(what, obj)
    lengths = _lengths(len(raw), group)
    padded = _room(what, max(lengths), 0)
    padded[: len(raw)] = raw
    found = [of_torch(torch.empty_like(padded)) for _ in lengths]
    gather(found, of_torch(padded))
    return lambda: [_decoded(t.to_torch(), n, what) for t, n in zip(found, lengths, strict=True)]


def all_gather_object(object_list: list[Any], obj: Any, group: Any = None) -> None:
    """Fill the list with every rank's object."""
    size = get_world_size(group)
    if len(object_list) != size:
        raise ArgumentError(
            f"all_gather_object(): the list has a place for each of {size} ranks; got {len(object_list)}"
        )
    object_list[:] = _gathered("all_gather_object", obj, group, lambda found, mine: all_gather(found, mine, group))()


def gather_object(
    obj: Any, object_gather_list: list[Any] | None = None, dst: int | None = None, group: Any = None,
    group_dst: int | None = None,
) -> None:  # fmt: skip
    """Fill the list of rank `dst` with every rank's object."""
    dst = root("gather_object", dst, group_dst, group, 0)
    read = _gathered("gather_object", obj, group, lambda found, mine: gather(mine, found, dst, group))
    if get_rank() == dst:
        size = get_world_size(group)
        if object_gather_list is None or len(object_gather_list) != size:
            raise ArgumentError(f"gather_object(): rank {dst} gives a list with a place for each of {size} ranks")
        object_gather_list[:] = read()


def broadcast_object_list(
    object_list: list[Any], src: int | None = None, group: Any = None, device: Any = None, group_src: int | None = None
) -> None:
    """Replace the objects of the list on every rank with those of rank `src`."""
    src = root("broadcast_object_list", src, group_src, group, 0)
    mine = get_rank() == src
    raw = _encoded("broadcast_object_list", list(object_list)) if mine else torch.zeros(0, dtype=torch.uint8)
    length = of_torch(torch.tensor([len(raw)]))
    broadcast(length, src, group)
    data = of_torch(raw if mine else _room("broadcast_object_list", int(length.item())))
    broadcast(data, src, group)
    found = _list("broadcast_object_list", data.to_torch(), src, len(object_list))
    object_list[:] = object_list if mine else found


def scatter_object_list(
    scatter_object_output_list: list[Any], scatter_object_input_list: list[Any] | None = None, src: int | None = None,
    group: Any = None, group_src: int | None = None,
) -> None:  # fmt: skip
    """Set the first element of the output to the object at this rank's index in the list of rank `src`."""
    src = root("scatter_object_list", src, group_src, group, 0)
    size = get_world_size(group)
    whole: list[Any] = [None] * size
    if get_rank() == src:
        if scatter_object_input_list is None or len(scatter_object_input_list) != size:
            raise ArgumentError(f"scatter_object_list(): rank {src} gives one object for each of {size} ranks")
        whole = list(scatter_object_input_list)
    broadcast_object_list(whole, src, group)
    scatter_object_output_list[0] = whole[get_rank(group)]


def send_object_list(
    object_list: list[Any], dst: int | None = None, group: Any = None, device: Any = None,
    group_dst: int | None = None, use_batch: bool = False,
) -> None:  # fmt: skip
    """Send the objects of the list to another rank. `use_batch` has no effect: it is about NCCL's connections."""
    to = root("send_object_list", dst, group_dst, group)
    raw = _encoded("send_object_list", list(object_list))
    send(of_torch(torch.tensor([len(raw)])), to, group)
    send(of_torch(raw), to, group)


def recv_object_list(
    object_list: list[Any], src: int | None = None, group: Any = None, device: Any = None,
    group_src: int | None = None, use_batch: bool = False,
) -> int:  # fmt: skip
    """Replace the objects of the list with those that another rank sends; returns the sender's rank."""
    of = root("recv_object_list", src, group_src, group)
    length = of_torch(torch.zeros(1, dtype=torch.int64))
    recv(length, of, group)
    data = of_torch(_room("recv_object_list", int(length.item())))
    recv(data, of, group)
    found = _list("recv_object_list", data.to_torch(), of, len(object_list))
    object_list[:] = found
    return of
