"""A model's folder in Hugging Face's format: safetensors shards of limited size, and their index.

Which tensor is where follows from the state's names, shapes and dtypes, so ranks agree without communication. One
creates the files at full size under temporary names; each writes its own slices; then each reads some files back for
their checksums; then the files are renamed, to names that the index of an earlier save doesn't mention: that save stays
whole until the new index takes its place.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import math
import os
import re
import secrets
import stat
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import torch

from weft.checkpoint import file, place
from weft.checkpoint.file import CODES, METADATA, SAVED
from weft.checkpoint.foreign import ENDING, INDEX, parts
from weft.core.errors import ArgumentError, CheckpointError
from weft.core.log import logger
from weft.core.rank import current
from weft.core.reading import other_than_file, shortened
from weft.core.sbp import broadcast
from weft.core.shard import Box
from weft.ops import ops
from weft.tensor.blob import blob_of
from weft.tensor.data import local_data
from weft.tensor.tensor import Tensor
from weft.transport import transport_of
from weft.transport.base import default_deadline

STEM: Final = "model"
TOKEN: Final = 12  # hexadecimal digits of what tells saves apart
OURS: Final = re.compile(rf"({STEM}|{STEM}(-2)?-\d{{5}}-of-\d{{5}}){re.escape(ENDING)}|{STEM}{re.escape(INDEX)}")
UNITS: Final = {
    "": 1, **{f"{k}B": 1000**n for n, k in enumerate(("", "K", "M", "G", "T"))},
    **{f"{k}IB": 1024**n for n, k in enumerate(("K", "M", "G", "T"), 1)},
}  # fmt: skip


class Shard(NamedTuple):
    """A file to write: its name and its header."""

    name: str
    infos: dict[str, Any]

    @property
    def places(self) -> dict[str, tuple[int, int]]:
        """Where each tensor begins and ends in the file."""
        base = len(file.headed(self.infos))
        found = {name: info["data_offsets"] for name, info in self.infos.items() if name != METADATA}
        return {name: (base + begin, base + end) for name, (begin, end) in found.items()}


def save_folder(state: Any, path: Any, most: int | str, writer: int | None) -> None:
    """Write a dict of tensors. With a global tensor inside, every rank of the world must call this; a slice is written
    by the first rank that holds it."""
    tensors, tied = _checked(state)
    shards = _shards(tensors, tied, _bytes(most))
    rank, placed = current(), next((t for t in tensors.values() if t.is_global), None)
    if placed is None and writer not in (None, rank.index):
        return
    writer = (rank.index if placed is None else placed.placement.members[0]) if writer is None else writer
    alone = placed is None or rank.world_size == 1
    folder = place.named(path)
    with contextlib.ExitStack() as held:
        token = together(folder, alone, writer, lambda: _made(folder, shards, held))
        temporary = [_temporary(folder, token, i) for i in range(len(shards))]
        for shard in shards:
            shard.infos[METADATA][SAVED] = f"{token:0{TOKEN}x}"
        mine = {name: part for name, t in tensors.items() for part in _parts(t, rank.index, writer)}
        _agreed(alone, lambda: _filled(shards, temporary, tensors, mine))
        share = slice(None) if alone else slice(rank.index, None, rank.world_size)
        _agreed(alone, lambda: _sealed(shards[share], temporary[share]))
        together(folder, alone, writer, lambda: _named(folder, shards, temporary, tensors))


def _checked(state: Any) -> tuple[dict[str, Tensor], dict[str, str]]:
    """The tensors by name, each memory once; and the names of tied tensors, with the name that each is tied to."""
    tensors: dict[str, Tensor] = {}
    tied: dict[str, str] = {}
    known: dict[Any, str] = {}
    if not isinstance(state, Mapping):
        raise ArgumentError(
            f"a model's folder holds tensors by their names, as model.state_dict() has them; got {type(state).__name__}"
        )
    for name, t in state.items():
        if not isinstance(name, str) or not isinstance(t, Tensor) or name == METADATA:
            raise ArgumentError(
                f"a model's folder holds tensors by their names; got {type(t).__name__} under {shortened(name)}. "
                "flow.save without max_shard_size writes other values, too"
            )
        if t.dtype.torch not in CODES:
            raise CheckpointError(f"can't save `{name}`: the file's format has no {t.dtype}")
        first = known.setdefault((id(blob_of(t)), tuple(t.shape)), name)
        if first == name:
            tensors[name] = t
        else:
            tied[name] = first
    return tensors, tied


def _bytes(most: int | str) -> int:
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*", str(most))
    unit = UNITS.get(found[2].upper()) if found else None
    count = int(float(found[1]) * unit) if found and unit else 0
    if isinstance(most, bool) or count < 1:
        raise ArgumentError(f'max_shard_size is a number of bytes, or a text such as "5GB" or "500MiB"; got {most!r}')
    return count


# ---- layout of the files -------------------------------------------------------------------------------


def _shards(tensors: Mapping[str, Tensor], tied: Mapping[str, str], most: int) -> list[Shard]:
    """The files, filled in the order of the state; a tensor larger than the limit has a file of its own."""
    files: list[list[str]] = [[]]
    size = 0
    for name, t in tensors.items():
        count = t.numel() * t.element_size()
        if files[-1] and size + count > most:
            files.append([])
            size = 0
        files[-1].append(name)
        size += count
    n = len(files)
    names = [f"{STEM}-{i:05}-of-{n:05}{ENDING}" for i in range(1, n + 1)] if n > 1 else [STEM + ENDING]
    return [_shard(name, {k: tensors[k] for k in own}, tied) for name, own in zip(names, files, strict=True)]


def _shard(name: str, tensors: Mapping[str, Tensor], tied: Mapping[str, str]) -> Shard:
    own = {k: v for k, v in tied.items() if v in tensors}
    return Shard(
        name, file.header({k: (t.dtype.torch, t.shape) for k, t in tensors.items()}, own | {SAVED: "0" * TOKEN})
    )


# ---- which rank writes what ---------------------------------------------------------------------------------


def _parts(t: Tensor, rank: int, writer: int) -> Iterator[tuple[torch.Tensor, Box]]:
    """What this rank writes of a tensor: its shard, unless an earlier rank holds the same."""
    t = t.detach()
    if t.spec is None:
        if rank == writer:
            yield local_data(t, "save"), tuple((0, n) for n in t.shape)
        return
    if t.spec.has_partial:
        t = ops.to_global(t, t.placement, (broadcast,) * t.placement.ndim)
    spec = t.spec
    assert spec is not None
    box = spec.box(rank)
    if box is not None and next(r for r in spec.placement.members if spec.box(r) == box) == rank:
        yield local_data(t, "save"), box


def _runs(shape: Sequence[int], box: Box) -> Iterator[tuple[int, int]]:
    """Where the elements of a box are in the whole, row by row: first and last index of each run."""
    cut = next((d for d in reversed(range(len(shape))) if box[d] != (0, shape[d])), 0)
    strides = [math.prod(shape[d + 1 :]) for d in range(len(shape))]
    first, last = box[cut] if box else (0, 1)
    each = strides[cut] if shape else 1
    for at in itertools.product(*(range(*b) for b in box[:cut])):
        start = sum(i * n for i, n in zip(at, strides, strict=False))
        yield start + first * each, start + last * each


# ---- the phases of a save ---------------------------------------------------------------------------------------


def together(path: Any, alone: bool, root: int, step: Callable[[], int | None]) -> int:
    """Run a phase on one rank, while the others wait for its result. A failure is raised on all."""
    return _agreed(alone, step if current().index == root else lambda: 0, f"{path}")


def _agreed(alone: bool, step: Callable[[], int | None], what: str = "its slices") -> int:
    """Run a phase on every rank, and wait for all; returns the largest result. A failure is raised on all."""
    failure, result = None, 0
    try:
        result = step() or 0
    except Exception as error:
        failure = error
    said = torch.tensor([0 if failure is None else current().index + 1, result])
    if not alone:
        transport_of().everyone().all_reduce(said, "max")
    if failure is not None:
        raise failure
    failed, result = said.tolist()
    if failed:
        raise CheckpointError(f"rank {failed - 1} could not write {what}; its own error says why")
    return result


def _temporary(folder: str, token: int, number: int) -> str:
    return os.path.join(folder, f"{place.UNFINISHED}{token}-{number}")


def _made(folder: str, shards: Sequence[Shard], held: contextlib.ExitStack) -> int:
    """Create the files under temporary names, locked while this process lives."""
    os.makedirs(folder, exist_ok=True)
    if os.path.lexists(os.path.join(folder, place.INSIDE)):
        raise CheckpointError(f"{folder} holds {place.INSIDE}, which flow.load would read; give another folder")
    _alone(folder, held)
    for path, now in _ours(folder).items():
        if kind := other_than_file(now.st_mode):
            kind = "a link" if stat.S_ISLNK(now.st_mode) else kind
            raise CheckpointError(f"can't save to {folder}: {path} is {kind}, and stays; give another folder")
    place.clear(folder)
    token, mode = secrets.randbits(4 * TOKEN), 0o666 if _before(folder) is None else 0o600
    for i, shard in enumerate(shards):
        path = _temporary(folder, token, i)
        held.callback(_removed, path)
        number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
        made = held.enter_context(open(number, "wb"))  # noqa: SIM115
        place.lock(made.fileno())
        with place.naming(path):
            os.truncate(made.fileno(), max(end for _, end in shard.places.values()) if shard.places else 0)
    return token


def _alone(folder: str, held: contextlib.ExitStack) -> None:
    """Wait until no other save is writing into the folder, and keep others out."""
    handle = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    held.callback(os.close, handle)
    patience = default_deadline()
    end = time.monotonic() + patience
    while place.lock(handle) is False:  # None: the file system has no locks
        if time.monotonic() > end:
            raise CheckpointError(f"can't save to {folder}: another process has been writing there for {patience:g} s")
        time.sleep(0.02)


def _ours(folder: str) -> dict[str, os.stat_result]:
    """What earlier saves left under names that this one may take or remove."""
    found = (entry for entry in os.scandir(folder) if OURS.fullmatch(entry.name))
    return {entry.path: entry.stat(follow_symlinks=False) for entry in found}


def _filled(
    shards: Sequence[Shard], temporary: Sequence[str], tensors: Mapping[str, Tensor],
    mine: Mapping[str, tuple[torch.Tensor, Box]],
) -> None:  # fmt: skip
    """Write this rank's slices."""
    for shard, path in zip(shards, temporary, strict=True):
        places = shard.places
        own = [name for name in places if name in mine]
        if not own:
            continue
        with place.naming(path), open(path, "r+b", buffering=0) as made:
            for name in own:
                part, box = mine[name]
                data, at = memoryview(file.in_bytes(part.detach().cpu().contiguous())), 0
                start, width = places[name][0], part.element_size()
                for first, last in _runs(tensors[name].shape, box) if len(data) else ():
                    size = (last - first) * width
                    _put(made.fileno(), data[at : at + size], start + first * width)
                    at += size
            os.fsync(made.fileno())


def _put(handle: int, data: memoryview, at: int) -> None:
    while len(data):
        count = os.pwrite(handle, data, at)
        data, at = data[count:], at + count


def _sealed(shards: Sequence[Shard], temporary: Sequence[str]) -> None:
    for shard, path in zip(shards, temporary, strict=True):
        with place.naming(path), open(path, "r+b") as made:
            file.seal(made, shard.infos)
            made.flush()
            os.fsync(made.fileno())


def _named(folder: str, shards: Sequence[Shard], temporary: Sequence[str], tensors: Mapping[str, Tensor]) -> None:
    """Rename the files, then the index, and remove what an earlier save has left."""
    index, many = os.path.join(folder, STEM + INDEX), len(shards) > 1
    names = {shard.name: shard.name for shard in shards}
    if many and not names.keys().isdisjoint(_used(folder)):
        names = {name: name.replace(STEM, f"{STEM}-2", 1) for name in names}
    before = _before(folder)
    for shard, path in zip(shards, temporary, strict=True):
        if before is not None:
            with open(path, "rb") as made:
                place.like(made.fileno(), before)
        os.replace(path, os.path.join(folder, names[shard.name]))
    place.flush(folder)
    if many:
        where = {name: names[shard.name] for shard in shards for name in shard.places}
        size = sum(t.numel() * t.element_size() for t in tensors.values())
        total = {"total_size": size, SAVED: shards[0].infos[METADATA][SAVED]}
        text = json.dumps({"metadata": total, "weight_map": where}, indent=2, sort_keys=True).encode() + b"\n"
        place.replace(index, lambda out: out.write(text))
    kept = {os.path.join(folder, name) for name in names.values()} | ({index} if many else set())
    for path in sorted(_ours(folder).keys() - kept, key=lambda path: path != index):  # the index before what it names
        os.unlink(path)
    count = sum(os.path.getsize(os.path.join(folder, name)) for name in names.values())
    logger("checkpoint").info("%s written, %d files, %d bytes", folder, len(shards), count)


def _used(folder: str) -> set[str]:
    """The files that an earlier save's index names."""
    with contextlib.suppress(CheckpointError, OSError):
        return {os.path.basename(path) for path in parts(folder)[0]}
    return set()


def _before(folder: str) -> os.stat_result | None:
    """A file of an earlier save, whose owner and mode stay."""
    return next((now for path, now in _ours(folder).items() if path.endswith(ENDING)), None)


def _removed(path: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
