"""Modules, parameters and layers, written with public functions alone."""

import itertools
import sys
from typing import Final

import torch

from weft.api import surface
from weft.core.derived import GIVEN, lazily
from weft.nn import attention, functional, init, layers, utils
from weft.nn.module.hooks import of_every_module
from weft.nn.module.module import Module
from weft.nn.oneflow import cells, quantization
from weft.tensor.parameter import Buffer, Parameter, UninitializedBuffer, UninitializedParameter

HOMES: Final = surface.by_file("nn", __name__)  # each file is read when a program first asks for one of its names


def _bases(file: str) -> list[str]:
    """What layers of a file inherit from, which nn.modules has, too."""
    path = f"torch.nn.modules.{file.removeprefix('layers.')}"
    kinds = [v for v in vars(sys.modules[path]).values() if isinstance(v, type)] if path in sys.modules else []
    own = [k for k in kinds if k.__module__ == path and issubclass(k, torch.nn.Module)]
    return [k.__name__ for k in own if k.__name__[0] == "_"]


BASES: Final = {file: _bases(file) for file in HOMES}

GIVEN.update({f"torch.nn.modules.{file}": sys.modules[__name__] for file in layers.FILES})
__getattr__ = lazily(__name__, {file: names + BASES[file] for file, names in HOMES.items()})

READ: Final = (attention, cells, quantization)  # at once, as they add to the table of functions
HERE: Final = {k.__name__: k for k in (Module, Buffer, Parameter, UninitializedBuffer, UninitializedParameter)}
EVERY: Final = sorted({*HERE, *(name for names in HOMES.values() for name in names)})
OF_MODULES: Final = {  # what nn.modules has
    "__getattr__": __getattr__, "__dir__": lambda: [*EVERY, *itertools.chain(*BASES.values())], "__all__": EVERY,
    "__doc__": __doc__, **HERE,
    **{f.__name__: f for f in of_every_module(Module)},
}  # fmt: skip
__all__ = [*EVERY, "cells", "functional", "init", "utils"]  # pyright: ignore[reportUnsupportedDunderAll]
