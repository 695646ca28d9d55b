"""`flow.save` and `flow.load`: whole values in one file, whatever the layouts were and will be."""

from __future__ import annotations

import json
from typing import Any

import torch

from weft.checkpoint import file
from weft.checkpoint.structure import described, rebuilt
from weft.core import dtype as dtypes
from weft.core import sbp as sbps
from weft.core.device import Device
from weft.core.errors import ArgumentError, CheckpointError, PlacementError
from weft.core.placement import Placement
from weft.core.rank import current
from weft.core.sbp import broadcast
from weft.core.spec import Spec
from weft.ops import OPS
from weft.tensor.tensor import Tensor, of_shard, of_torch
from weft.transport import transport_of


def save(obj: Any, path: Any, global_dst_rank: int | None = None) -> None:
    """Write tensors, numbers and strings, in nested dicts, lists and tuples. The file appears at once, whole; in a
    folder, if the path is one.

    Local tensors: the calling rank writes. With a global tensor inside, every rank of the world calls, and one writes:
    `global_dst_rank`, or the first rank of the first tensor's placement.
    """
    form, tensors = described(obj)
    placed = [t for t in tensors.values() if t.is_global]
    if not placed:
        if global_dst_rank is None or current().index == global_dst_rank:
            file.write(path, form, {name: t._local("save") for name, t in tensors.items()})
        return
    rank = current()
    writer = placed[0].placement.members[0] if global_dst_rank is None else global_dst_rank
    if not 0 <= writer < rank.world_size:
        raise PlacementError(f"global_dst_rank {writer} is outside this world of {rank.world_size} ranks")
    values = {name: _at(t, writer) for name, t in tensors.items()}
    failure: BaseException | None = None
    if rank.index == writer:
        try:
            file.write(path, form, values)
        except Exception as error:
            failure = error
    if rank.world_size > 1:
        failed = torch.tensor([int(failure is not None)])
        transport_of().group(tuple(range(rank.world_size))).broadcast(failed, writer)
        if failed.item() and failure is None:
            raise CheckpointError(f"rank {writer} could not write {path}; its own error says why")
    if failure is not None:
        raise failure


def _at(t: Tensor, writer: int) -> torch.Tensor:
    """The whole value, on the writing rank; elsewhere whatever."""
    if t.is_global:
        t = OPS["to_global"](t.detach(), Placement(t.placement.type, [writer]), (broadcast,))
    return t._local("save")


def load(
    path: Any, map_location: Any = None, *, placement: Placement | None = None, sbp: Any = None,
    global_src_rank: int | None = None, weights_only: bool | None = None, mmap: bool | None = None,
) -> Any:  # fmt: skip
    """What `save` wrote; from a safetensors file of others, a dict of tensors.

    Tensors come back local, on the CPU or where `map_location` says; or global, with `placement` (or a placement as
    map_location) and `sbp`, by default broadcast. Then every rank reads the file, unless `global_src_rank` reads for
    all; without a placement, for its own. `weights_only` and `mmap` are torch's: a file holds data and no code either
    way. So is a map_location that maps devices or storages: what is read lies on the CPU.
    """
    if callable(map_location) or isinstance(map_location, dict):
        map_location = None
    if isinstance(map_location, Placement):
        placement, map_location = map_location, None
    if placement is None and global_src_rank is not None:
        placement = Placement("cpu", [global_src_rank])
    if placement is None:
        if sbp is not None:
            raise ArgumentError("load(): sbp goes with a placement; give placement=... too")
        form, tensors = file.read(path)
        device = None if map_location is None else Device(map_location).check().torch
        return _built(form, {n: of_torch(t if device is None else t.to(device)) for n, t in tensors.items()})
    rank = current()
    placement.check(rank.world_size)
    flat = (broadcast,) * placement.ndim
    wanted = flat if sbp is None else sbps.nd(sbp, placement.ndim)
    if global_src_rank is None:
        form, tensors = file.read(path)
        return _built(form, {n: _spread(t, placement, flat, wanted) for n, t in tensors.items()})
    form, forms, tensors = _read_by(path, global_src_rank)
    source = Placement(placement.type, [global_src_rank])
    made = {}
    for name, (shape, dtype) in forms.items():
        spec = Spec(tuple(shape), dtypes.named(dtype), source, (broadcast,))
        data = tensors.get(name)
        part = torch.empty(spec.local_shape(rank.index), dtype=spec.dtype.torch) if data is None else data
        made[name] = OPS["to_global"](of_shard(part, spec), placement, _fitting(wanted, len(shape)))
    return _built(form, made)


def _fitting(nd_sbp: Any, ndim: int) -> Any:
    """What is too small to be split stays whole."""
    return tuple(broadcast if s.dim >= ndim else s for s in nd_sbp)


def _spread(t: torch.Tensor, placement: Placement, flat: Any, nd_sbp: Any) -> Tensor:
    spec = Spec(tuple(t.shape), dtypes.of_torch(t.dtype), placement, flat)
    member = current().index in placement
    mine = t if member else torch.empty(spec.local_shape(current().index), dtype=t.dtype)
    return OPS["to_global"](of_shard(mine, spec), placement, _fitting(nd_sbp, t.ndim))


def _read_by(path: Any, source: int) -> tuple[Any, dict[str, Any], dict[str, torch.Tensor]]:
    """One rank reads, and tells the others what there is."""
    rank = current()
    group = transport_of().group(tuple(range(rank.world_size)))
    text, tensors, failure = b"", {}, None
    if rank.index == source:
        try:
            form, tensors = file.read(path)
            forms = {n: (tuple(t.shape), dtypes.of_torch(t.dtype).name) for n, t in tensors.items()}
            text = json.dumps([form, forms]).encode()
        except Exception as error:
            failure = error
    size = torch.tensor([len(text)])
    group.broadcast(size, source)
    if failure is not None:
        raise failure
    if not size.item():
        raise CheckpointError(f"rank {source} could not read {path}; its own error says why")
    data = torch.frombuffer(bytearray(text), dtype=torch.uint8) if text else torch.empty(int(size), dtype=torch.uint8)
    group.broadcast(data, source)
    form, forms = json.loads(data.numpy().tobytes())
    return form, forms, tensors


def _built(form: Any, tensors: dict[str, Tensor]) -> Any:
    if form is None:
        return tensors

    def find(name: str) -> Tensor:
        if name not in tensors:
            raise CheckpointError(f"the file's structure names a tensor {name!r} that the file doesn't hold")
        return tensors[name]

    return rebuilt(form, find)
