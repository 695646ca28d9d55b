"""`flow.save` and `flow.load`: whole values in one file, independent of layouts."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping
from fnmatch import fnmatchcase
from types import ModuleType
from typing import Any
from zlib import crc32

import torch

from weft.checkpoint import file, place
from weft.checkpoint.file import Stored
from weft.checkpoint.folder import save_folder, together
from weft.checkpoint.foreign import parts, unpickled
from weft.checkpoint.structure import described, rebuilt
from weft.core import dtype as dtypes
from weft.core import fingerprints
from weft.core import sbp as sbps
from weft.core.device import Device
from weft.core.errors import ArgumentError, CheckpointError, PlacementError, SbpError
from weft.core.idle import idle
from weft.core.placement import Placement
from weft.core.rank import current
from weft.core.reading import shortened
from weft.core.sbp import broadcast
from weft.core.spec import Spec
from weft.ops import ops
from weft.tensor.data import local_data
from weft.tensor.parameter import Parameter
from weft.tensor.tensor import Tensor, of_shard, of_torch
from weft.transport import transport_of
from weft.vm.instruction import Instruction
from weft.vm.machine import vm_of


def save(
    obj: Any, path: Any, global_dst_rank: int | ModuleType | None = None, pickle_protocol: int = 2,
    _use_new_zipfile_serialization: bool = True, *, wait: bool = True, max_shard_size: int | str | None = None,
) -> Instruction | None:  # fmt: skip
    """Write tensors, numbers and strings, in nested dicts, lists, tuples and sets. The file appears atomically; inside
    the folder, if the path is one.

    Local tensors: the calling rank writes. With a global tensor inside, every rank of the world must call this, and
    one writes: `global_dst_rank`, or the first rank of the first tensor's placement.

    With `wait=False`, for local tensors, the file is written in the background: overwriting one of its tensors waits,
    and the returned instruction has a `wait()`, which raises the write's errors.

    With `max_shard_size`, such as "5GB", a state dict is written in Hugging Face's format: a folder of safetensors
    shards up to this size, with their index. Of global tensors, each rank writes the slices that it holds.

    torch.save's options are taken, its pickle_module in its place: nothing is pickled.
    """
    if isinstance(global_dst_rank, ModuleType):
        global_dst_rank = None
    if max_shard_size is not None:
        if not wait:
            raise ArgumentError(
                "save(wait=False) writes one file: with max_shard_size, all ranks write and wait together"
            )
        return save_folder(obj, path, max_shard_size, global_dst_rank)
    form, tensors = described(obj)
    placed = [t for t in tensors.values() if t.is_global]
    if not placed:
        if global_dst_rank is None or current().index == global_dst_rank:
            return _written(path, form, tensors, wait)
        return None
    if not wait:
        raise ArgumentError("save(wait=False) is for local tensors: of global ones, all ranks write and wait together")
    rank = current()
    writer = placed[0].placement.members[0] if global_dst_rank is None else global_dst_rank
    if not 0 <= writer < rank.world_size:
        raise PlacementError(f"global_dst_rank {writer} is outside this world of {rank.world_size} ranks")
    values = {name: _at(t, writer) for name, t in tensors.items()}
    together(path, rank.world_size == 1, writer, lambda: file.write(path, form, values))
    return None


def _written(path: Any, form: Any, tensors: Mapping[str, Tensor], wait: bool) -> Instruction | None:
    """Write local tensors, now, or by an instruction that reads them, on the stream for files."""

    def write() -> None:
        file.write(path, form, {name: blob.data for name, blob in blobs.items() if blob.data is not None})

    for t in tensors.values():
        local_data(t, "save")  # or why it has no data
    blobs = {name: t.blob for name, t in tensors.items()}
    path = path if wait or hasattr(path, "write") else os.path.abspath(place.named(path))  # wherever the program goes
    if wait:  # needs no virtual machine: a process that only saves has no rank yet
        return write()
    return vm_of().submit("file", "file", write, const=list(blobs.values()), name="save")


def _at(t: Tensor, writer: int) -> torch.Tensor:
    """The whole value, on the writing rank; undefined elsewhere."""
    if t.is_global:
        t = ops.to_global(t.detach(), Placement(t.placement.type, [writer]), (broadcast,))
    return local_data(t, "save")


def load(
    path: Any, map_location: Any = None, pickle_module: Any = None, *, placement: Placement | None = None,
    sbp: Any = None, global_src_rank: int | None = None, weights_only: bool | None = None, mmap: bool | None = None,
    encoding: str = "utf-8", support_pytorch_format: bool = True,
) -> Any:  # fmt: skip
    """Load what `save` or `torch.save` wrote, reading data and running no code; from safetensors, a file or a model's
    folder of several, a dict of tensors.

    Tensors come back local, on the CPU or on `map_location`; or global, with `placement` (or a placement as
    map_location) and `sbp`, by default broadcast, or one for each pattern of names.
    Then every rank reads its part of the file, unless `global_src_rank` reads for all; without a placement, for its
    own. Data is checked against its checksums. Tensors map the file's memory, unless `mmap=False`. A map_location
    that maps devices or storages has no effect, nor have `weights_only` and the options of pickles: no code is ever
    run. By position, OneFlow's global_src_rank and map_location are taken as well.
    """
    if type(map_location) is int or not isinstance(pickle_module, (ModuleType, type(None))):
        global_src_rank, map_location = map_location, pickle_module
    if callable(map_location) or isinstance(map_location, dict):
        idle("load(map_location)")
        map_location = None
    if isinstance(map_location, Placement):
        placement, map_location = map_location, None
    if placement is None and global_src_rank is not None:
        placement = Placement(Device("cpu" if map_location is None else map_location).type, [global_src_rank])
    copied = mmap is False
    if placement is None:
        if sbp is not None:
            raise ArgumentError("load(): sbp goes with a placement; give placement=... too")
        device = Device("cpu" if map_location is None else map_location).check().torch
        if theirs := unpickled(path, lambda _, t: of_torch(t.to(device, copy=copied))):
            return theirs[0]
        form, stored = _read(path)
        return _built(form, {n: of_torch(t.take().to(device, copy=copied)) for n, t in stored.items()})
    rank = current()
    placement.check(rank.world_size)
    wanted = _layouts(placement, sbp)
    if global_src_rank is None:
        names: list[str] = []

        def laid_out(name: str, t: torch.Tensor) -> Tensor:
            names.append(name)
            return _laid_out(t, placement, wanted(name, t))

        if theirs := unpickled(path, laid_out):
            _check_patterns(sbp, names, path)
            return theirs[0]
        form, stored = _read(path)
        _check_patterns(sbp, stored, path)
        if rank.world_size > 1:
            ranks = frozenset(placement.members)
            text = repr((form, [(name, str(t.dtype), t.shape, t.sums) for name, t in stored.items()]))
            fingerprints.of(rank).fold(
                f"what is in the checkpoints that ranks {sorted(ranks)} load", crc32(text.encode()), f"{path}", ranks
            )
        return _built(form, {n: _part(t, placement, wanted(n, t), copied) for n, t in stored.items()})
    form, forms, tensors = _read_by(path, global_src_rank)
    _check_patterns(sbp, forms, path)
    source = Placement("cpu", [global_src_rank])
    made = {}
    for name, (shape, dtype) in forms.items():
        spec = Spec(tuple(shape), dtypes.named(dtype), source, (broadcast,))
        data = tensors.get(name)
        part = torch.empty(spec.local_shape(rank.index), dtype=spec.dtype.torch) if data is None else data
        made[name] = ops.to_global(of_shard(part, spec), placement, _fitting(wanted(name, None), len(shape)))
    return _built(form, made)


def _read(path: Any) -> tuple[list[Any], dict[str, Stored]]:
    """Read a file, or a folder in Hugging Face's format."""
    if hasattr(path, "read") or not os.path.isdir(place.named(path)):
        return file.read(path)
    folder = place.named(path)
    if os.path.lexists(os.path.join(folder, place.INSIDE)):
        return file.read(path)
    form: list[Any] = []
    found: dict[str, Stored] = {}
    files, saved = parts(folder)
    for part, names in files.items():
        form, stored = file.read(part, saved)
        for name in () if names is None else names:
            if name not in stored:
                raise CheckpointError(f"{folder}: the index says that {shortened(name)} is in {part}, which lacks it")
        found.update((name, t) for name, t in stored.items() if names is None or t.name in names)  # tied weights, too
        form = form if names is None else []
    return form, found


def _layouts(placement: Placement, sbp: Any) -> Callable[[str, Any], Any]:
    """The layout of each tensor: one for all, by the first pattern that matches its name, or by a function."""
    rules = sbp.items() if isinstance(sbp, Mapping) else [("*", broadcast if sbp is None else sbp)]

    def layout(name: str, t: Any) -> Any:
        found: Any = next((how for pattern, how in rules if fnmatchcase(name, pattern)), broadcast)
        if callable(found) and not isinstance(found, sbps.Sbp):
            found = found(name, t)
        return (found,) * placement.ndim if found is broadcast else sbps.nd(found, placement.ndim)

    return layout


def _check_patterns(sbp: Any, names: Iterable[str], path: Any) -> None:
    """Refuse patterns of which none matches a name."""
    names = list(names)
    if isinstance(sbp, Mapping) and sbp and names and not any(fnmatchcase(n, p) for p in sbp for n in names):
        some = ", ".join(names[:4]) + ", ..." * (len(names) > 4)
        raise SbpError(
            f"load(sbp=...): no tensor of {path} matches {[*sbp]}; they are called {some}. A pattern must match a "
            'whole name: "*.weight". A plan of colwise and rowwise names modules, which have the layouts: '
            "model.to_global(placement, plan), and then model.load_state_dict(flow.load(path))"
        )


def _laid_out(t: torch.Tensor, placement: Placement, nd_sbp: Any) -> Tensor:
    """A global tensor from one that every rank has read."""
    x = ops.from_local(of_torch(t), placement, (broadcast,) * placement.ndim, None)
    return ops.to_global(x, placement, _fitting(nd_sbp, t.ndim))


def _fitting(nd_sbp: Any, ndim: int) -> Any:
    """The sbp without splits of dimensions that the tensor lacks."""
    return tuple(broadcast if s.dim >= ndim else s for s in nd_sbp)


def _part(t: Stored, placement: Placement, nd_sbp: Any, copied: bool) -> Tensor:
    """A global tensor, of which this rank reads the rows of its own shard."""
    nd_sbp, rank = _fitting(nd_sbp, len(t.shape)), current().index
    read = tuple(broadcast if s.is_partial else s for s in nd_sbp)
    spec = Spec(t.shape, dtypes.of_torch(t.dtype), Placement("cpu", placement.ranks), read)
    box = spec.box(rank)
    if box is None:
        part = torch.empty(spec.local_shape(rank), dtype=t.dtype)
    else:
        part = t.take(box[0] if box else None)[(..., *(slice(*b) for b in box[1:]))]
        part = part.clone() if copied else part.contiguous()
    return ops.to_global(of_shard(part, spec), placement, nd_sbp)


def _read_by(path: Any, source: int) -> tuple[list[Any], dict[str, Any], dict[str, torch.Tensor]]:
    """One rank reads, and broadcasts the structure to the others."""
    rank = current()
    text, tensors, failure = b"", {}, None
    if rank.index == source:
        try:
            form, tensors = _taken(path)
            forms = {n: (tuple(t.shape), dtypes.of_torch(t.dtype).name) for n, t in tensors.items()}
            text = json.dumps([form, forms]).encode()
        except Exception as error:
            failure = error
    text = transport_of().everyone().broadcast_bytes(text, source)
    if failure is not None:
        raise failure
    if not text:
        raise CheckpointError(f"rank {source} could not read {path}; its own error says why")
    form, forms = json.loads(text)
    return form, forms, tensors


def _taken(path: Any) -> tuple[list[Any], dict[str, torch.Tensor]]:
    """All that a file of any format holds."""
    if theirs := unpickled(path, lambda _, t: of_torch(t)):
        form, found = described(theirs[0])
        return [form], {n: local_data(t, "load") for n, t in found.items()}
    form, stored = _read(path)
    return form, {n: t.take() for n, t in stored.items()}


class Unread:
    """A tensor of a file: each rank reads its own rows of it, when it asks for a layout, or the whole for itself."""

    def __init__(self, shape: Any, read: Callable[[Placement, Any], Tensor], whole: Callable[[], torch.Tensor]) -> None:
        self.shape, self._read, self._whole = tuple(shape), read, whole
        self.trained: bool | None = None

    def whole(self) -> Tensor:
        t = of_torch(self._whole())
        return t if self.trained is None else Parameter(t, self.trained)

    def like(self, own: Tensor) -> Tensor:
        """In the layout of another tensor."""
        return self._read(own.placement, own.sbp) if own.is_global else of_torch(self._whole())

    def numpy(self) -> Any:
        return self.whole().numpy()

    def as_parameter(self, trained: bool) -> Unread:
        made = Unread(self.shape, self._read, self._whole)
        made.trained = trained
        return made


def unread(path: Any) -> Any:
    """What a file holds, with `Unread` in the place of tensors."""

    def given(_: str, t: torch.Tensor) -> Unread:
        return Unread(t.shape, lambda placement, sbp: _laid_out(t, placement, sbp), lambda: t)

    if theirs := unpickled(path, given, Unread.as_parameter):
        return theirs[0]
    form, stored = _read(path)

    def of(t: Stored) -> Unread:
        return Unread(t.shape, lambda placement, sbp: _part(t, placement, sbp, False), t.take)

    return _built(form, {name: of(t) for name, t in stored.items()}, Unread.as_parameter)


def _built(form: list[Any], tensors: Mapping[str, Any], parameter: Callable[[Any, bool], Any] = Parameter) -> Any:
    if not form:
        return tensors

    def find(name: str) -> Any:
        if name not in tensors:
            raise CheckpointError(f"the file's structure names a tensor {name!r} that the file doesn't hold")
        return tensors[name]

    return rebuilt(form[0], find, parameter)
