"""`torch.save` and `torch.load` under `flow.mock_torch`: any object, in torch's format, which torch reads, too.

Its pickles name torch's tensors where the program has Weft's. A program that reads one and asks for objects
(`weights_only=False`) gets what the mock has under these names; otherwise data alone is read, and no code is run.
"""

from __future__ import annotations

import inspect
import pickle
from types import FunctionType, SimpleNamespace
from typing import Any, BinaryIO, Final

import torch

from weft.api.table import lookup
from weft.checkpoint import checkpoint, place
from weft.checkpoint.foreign import is_torchs
from weft.core.device import Device
from weft.interop.entering import outside_of_modules
from weft.interop.mock_torch import named
from weft.interop.torch_modules import as_torchs, data_of, facade_over
from weft.tensor.parameter import Parameter
from weft.tensor.tensor import Tensor

WEFT: Final = __name__.partition(".")[0]


class _Global(Exception):
    """A tensor of several ranks, of which one writes."""


def save(
    obj: Any, f: Any, pickle_module: Any = pickle, pickle_protocol: int = 2, _use_new_zipfile_serialization: bool = True
) -> None:
    """Write any object, as torch does, atomically. One with global tensors is a file of Weft's, which all ranks write
    together."""

    class Pickler(pickle_module.Pickler):
        def reducer_override(self, v: Any) -> Any:
            if isinstance(v, Tensor):
                if v.is_global:
                    raise _Global
                reduced: Any = v.__reduce_ex__(pickle_protocol)
                as_theirs = as_torchs(v)
                vars(as_theirs).update(reduced[2] or {})
                return as_theirs.__reduce_ex__(pickle_protocol)
            if type(v) is FunctionType and v.__module__.startswith(f"{WEFT}."):
                ways = ((lookup, (home, v.__name__)) for home in ("flow", "neural") if lookup(home, v.__name__) is v)
                return next(ways, NotImplemented)
            return v.torch.__reduce__() if isinstance(v, Device) else NotImplemented

    pickling = SimpleNamespace(**{**vars(pickle_module), "Pickler": Pickler})

    def write(file: BinaryIO | Any) -> None:
        inspect.unwrap(torch.save)(obj, file, pickling, pickle_protocol, _use_new_zipfile_serialization)

    try:
        with outside_of_modules():
            write(f) if hasattr(f, "write") else place.replace(f, write)
    except _Global:
        checkpoint.save(obj, f)


def load(
    f: Any, map_location: Any = None, pickle_module: Any = None, *, weights_only: bool | None = None,
    mmap: bool | None = None, **options: Any,
) -> Any:  # fmt: skip
    """Read data; with `weights_only=False` or a `pickle_module`, as torch does, any object."""
    if weights_only or (weights_only is None and pickle_module is None) or not is_torchs(f):
        return checkpoint.load(f, map_location, weights_only=weights_only, mmap=mmap, **options)
    pickle_module = pickle_module or pickle

    class Unpickler(pickle_module.Unpickler):
        def find_class(self, module: str, name: str) -> Any:
            if module.partition(".")[0] != "torch":
                return super().find_class(module, name)
            return _rebuilding(super().find_class(module, name)) if name.startswith("_rebuild") else named(module, name)

    pickling = SimpleNamespace(**{**vars(pickle_module), "Unpickler": Unpickler})
    location = map_location.torch if isinstance(map_location, Device) else map_location
    return inspect.unwrap(torch.load)(f, location, pickling, weights_only=False, mmap=mmap, **options)


def _rebuilding(theirs: Any) -> Any:
    """What makes a tensor of torch's from parts, and here one of Weft's."""

    def rebuilt(*parts: Any) -> Any:
        made = theirs(*map(data_of, parts))
        if not isinstance(made, torch.Tensor) or made.layout is not torch.strided:
            return made
        ours = facade_over(made).of
        return ours if isinstance(ours, Parameter) else ours.requires_grad_(made.requires_grad)

    return rebuilt
