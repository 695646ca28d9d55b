"""The file: safetensors, with a structure as JSON in its header. Written beside its place, then moved there at once."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import safetensors
import safetensors.torch
import torch

from weft.core.errors import CheckpointError

STRUCTURE, VERSION = "weft.structure", "weft.version"
INSIDE = "checkpoint.safetensors"  # the file's name in a folder, where one is given


def write(path: Any, form: Any, tensors: Mapping[str, torch.Tensor]) -> None:
    """All of it, or nothing: readers see the old file until the new one is whole and on the disk."""
    data = safetensors.torch.save(_plain(tensors), {STRUCTURE: json.dumps(form), VERSION: "1"})
    if hasattr(path, "write"):
        path.write(data)
        return
    target = Path(path)
    if target.is_dir():
        target = target / INSIDE
    handle, beside = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(handle, "wb") as out:
            out.write(data)
            out.flush()
            os.fsync(out.fileno())
        os.chmod(beside, 0o666 & ~_umask())
        os.replace(beside, target)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(beside)
        raise
    folder = os.open(target.parent, os.O_RDONLY)
    try:
        os.fsync(folder)  # the name, too
    finally:
        os.close(folder)


def _umask() -> int:
    now = os.umask(0)
    os.umask(now)
    return now


def _plain(tensors: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """On the CPU, contiguous, each in memory of its own: what the format takes."""
    seen: set[int] = set()
    plain = {}
    for name, t in tensors.items():
        t = t.detach().cpu().contiguous()
        if t.untyped_storage().nbytes() != t.numel() * t.element_size() or t.data_ptr() in seen:
            t = t.clone()
        seen.add(t.data_ptr())
        plain[name] = t
    return plain


def read(path: Any) -> tuple[Any, dict[str, torch.Tensor]]:
    """The structure, None in files that others wrote, and the tensors."""
    try:
        if hasattr(path, "read"):
            data = path.read()
            header = _header(data)
            return _form(header), safetensors.torch.load(data)
        if os.path.isdir(path) and os.path.isfile(os.path.join(path, INSIDE)):
            path = os.path.join(path, INSIDE)
        if os.path.isdir(path):
            raise CheckpointError(
                f"{path} is a folder without {INSIDE}; a checkpoint of Weft is one file. OneFlow saves folders of "
                "many: load it there, and save the values with safetensors"
            )
        with safetensors.safe_open(path, framework="pt", device="cpu") as file:
            return _form(file.metadata() or {}), {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (safetensors.SafetensorError, ValueError, UnicodeDecodeError) as cause:
        if isinstance(cause, CheckpointError):
            raise
        raise CheckpointError(_why(path, cause)) from cause


def _header(data: bytes) -> dict[str, str]:
    size = int.from_bytes(data[:8], "little")
    return json.loads(data[8 : 8 + size]).get("__metadata__", {})


def _form(metadata: Mapping[str, str]) -> Any:
    text = metadata.get(STRUCTURE)
    return None if text is None else json.loads(text)


def _why(path: Any, cause: Exception) -> str:
    if hasattr(path, "read"):
        return f"these bytes are no checkpoint, or not all of one: {cause}"
    size = os.path.getsize(path)
    with open(path, "rb") as file:
        start = file.read(8)
    if start[:4] == b"PK\x03\x04" or start[:2] == b"\x80\x02":
        return (
            f"{path} is a pickle, as torch.save writes it, and loading one can run code. If you trust it, convert it: "
            "safetensors.torch.save_file(torch.load(path, weights_only=True), 'model.safetensors')"
        )
    header = int.from_bytes(start, "little")
    if len(start) == 8 and 0 < header < 100_000_000 and size < 8 + header:
        return f"{path} was cut off: it has {size} bytes, its header alone {8 + header}. Copy or download it again"
    if "Incomplete" in str(cause) or "buffer" in str(cause).lower() or "InvalidOffset" in str(cause):
        return f"{path} was cut off, or overwritten: it has {size} bytes, not what its header says ({cause})"
    return f"{path} is no safetensors file ({cause}); flow.save writes one, and so do most hubs of models"
