"""`flow.hub`: torch's code; the states that it downloads are read by `flow.load`, also OneFlow's, zipped folders."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from typing import Any

from weft.checkpoint.checkpoint import load
from weft.checkpoint.foreign import PICKLED
from weft.core.derived import Derived


def _zipfile() -> Any:
    return importlib.import_module("zipfile")  # when it is needed: importing weft is quick


def _with_folders(theirs: Callable[[str], bool]) -> Callable[[str], bool]:
    return lambda file: theirs(file) or bool(_oneflows(file))


def _read(theirs: Callable[..., Any]) -> Callable[..., Any]:
    def read(file: str, folder: str, map_location: Any, weights_only: bool) -> Any:
        inner = _oneflows(file)
        if not inner:
            return theirs(file, folder, map_location, weights_only)
        with _zipfile().ZipFile(file) as archive:
            archive.extractall(folder)
        return load(os.path.join(folder, inner[0]), map_location)

    return read


def _oneflows(file: str) -> list[str]:
    """The folders in an archive that OneFlow saved."""
    if not _zipfile().is_zipfile(file):
        return []
    with _zipfile().ZipFile(file) as archive:
        return [os.path.dirname(n) for n in archive.namelist() if os.path.basename(n) == PICKLED]


Derived("weft.hub", "torch.hub", {"": {"_is_legacy_zip_format": _with_folders, "_legacy_zip_load": _read}})
