"""Parsing of the key in `x[...]`: ints, slices, None and Ellipsis give views, tensors and lists gather."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from weft.core.dispatch import here
from weft.core.dtype import int8, uint8
from weft.core.errors import ArgumentError, IndexingError, OptionError
from weft.core.program_line import warn
from weft.core.sbp import broadcast
from weft.functional.create import creation
from weft.ops import OPS, ops
from weft.ops.declaration import Op
from weft.tensor.data import local_data
from weft.tensor.tensor import Tensor, of_torch

Step = tuple[Op, tuple[Any, ...]]
INTS = frozenset({int})
NUMBERS = INTS | {bool}
LONG = 32  # a list with this many elements is an index, as in torch


def meant(key: Any) -> Any:
    """A key as torch reads it: a short sequence with slices, sequences or None inside is a tuple."""
    if type(key) is list and NUMBERS.issuperset(map(type, key)):
        return key
    if isinstance(key, (tuple, Tensor, np.ndarray, torch.Tensor)) or not _sequence(key) or len(key) >= LONG:
        return key
    if not any(k is None or k is Ellipsis or isinstance(k, (slice, Tensor)) or _sequence(k) for k in key):
        return key
    warn(
        "Using a non-tuple sequence for multidimensional indexing is deprecated: x[[a, b]] is read as x[a, b] here, as "
        "in the torch that is installed, and will be x[flow.tensor([a, b])]. Write the one that you mean"
    )
    return tuple(key)


def _sequence(k: Any) -> bool:
    return hasattr(type(k), "__getitem__") and hasattr(type(k), "__len__") and not isinstance(k, (dict, np.generic))


def positions_listed(x: Tensor, key: list[Any]) -> Tensor | None:
    """A list of ints as a tensor on x's device, if both are local and no graph is traced; else None."""
    if here.trace is not None or x.spec is not None or not x.ndim or not key or not INTS.issuperset(map(type, key)):
        return None
    data = x.blob.data
    if data is None or data.device.type != "cpu":
        return None
    try:
        return of_torch(torch.tensor(key))
    except (RuntimeError, OverflowError):
        return None


def positions_alone(x: Tensor, key: Tensor) -> bool:
    """Whether a key is an index tensor on x's device, both local, and no graph is traced."""
    return _local(x, key, torch.int64) and x.ndim > 0 < key.ndim


def positions_by_dim(x: Tensor, key: tuple[Any, ...]) -> list[Tensor | None] | None:
    """The index tensors of a key that has only such, and `:`, for which it has None; None for any other key."""
    found: list[Tensor | None] = []
    for k in key:
        if type(k) is Tensor and positions_alone(x, k):
            found.append(k)
        elif type(k) is slice and k.start is None and k.stop is None and k.step is None:
            found.append(None)
        else:
            return None
    return found if len(found) <= x.ndim and any(k is not None for k in found) else None


def mask_alone(x: Tensor, key: Tensor) -> bool:
    """Whether a key is a mask of x's shape on x's device, both local, and no graph is traced."""
    return _local(x, key, torch.bool) and x.ndim > 0 and x.shape == key.shape


def leading_mask(x: Tensor, key: Tensor) -> bool:
    """Whether a key is a mask of x's first dimensions on x's device, both local, and nothing intercepts calls."""
    return here.plain and _local(x, key, torch.bool) and 0 < key.ndim <= x.ndim and x.shape[: key.ndim] == key.shape


def _local(x: Tensor, key: Tensor, dtype: torch.dtype) -> bool:
    if here.trace is not None or x.spec is not None or key.spec is not None:
        return False
    a, b = x.blob.data, key.blob.data
    return a is not None and b is not None and b.dtype is dtype and a.device == b.device


def parse(x: Tensor, key: Any) -> tuple[list[Step], list[Tensor | None]]:
    """The views that a key asks for, in order, and the tensor to gather by per dimension of the last view."""
    keys = list(key) if isinstance(key, tuple) else [key]
    keys = [_normal(k) for k in keys]
    used = sum(_dims(k) for k in keys)
    if used > x.ndim:
        raise IndexingError(f"too many indices for tensor of dimension {x.ndim}: {used} for shape {list(x.shape)}")
    if not any(k is Ellipsis for k in keys):
        keys.append(Ellipsis)
    steps: list[Step] = []
    gathered: list[Tensor | None] = []
    shape, dim, source = list(x.shape), 0, 0
    for k in keys:
        if k is Ellipsis:  # each stands for as many dimensions, as in torch: a second one goes past the last
            gathered.extend([None] * (x.ndim - used))
            source, dim = source + x.ndim - used, dim + x.ndim - used
            continue
        if dim + _dims(k) > len(shape) and not (isinstance(k, slice) and k == slice(None)):
            raise IndexingError(
                f"Dimension out of range (expected to be in range of [{-len(shape)}, {len(shape) - 1}], but got "
                f"{dim}): the first ... of x{list(key)} stands for all dimensions that it doesn't name; leave the "
                "others away"
            )
        if k is None:
            steps.append((OPS["unsqueeze"], (dim,)))
            shape.insert(dim, 1)
        elif isinstance(k, bool):
            steps.append((OPS["unsqueeze"], (dim,)))
            shape.insert(dim, 1)
            gathered.append(on_device_of(x, creation.tensor([k])))
            dim += 1
            continue
        elif isinstance(k, int):
            check_index(k, source, x.shape)
            steps.append((OPS["select"], (dim, k)))
            del shape[dim]
            source += 1
            continue
        elif isinstance(k, slice):
            span = (0, 0, 1) if dim >= len(shape) else span_of(k, shape[dim])
            if dim < len(shape) and span != (0, shape[dim], 1):
                steps.append((OPS["narrow"], (dim, *span)))
                shape[dim] = span[1]
            source += 1
        elif not _dims(k):  # one bool for the whole tensor
            steps.append((OPS["unsqueeze"], (dim,)))
            shape.insert(dim, 1)
            gathered.append(ops.reshape(on_device_of(x, k), (1,)))
            dim += 1
            continue
        else:
            k = on_device_of(x, k)
            gathered.append(k)
            gathered.extend([None] * (_dims(k) - 1))  # a mask covers several
            source, dim = source + _dims(k), dim + _dims(k)
            continue
        gathered.append(None)
        dim += 1
    return steps, gathered[: len(shape)]


def _normal(k: Any) -> Any:
    if k is None or k is Ellipsis or isinstance(k, (slice, bool)):
        return k
    if isinstance(k, Tensor):
        if k.dtype.is_floating_point or k.dtype.is_complex:
            raise IndexingError(
                f"tensors used as indices must be long, int, byte or bool tensors, positions or masks; got {k.dtype}: "
                "cast it, i.long()"
            )
        if k.dtype is uint8:
            warn("indexing with dtype torch.uint8 is now deprecated: that is a mask; write mask.bool(), or i.long()")
        if k.dtype is int8:  # torch refuses it; OneFlow's comparisons once gave it
            return k.bool()
        if not k.ndim and here.plain and k.value is None and k.spec is None and not is_mask(k):
            return k.__index__() if k.device.type == "cpu" else k  # a 0-d tensor with data gives a view
        return k
    if isinstance(k, np.bool_):
        return bool(k)
    if isinstance(k, torch.Tensor):
        return _normal(of_torch(k))
    if isinstance(k, np.ndarray) and k.dtype.kind in "iu" and k.dtype != np.uint8:  # uint8 is a mask
        k = k.astype(np.int64)
    if isinstance(k, (list, tuple, range, np.ndarray)):
        if isinstance(k, (list, tuple)) and any(isinstance(t, Tensor) and t.numel() != 1 for t in k[:1]):
            raise ArgumentError(
                "only integer tensors of a single element can be converted to an index: of tensors with more, join "
                "them (flow.stack([a, b])), or index by each in turn (x[a, b])"
            )
        made = creation.tensor(list(k) if isinstance(k, range) else k)
        nothing = not made.numel() and made.dtype.is_floating_point  # an empty list has no dtype of its own
        return made.long() if nothing else _normal(made)
    try:
        return k.__index__()
    except (AttributeError, TypeError):
        kind = ArgumentError if isinstance(k, (str, bytes)) else IndexingError  # TypeError, as in torch
        raise kind(
            f"an index is an int, a slice, None, ..., a tensor or a list; got {type(k).__name__} ({k!r})"
        ) from None


def _dims(k: Any) -> int:
    """How many dimensions a key indexes."""
    if k is None or k is Ellipsis or isinstance(k, bool):
        return 0
    return k.ndim if isinstance(k, Tensor) and is_mask(k) else 1


def is_mask(t: Tensor) -> bool:
    return t.dtype.name in ("bool", "uint8")


def check_index(k: int, dim: int, shape: Any) -> None:
    n = shape[dim]
    if not -n <= k < n:
        raise IndexingError(
            f"index {k} is out of bounds for dimension {dim} with size {n}, in shape {list(shape)}: "
            f"out of range({-n}, {n})"
        )


def span_of(s: slice, n: int) -> tuple[int, int, int]:
    """start, length, step."""
    try:
        back = s.step is not None and s.step <= 0
        start, stop, step = (0, 0, 1) if back else s.indices(n)
    except TypeError:
        raise ArgumentError(f"slice indices must be integers or None or have an __index__ method; got {s}") from None
    if back:
        raise OptionError(f"step must be greater than zero; got {s.step}: write x.flip(dim)")
    return start, max(0, -(-(stop - start) // step)), step


def on_device_of(x: Tensor, k: Tensor) -> Tensor:
    """An index on x's device; for a global x, a local index is taken as equal on every rank."""
    if x.spec is not None and k.spec is None:
        return creation.placed(
            "index", local_data(k, "index"), None, x.placement, (broadcast,) * x.placement.ndim, False
        )
    if x.spec is None and x.value is None and k.spec is None and k.value is None and k.device is not x.device:
        return k.to(x.device)
    return k
