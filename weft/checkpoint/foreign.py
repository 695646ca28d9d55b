"""Checkpoints of other libraries: Hugging Face's folders of safetensors files, and torch's `.pt`."""

from __future__ import annotations

import io
import os
import warnings
from collections.abc import Callable
from typing import Any, Final

import torch

from weft.autograd.trees import mapped
from weft.checkpoint.file import FOREIGN, PICKLE, SAVED
from weft.checkpoint.place import named
from weft.core.errors import CheckpointError
from weft.core.reading import opened, parsed

INDEX: Final = ".safetensors.index.json"
ENDING: Final = ".safetensors"
WHOLE: Final = f"model{ENDING}"  # the name of a model's only file


def parts(folder: str) -> tuple[dict[str, list[str] | None], str | None]:
    """The files of a model's folder, and which tensors of each: those that its index names, or all; and which save of
    Weft's the index is of."""
    names = sorted(os.listdir(folder))
    indexes = [n for n in names if n.endswith(INDEX)]
    files = [n for n in names if n.endswith(ENDING)]
    if not indexes and (len(files) == 1 or WHOLE in files):  # beside it may be what a killed save left
        return {os.path.join(folder, WHOLE if WHOLE in files else files[0]): None}, None
    if len(indexes) != 1:
        raise CheckpointError(
            f"{folder} is a folder without checkpoint{ENDING}, which flow.save writes, and with "
            f"{len(indexes)} files *{INDEX}, {len(files)} files *{ENDING}: of a model's folder there is one index, or "
            "one file. Give the path of a file. What OneFlow saved in folders, load there, and save with safetensors"
        )
    path = os.path.join(folder, indexes[0])

    def refuse(why: str) -> CheckpointError:
        return CheckpointError(f"{path} is no index of safetensors files: {why}")

    with opened(path, CheckpointError) as file:
        index = parsed(file.read(), refuse)
    where = index.get("weight_map") if isinstance(index, dict) else None
    if not isinstance(where, dict) or not all(map(_is_name, where.values())):
        raise refuse("its weight_map goes from the names of tensors to those of files in the folder")
    more = index.get("metadata")
    saved = more.get(SAVED) if isinstance(more, dict) else None
    found: dict[str, list[str] | None] = {}
    for name, file_name in where.items():
        found.setdefault(os.path.join(folder, file_name), []).append(name)  # type: ignore[union-attr]
    return found, saved


def _is_name(value: Any) -> bool:
    """Whether it names a file in the folder."""
    plain = isinstance(value, str) and value.isprintable() and os.path.basename(value) == value
    return plain and value not in ("", os.curdir, os.pardir)


def unpickled(path: Any, convert: Callable[[torch.Tensor], Any]) -> list[Any]:
    """What torch.save wrote, in a list that is empty if it is another format; only data is read, no code is run."""
    start = _start(path)
    if start[8:] == b"{" or not any(start.startswith(magic) for magic in FOREIGN):
        return []
    what = "this" if hasattr(path, "read") else named(path)
    archive = start.startswith(b"PK") and not hasattr(path, "read")
    try:
        with warnings.catch_warnings(action="ignore"):
            loaded = torch.load(path, map_location="cpu", weights_only=True, mmap=archive or None)
    except Exception as cause:
        raise CheckpointError(f"{what} {PICKLE}") from cause
    return [mapped(loaded, lambda v: convert(v.detach()) if isinstance(v, torch.Tensor) else v)]


def _start(path: Any) -> bytes:
    if hasattr(path, "read"):
        if not isinstance(path, io.IOBase) or not path.seekable():
            return b""
        at = path.tell()
        start = path.read(9)
        path.seek(at)
        return start if isinstance(start, bytes) else b""
    if not os.path.isfile(named(path)):
        return b""
    with open(path, "rb") as file:
        return file.read(9)
