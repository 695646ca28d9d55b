"""A rank's part of a call with a signature: its kernel, and its local attributes."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import torch

from weft.boxing.signature import Signature
from weft.core.device import Device
from weft.core.dtype import DType
from weft.core.errors import DeviceError
from weft.core.placement import Placement
from weft.core.rank import current
from weft.ops.declaration import Op, Where

CPU = Device("cpu")


def where_of(chosen: Signature, rank: int) -> tuple[Any, ...] | None:
    """A ranked kernel's position, as plain tuples: see `ops.declaration.Where`; None for a plain kernel."""
    if not chosen.ranked:
        return None
    inputs, outputs = (tuple(s.box(rank) or () for s in specs) for specs in (chosen.inputs, chosen.outputs))
    return inputs, tuple(s.shape for s in chosen.inputs), outputs


def kernel_of(op: Op, where: tuple[Any, ...] | None) -> Callable[..., Any]:
    """The plain kernel, or the ranked one bound to its position."""
    if where is None:
        return op.trusted  # what is unfit was refused when its form was inferred
    assert op.ranked_kernel is not None, f"{op.name}: a layout is marked @, but there is no ranked kernel"
    return functools.partial(op.ranked_kernel, Where(*where))


def local_arguments(op: Op, args: tuple[Any, ...], chosen: Signature, rank: int) -> tuple[Any, ...]:
    """The attributes for the local kernel: a logical output shape becomes this rank's.

    A random op draws the whole, of which each rank keeps its slice, so that the draw doesn't depend on the layout.
    """
    local = list(args)
    if op.shape_of:
        spec = chosen.outputs[0]
        local[op.names.index(op.shape_of)] = spec.shape if op.random else spec.local_shape(rank)
    if "device" in op.names and op.placed is not None:
        local[op.names.index("device")] = device_of(chosen.placement)
    return tuple(local)


def pass_over(
    op: Op, args: tuple[Any, ...], forms: Sequence[tuple[Sequence[int], DType]], device: torch.device
) -> None:
    """Advance the generator as the op's kernel does, by drawing and discarding, so that the next draw is the same on
    all ranks.

    `args` are its local arguments, `forms` its operands': how much it draws doesn't depend on their values.
    """
    given, found = list(args), iter(forms)
    for i in op.operands:
        shape, dtype = next(found)
        given[i] = torch.full(tuple(shape), 0.5, dtype=dtype.torch, device=device)
    op.kernel(*given)


def device_of(placement: Placement) -> Device:
    """The device of this rank's shards of a placement."""
    return own_device(placement.type)


def own_device(type: str) -> Device:
    """This rank's device of a type: the GPUs of a host are assigned to its ranks round-robin."""
    if type == "cpu":
        return CPU
    if not torch.cuda.is_available():
        raise DeviceError(f"placements of type {type!r} need CUDA devices, but torch sees none here; use type 'cpu'")
    return Device("cuda", current().local_index % torch.cuda.device_count())
