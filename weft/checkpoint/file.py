"""The file format: safetensors, whose header also holds the structure as JSON, a format version, and checksums.

    8 bytes: the length of the header
    {"__metadata__": {"weft.header": "5d41402a", "weft.version": "2", "weft.structure": ..., "weft.crc32": ...},
     "weight": {"dtype": "F32", "shape": [3, 2], "data_offsets": [0, 24]}, ...}
    the tensors' bytes, those of the largest elements first

`weft.crc32` has the CRC of every `CHUNK` bytes of each tensor, in the order of the data, so that a slice can be
checked alone. `weft.header` is the CRC of everything before the data, with zeros in its own place.
"""

from __future__ import annotations

import io
import json
import math
import mmap
import os
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, BinaryIO, Final, NamedTuple

import torch

from weft.checkpoint import place
from weft.core.errors import CheckpointError
from weft.core.reading import opened, parsed, shortened

VERSION: Final = "2"
KNOWN: Final = ("1", VERSION)  # 1 had no checksums
METADATA: Final = "__metadata__"
HEADER, WRITTEN_AS, STRUCTURE, SUMS = "weft.header", "weft.version", "weft.structure", "weft.crc32"
SAVED: Final = "weft.save"  # which save of a folder a file is of
CHUNK: Final = 1 << 20
MOST_HEADER: Final = 100_000_000  # safetensors' own limit
DTYPES: Final = {
    "F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16, "I64": torch.int64,
    "I32": torch.int32, "I16": torch.int16, "I8": torch.int8, "U8": torch.uint8, "BOOL": torch.bool,
    "C64": torch.complex64, "F8_E4M3": torch.float8_e4m3fn, "F8_E5M2": torch.float8_e5m2, "U16": torch.uint16,
    "U32": torch.uint32, "U64": torch.uint64,
}  # fmt: skip
CODES: Final = {dtype: code for code, dtype in DTYPES.items()}
DIGITS: Final = 8  # of a checksum
FIRST: Final = f'{{"{METADATA}":{{"{HEADER}":"'.encode()  # the start of a header with checksums
ANEW: Final = (
    "its header isn't the one that was written. Take another copy, or an earlier checkpoint; a program that writes "
    "such a file anew leaves what begins with `weft.` out of its metadata"
)
PICKLE: Final = (
    "is a pickle, as torch.save writes it, that was damaged or holds more than data, and loading that can run code. If "
    "you trust it, convert it: safetensors.torch.save_file(torch.load(path, weights_only=False), 'model.safetensors')"
)
FOREIGN: Final = {b"PK\x03\x04": PICKLE} | {bytes((0x80, protocol)): PICKLE for protocol in range(2, 6)}


def write(path: Any, form: Any, tensors: Mapping[str, torch.Tensor]) -> None:
    """Write the file at a path, or through the `write` of a file object."""
    if hasattr(path, "write"):
        made = io.BytesIO()
        _write(made, form, tensors)
        path.write(made.getvalue())
    else:
        place.replace(place.begun(path), lambda file: _write(file, form, tensors))


def _write(file: BinaryIO, form: Any, tensors: Mapping[str, torch.Tensor]) -> None:
    """Write header, data, and the header again, as the checksums are known after the data."""
    for name, t in tensors.items():
        if t.layout is not torch.strided:
            raise CheckpointError(
                f"{name} has layout {t.layout}, and files hold dense tensors: save {name}.to_dense(), or the state by "
                "torch.save, which keeps sparse ones"
            )
    infos = header({n: (t.dtype, t.shape) for n, t in tensors.items()}, {STRUCTURE: json.dumps(form)})
    file.write(headed(infos))
    sums = []
    for name in (n for n in infos if n != METADATA):
        data = memoryview(in_bytes(tensors[name].detach().cpu().contiguous()))
        for at in range(0, len(data), CHUNK):
            sums.append(_sum(data[at : at + CHUNK]))
            file.write(data[at : at + CHUNK])
    file.seek(0)
    file.write(sealed(infos, sums))


def header(forms: Mapping[str, tuple[torch.dtype, Sequence[int]]], more: Mapping[str, str]) -> dict[str, Any]:
    """The header of tensors, the largest elements first so that mapped ones are aligned, with room for checksums."""
    infos: dict[str, Any] = {METADATA: {}}
    count = end = 0
    for name in sorted(forms, key=lambda name: -forms[name][0].itemsize):
        dtype, shape = forms[name]
        begin, end = end, end + math.prod(shape) * dtype.itemsize
        infos[name] = {"dtype": CODES[dtype], "shape": list(shape), "data_offsets": [begin, end]}
        count += _chunks(end - begin)
    infos[METADATA] = {HEADER: "0" * DIGITS, WRITTEN_AS: VERSION, SUMS: "0" * DIGITS * count, **more}
    infos[METADATA]["format"] = "pt"  # required by transformers
    return infos


def sealed(infos: Mapping[str, Any], sums: Sequence[str]) -> bytes:
    """The start of a file with its checksums."""
    metadata = infos[METADATA] | {SUMS: "".join(sums)}
    whole = {**infos, METADATA: metadata}
    metadata[HEADER] = _sum(headed(whole))
    return headed(whole)


def seal(file: BinaryIO, infos: Mapping[str, Any]) -> None:
    """Read the data of a file back for its checksums, and write its start anew."""
    file.seek(len(headed(infos)))
    sizes = [end - begin for begin, end in (info["data_offsets"] for n, info in infos.items() if n != METADATA)]
    sums = [_sum(file.read(min(CHUNK, size - at))) for size in sizes for at in range(0, size, CHUNK)]
    file.seek(0)
    file.write(sealed(infos, sums))


def headed(infos: Mapping[str, Any]) -> bytes:
    """The start of a file: the header and, before it, its length."""
    text = json.dumps(infos, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    if len(text) > MOST_HEADER:
        raise CheckpointError(f"names, shapes and numbers take {len(text)} bytes; a header has at most {MOST_HEADER}")
    return len(text).to_bytes(8, "little") + text


def _chunks(size: int) -> int:
    return -(-size // CHUNK)


def _sum(data: Any) -> str:
    return f"{zlib.crc32(data):0{DIGITS}x}"


def in_bytes(t: torch.Tensor) -> Any:
    """The memory of a contiguous CPU tensor, as an array of bytes."""
    return t.reshape(-1).view(torch.uint8).numpy()


def read(path: Any, saved: str | None = None) -> tuple[list[Any], dict[str, Stored]]:
    """The structure, in a list (empty if the file isn't Weft's), and the tensors. `saved` names the save that the file
    must be of, if it is of one."""
    if hasattr(path, "read"):
        data = path.read()
        if not isinstance(data, (bytes, bytearray, memoryview)):
            raise CheckpointError(f"a checkpoint is bytes; the file object returns {type(data).__name__}")
        return _contents(bytearray(data), "this")
    name = place.named(path)
    if os.path.isdir(name):
        name = os.path.join(name, place.INSIDE)
    with opened(name, CheckpointError) as file:
        if not os.fstat(file.fileno()).st_size:
            raise CheckpointError(f"{name} is empty, and no safetensors file")
        return _contents(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY), name, saved)


Refuse = Callable[[str], CheckpointError]
Buffer = mmap.mmap | bytearray


class Stored(NamedTuple):
    """A tensor of a file: its shape and dtype are known, its bytes are read on demand."""

    name: str
    dtype: torch.dtype
    shape: tuple[int, ...]
    data: Buffer
    begin: int  # in the file
    end: int
    sums: str | None
    refuse: Refuse

    def take(self, rows: tuple[int, int] | None = None) -> torch.Tensor:
        """The tensor, or these rows of its first dimension, over the file's memory, after its checksums were
        compared."""
        size, shape = self.end - self.begin, self.shape
        first, last = 0, size
        if rows is not None:
            first, last = (size // (shape[0] or 1) * row for row in rows)
            shape = (rows[1] - rows[0], *shape[1:])
        if self.sums is not None:
            self._check(first, last)
        begin, count = self.begin + first, (last - first) // self.dtype.itemsize
        if not count:
            return torch.empty(shape, dtype=self.dtype)
        if begin % self.dtype.itemsize:
            made = torch.frombuffer(bytearray(self.data[begin : self.begin + last]), dtype=self.dtype)
        else:
            made = torch.frombuffer(self.data, dtype=self.dtype, count=count, offset=begin)
        if self.dtype is torch.bool and made.view(torch.uint8).gt(1).any():
            raise self.refuse(f"is no safetensors file: {shortened(self.name)} is of BOOL, with bytes above 1")
        return made.view(shape)

    def _check(self, first: int, last: int) -> None:
        """Compare the chunks of these bytes with their checksums."""
        assert self.sums is not None
        data = memoryview(self.data)[self.begin : self.end]
        for at in range(first - first % CHUNK, last, CHUNK):
            digits = at // CHUNK * DIGITS
            if _sum(data[at : at + CHUNK]) != self.sums[digits : digits + DIGITS]:
                raise self.refuse(
                    f"was damaged: of {shortened(self.name)}, bytes {at} to {min(at + CHUNK, len(data))} aren't those "
                    "that were written. Take another copy, or an earlier checkpoint"
                )


def _contents(data: Buffer, what: str, saved: str | None = None) -> tuple[list[Any], dict[str, Stored]]:
    def refuse(why: str) -> CheckpointError:
        return CheckpointError(f"{what} {why}")

    infos, metadata, begin, summed = _header(data, refuse)
    if saved is not None and metadata.get(SAVED, saved) != saved:
        raise refuse("is of another save than the folder's index: one of them was copied, or is being written just now")
    form = []
    if STRUCTURE in metadata:
        form.append(parsed(metadata[STRUCTURE], lambda why: refuse(f"has no valid structure: {why}"), constants=True))
    found = [_stored(name, info, data, begin, refuse) for name, info in infos.items()]
    found.sort(key=lambda t: (t.begin, t.end))
    end, before = begin, "the header"
    for t in found:
        if t.begin != end:
            raise refuse(f"is no safetensors file: {shortened(t.name)} begins at {t.begin}, and {before} ends at {end}")
        end, before = t.end, shortened(t.name)
    if end > len(data):
        raise refuse(f"was cut off: it has {len(data)} bytes, and its header says {end}. Copy or download it again")
    if end < len(data):
        raise refuse(f"is no safetensors file: it has {len(data)} bytes, and its header says {end}")
    if summed:
        sums, at = metadata.get(SUMS, ""), 0
        for i, t in enumerate(found):
            own = DIGITS * _chunks(t.end - t.begin)
            found[i], at = t._replace(sums=sums[at : at + own]), at + own
        if at != len(sums):
            raise refuse(f"was damaged: {ANEW}")
    by_name = {t.name: t for t in found}
    other = {n: kept for n, kept in metadata.items() if n not in by_name and not n.startswith("weft.")}
    tied = {name: by_name[kept] for name, kept in other.items() if kept in by_name}
    return form, {name: by_name[name] for name in infos} | ({} if form else tied)


def _header(data: Buffer, refuse: Refuse) -> tuple[dict[str, Any], dict[str, str], int, bool]:
    """Each tensor's info, the metadata, where the data begins, and whether there are checksums."""
    size, start = len(data), bytes(data[:8])
    length = int.from_bytes(start, "little")
    text = bytes(data[8 : 8 + length]) if size >= 8 + length and length <= MOST_HEADER else b""
    if not text.startswith(b"{"):
        for magic, why in FOREIGN.items():
            if start.startswith(magic):
                raise refuse(why)
        if 8 <= size < 8 + length <= MOST_HEADER:
            raise refuse(f"was cut off: it has {size} bytes, its header alone {8 + length}. Copy or download it again")
        raise refuse("is no safetensors file; flow.save writes one, and so do most hubs of models")
    summed, at = text.startswith(FIRST), len(FIRST)
    said, zeroed = text[at : at + DIGITS], text[:at] + b"0" * DIGITS + text[at + DIGITS :]
    damaged = summed and said != _sum(start + zeroed).encode()
    kind = "was damaged" if damaged else "is no safetensors file"
    infos = parsed(text, lambda why: refuse(f"{kind}: of its header, {why}"))
    metadata = infos.pop(METADATA, {})
    if not isinstance(metadata, dict) or not all(isinstance(v, str) for v in metadata.values()):
        raise refuse(f"{kind}: {METADATA} are strings by name, not {shortened(metadata)}")
    version = metadata.get(WRITTEN_AS)
    if version not in (None, *KNOWN):
        raise refuse(
            f"was written in version {shortened(version)} of the format of checkpoints, and this Weft reads versions "
            f"{' and '.join(KNOWN)}: load it with a Weft no older than the one that saved it"
        )
    if damaged or (not summed and (version == VERSION or {HEADER, SUMS} & metadata.keys())):
        raise refuse(f"was damaged: {ANEW}")
    return infos, metadata, 8 + length, summed


def _stored(name: str, info: Any, data: Buffer, base: int, refuse: Refuse) -> Stored:
    """A tensor of the header, validated."""
    told = f"is no safetensors file: it describes {shortened(name)} as {shortened(info)}, and"
    if not isinstance(info, dict) or info.keys() != {"dtype", "shape", "data_offsets"}:
        raise refuse(f"{told} a tensor has a dtype, a shape and data_offsets")
    code, shape, offsets = info["dtype"], info["shape"], info["data_offsets"]
    if not isinstance(code, str) or code not in DTYPES:
        raise refuse(f"holds {shortened(name)} as {shortened(code)}, and Weft reads {', '.join(DTYPES)}")
    if not (_counts(shape) and _counts(offsets)):
        raise refuse(f"{told} shape and offsets are lists of ints from 0 on")
    strides = DTYPES[code].itemsize
    for n in shape:
        strides *= n or 1  # must not be zero where a dimension is empty
        if strides >= 1 << 63:
            raise refuse(f"{told} no tensor is as large")
    size = 0 if 0 in shape else strides
    if len(offsets) != 2 or offsets[1] - offsets[0] != size:
        raise refuse(f"{told} a tensor of this shape has {size} bytes")
    begin, end = (base + n for n in offsets)
    return Stored(name, DTYPES[code], tuple(shape), data, begin, end, None, refuse)


def _counts(value: Any) -> bool:
    return isinstance(value, list) and all(type(n) is int and 0 <= n < 1 << 63 for n in value)
