"""`python -m weft.launch.call module:function arguments`: what `spawn` runs in each process."""

from __future__ import annotations

import importlib
import runpy
import sys

from weft.core.errors import ArgumentError


def main(target: str, *args: str) -> None:
    place, _, name = target.rpartition(":")
    if place.endswith(".py"):
        found = runpy.run_path(place).get(name)
    else:
        found = getattr(importlib.import_module(place), name, None)
    if found is None:
        raise ArgumentError(f"{place} has no {name!r}; a target is 'package.module:function' or 'file.py:function'")
    found(*args)


if __name__ == "__main__":
    main(*sys.argv[1:])
