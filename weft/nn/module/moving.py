"""Moves of a module's tensors: arguments of `to`, devices and dtypes, layouts over a placement."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch

from weft.core import dtype as dtypes
from weft.core import sbp as sbps
from weft.core.device import Device
from weft.core.dtype import DType
from weft.core.errors import ArgumentError, DtypeError, SbpError
from weft.core.placement import Placement, placed_at
from weft.core.sbp import Sbp, broadcast
from weft.functional.create import creation
from weft.functional.tensor.conversion import counted_as
from weft.functional.tensor.memory_format import check, formatted
from weft.functional.tensor.sparse import to_dense
from weft.nn.module.layout_rules import by_names
from weft.ops import ops
from weft.ops.kernels import FORMATS
from weft.tensor.parameter import is_lazy
from weft.tensor.tensor import Tensor


def where_to(*args: Any, **kwargs: Any) -> tuple[Device | None, DType | None, Any]:
    """The device, the dtype and the memory format that arguments of `to` say."""
    device, dtype = kwargs.pop("device", None), kwargs.pop("dtype", None)
    kwargs.pop("non_blocking", None)  # ignored
    memory_format = kwargs.pop("memory_format", None)
    check(memory_format)
    if kwargs:
        raise ArgumentError(f"Module.to() got an unexpected argument {next(iter(kwargs))!r}; it takes device and dtype")
    for a in args:
        if isinstance(a, Tensor):
            device, dtype = (None if a.is_global else a.device), a.dtype
        elif isinstance(a, (str, Device, torch.device)) and device is None:
            device = a
        elif isinstance(a, bool):
            continue  # torch's third argument, non_blocking
        elif a is not None:
            dtype = a
    dtype = None if dtype is None else dtypes.of(dtype)
    if dtype is not None and not dtype.differentiable:
        raise DtypeError(f"a module's dtype must be floating point; got {dtype}")
    return None if device is None else Device(device).check(), dtype, memory_format


def of_kind(module: Any, kind: Any) -> Any:
    """OneFlow's `to` with a class: a module itself by to(nn.Module), the tracing graph's block of it by
    to(nn.graph.GraphModule)."""
    if not isinstance(kind, type):
        return None
    return module if isinstance(module, kind) else kind.of(module) if hasattr(kind, "of") else None


def sent(module: Any, *args: Any, **kwargs: Any) -> Any:
    """`module.to`, for methods that a subclass's `to` may call."""
    device, dtype, memory_format = where_to(*args, **kwargs)
    return module._apply(lambda t: moved(t, device, dtype, memory_format))


def moved(t: Tensor, device: Device | None, dtype: DType | None, memory_format: Any = None) -> Tensor:
    before = t
    if device is not None and (t.is_global or t.device is not device):
        t = t.to(device)
    if dtype is not None and t.dtype.differentiable and t.dtype is not dtype:
        t = ops.cast(t, dtype)
    return formatted(t, memory_format, t is before) if len(t.shape) in FORMATS else t


def spreading(module: Any, placement: Placement | None, sbp: Any) -> Callable[[Tensor], Tensor]:
    """A function that converts a module's tensors to a layout; `sbp` may be a function of a tensor's path and
    itself."""
    placement = None if placement is None else placed_at("to_global", placement)
    if isinstance(sbp, Mapping):
        sbp = by_names(module, sbp, placement)
    members = [*module.named_parameters(), *module.named_buffers()]
    members = [(path, t.data if is_lazy(t) else t) for path, t in members]
    paths = {id(t): path for path, t in members} | {id(t.grad): path for path, t in members}
    owners = {id(t.grad): t for _, t in members if t.grad is not None}

    def spread(t: Tensor) -> Tensor:
        path = paths.get(id(t), "a tensor that isn't a member")
        part = owners[id(t)].part_of if id(t) in owners else None
        t = to_dense(t) if id(t) in owners else t
        if part is not None and t.is_local and t.part_of is None:  # the gradient of a shard
            t = t.detach()
            t.part_of = part.replace(nd_sbp=tuple(broadcast if s.is_partial else s for s in part.nd_sbp))
        where = placement if placement is not None else t.placement if t.is_global else None
        if where is not None and t.is_local and t.part_of is not None:  # rules get the same tensor on every rank
            t = ops.from_local(t, t.part_of.placement, t.part_of.nd_sbp, None)
        wanted: Any = sbp(path, t) if callable(sbp) and not isinstance(sbp, Sbp) else sbp
        wanted = t.sbp if wanted is None and t.is_global else wanted
        if where is None or wanted is None:
            raise SbpError(
                f"to_global: `{path}` is local, so both are needed: "
                "module.to_global(placement=flow.placement(...), sbp=flow.sbp.broadcast)"
            )
        return laid_out(t, where, sbps.nd(wanted, where.ndim, t.ndim))

    return spread


def laid_out(x: Tensor, placement: Placement, nd_sbp: Any) -> Tensor:
    """A tensor in a global layout. A local one is the part that it was, or holds the whole; the first rank's counts.
    One on meta becomes uninitialized memory."""
    if x.is_meta:
        return creation.empty(tuple(x.shape), dtype=x.dtype, placement=placement, sbp=nd_sbp)
    if x.is_local:
        x = ops.from_local(x, *counted_as(x, placement), None)
    return ops.to_global(x, placement, nd_sbp)
