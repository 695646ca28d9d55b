"""`torch.distributed.tensor`: a DTensor is a global tensor, a mesh its placement, `Shard` a split, `Replicate`
broadcast, and `Partial` a partial sum.

It gives tensors `placements`, `device_mesh`, `redistribute` and `full_tensor`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

from weft.autograd import no_grad
from weft.core.errors import CONVERT, ArgumentError
from weft.core.sbp import NdSbp, broadcast
from weft.distributed import collectives
from weft.distributed.mesh import DeviceMesh, init_device_mesh
from weft.distributed.tensor.placement_types import Partial, Placement, Replicate, Shard, placement_of
from weft.functional.create import creation
from weft.functional.random import random_tensors
from weft.functional.tensor import conversion
from weft.nn.module.module import Module
from weft.nn.module.refusals import TORCHS
from weft.ops import ops
from weft.tensor.parameter import Parameter
from weft.tensor.tensor import Tensor

Placements = Sequence[Any] | None


def _layout(placements: Placements, mesh: DeviceMesh, ndim: int) -> NdSbp:
    """The sbp of placements, one for each axis of the mesh; without any, broadcast."""
    given = [Replicate()] * mesh.ndim if placements is None else [*placements]
    if len(given) != mesh.ndim:
        raise ArgumentError(f"{mesh} has {mesh.ndim} axes and takes as many placements; got {given}")
    wrong = [p for p in given if not isinstance(p, Placement)]
    if wrong:
        raise ArgumentError(f"placements are Shard(dim), Replicate() or Partial(); got {wrong[0]!r}")
    return tuple(p.sbp(ndim) for p in given)


# ---- tensors -----------------------------------------------------------------------------------------


class _Kind(type):
    def __instancecheck__(cls, x: Any) -> bool:
        return isinstance(x, Tensor) and x.is_global


class DTensor(metaclass=_Kind):
    """For isinstance: a global tensor."""

    @staticmethod
    def from_local(
        local_tensor: Tensor, device_mesh: DeviceMesh | None = None, placements: Placements = None, *,
        run_check: bool = False, shape: Any = None, stride: Any = None, grad_placements: Placements = None,
    ) -> Tensor:  # fmt: skip
        """The global tensor whose parts are the ranks' tensors, which get its gradient: in the same layout, or that of
        `grad_placements`. Replicas are trusted to agree, and parts to be equally long, unless `run_check`. Meta
        tensors become uninitialized memory."""
        mesh = device_mesh or DeviceMesh.current()
        how = _layout(placements, mesh, local_tensor.ndim)
        if local_tensor.is_meta:
            whole = shape or [
                size * math.prod(n for n, s in zip(mesh.shape, how, strict=True) if s.is_split and s.dim == dim)
                for dim, size in enumerate(local_tensor.shape)
            ]
            return creation.empty(tuple(whole), dtype=local_tensor.dtype, placement=mesh.placement, sbp=how)
        if grad_placements is not None:
            back = _layout(grad_placements, mesh, local_tensor.ndim)
            if shape is None:
                with no_grad():
                    shape = local_tensor.detach().to_global(mesh.placement, how, check_meta=run_check).shape
            return conversion.Whole.apply(local_tensor, mesh.placement, how, tuple(shape), back)
        if shape is not None:
            return ops.from_local(local_tensor, mesh.placement, how, tuple(shape))
        return local_tensor.to_global(mesh.placement, how, check_meta=run_check)


def distribute_tensor(
    tensor: Tensor, device_mesh: DeviceMesh | None = None, placements: Placements = None, *,
    src_data_rank: int | None = 0,
) -> Tensor:  # fmt: skip
    """A leaf with a tensor's value, that of the mesh's first rank. A meta tensor's becomes uninitialized memory."""
    mesh = device_mesh or DeviceMesh.current()
    how = _layout(placements, mesh, tensor.ndim)
    with no_grad():
        if tensor.is_global:
            y = ops.to_global(tensor.detach(), mesh.placement, how)
        elif tensor.is_meta:
            y = creation.empty(tuple(tensor.shape), dtype=tensor.dtype, placement=mesh.placement, sbp=how)
        else:
            whole = tensor.detach().clone()
            for group in mesh.get_all_groups() if src_data_rank is not None else ():
                collectives.broadcast(whole, group=group, group_src=src_data_rank)
            y = ops.from_local(whole, mesh.placement, (broadcast,) * mesh.ndim, tuple(whole.shape))
            y = ops.clone(ops.to_global(y, mesh.placement, how))  # the part alone
    return y.requires_grad_(tensor.requires_grad)


def redistribute(
    x: Tensor, device_mesh: DeviceMesh | None = None, placements: Placements = None, *, async_op: bool = False
) -> Tensor:
    """The same value in another layout."""
    mesh = device_mesh or device_mesh_of(x)
    return ops.to_global(x, mesh.placement, _layout(placements, mesh, x.ndim))


def full_tensor(x: Tensor, *, grad_placements: Placements = None) -> Tensor:
    """The whole as a local tensor, on each rank of the mesh."""
    return conversion.to_local(redistribute(x), grad_placements=grad_placements)


def device_mesh_of(x: Tensor) -> DeviceMesh:
    return DeviceMesh(x.placement.type, x.placement.ranks)


def placements_of(x: Tensor) -> tuple[Placement, ...]:
    return tuple(map(placement_of, x.sbp))


Tensor.redistribute, Tensor.full_tensor = redistribute, full_tensor  # type: ignore[attr-defined]
Tensor.device_mesh = property(device_mesh_of)  # type: ignore[attr-defined]
Tensor.placements = property(placements_of)  # type: ignore[attr-defined]


def _made(make: Callable[..., Tensor]) -> Callable[..., Tensor]:
    @functools.wraps(make)
    def placed(
        *size: Any, device_mesh: DeviceMesh | None = None, placements: Placements = None, **options: Any
    ) -> Tensor:
        mesh = device_mesh or DeviceMesh.current()
        shape = size[0] if len(size) == 1 and not isinstance(size[0], int) else size
        values = shape[0] if make is creation.full and len(size) == 2 else shape
        how = _layout(placements, mesh, len(values) if not isinstance(values, int) else 1)
        return make(*size, placement=mesh.placement, sbp=how, **options)

    return placed


empty, zeros, ones, full = map(_made, (creation.empty, creation.zeros, creation.ones, creation.full))
rand, randn = map(_made, (random_tensors.rand, random_tensors.randn))


# ---- modules -----------------------------------------------------------------------------------------


def distribute_module(
    module: Module, device_mesh: DeviceMesh | None = None, partition_fn: Any = None, input_fn: Any = None,
    output_fn: Any = None,
) -> Module:  # fmt: skip
    """Make a module's tensors global: by `partition_fn(name, module, mesh)`, or replicas. `input_fn(module, inputs,
    mesh)` and `output_fn(module, outputs, mesh)` prepare what goes in and out."""
    mesh = device_mesh or DeviceMesh.current()
    if not isinstance(module, Module):
        raise ArgumentError(
            f"this takes an nn.Module; got {type(module).__name__}{CONVERT * isinstance(module, TORCHS)}"
        )
    for path, inner in [*module.named_modules()]:
        if partition_fn is not None:
            partition_fn(path, inner, mesh)
        for name, t in [*inner.named_parameters(recurse=False), *inner.named_buffers(recurse=False)]:
            if t.is_local:
                spread = distribute_tensor(t, mesh)
                setattr(inner, name, Parameter(spread, t.requires_grad) if isinstance(t, Parameter) else spread)
    if input_fn is not None:
        module.register_forward_pre_hook(lambda m, inputs: input_fn(m, inputs, mesh))
    if output_fn is not None:
        module.register_forward_hook(lambda m, inputs, outputs: output_fn(m, outputs, mesh))
    return module


__all__ = [
    "DTensor", "DeviceMesh", "Partial", "Placement", "Replicate", "Shard", "distribute_module", "distribute_tensor",
    "empty", "full", "init_device_mesh", "ones", "rand", "randn", "zeros",
]  # fmt: skip
