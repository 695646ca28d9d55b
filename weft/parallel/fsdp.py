"""Fully-sharded data parallelism (FSDP), eagerly: each rank trains on its own data and holds a shard of each parameter.

A sharded parameter is a global tensor, split along its first dimension; so optimizers, clipping and checkpoints treat
it like any other. While its module computes, it is replaced by a local tensor of the whole: all-gathered before
forward, freed after it, and gathered again, into the same tensor, for backward. Its gradient is reduce-scattered as
soon as backward has made it. These are the movements of a graph under ZeRO's stage 3, with the same buckets: large
tensors are moved without copies.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from typing import Any, Final, TypeVar

import torch

from weft.core.errors import ArgumentError, OptionError
from weft.core.placement import Placement
from weft.core.rank import current
from weft.core.stored import stored
from weft.nn.module.module import Module
from weft.parallel.gathering import Parts
from weft.parallel.policies import MixedPrecisionPolicy
from weft.parallel.sharded import KEY
from weft.tensor.tensor import Tensor

M = TypeVar("M", bound=Module | Sequence[Module])
SETTINGS: Final = ("requires_gradient_sync", "requires_all_reduce", "reshard_after_forward")
IDLE: Final = (  # when whole parameters are freed or gathered beyond that, and the order of dividing and summing
    "is_last_backward", "reshard_after_backward", "unshard_in_backward", "force_sum_reduction_for_comms",
)  # fmt: skip


class _Kind(type):
    def __instancecheck__(cls, module: Any) -> bool:
        return isinstance(module, Module) and KEY in stored(module)


class FSDPModule(metaclass=_Kind):
    """For isinstance: a module to which `fully_shard` was applied, which keeps its type."""


def fully_shard(
    module: M, *, mesh: Any = None, reshard_after_forward: bool | None = None,
    ignored_params: Iterable[Tensor] | None = None, mp_policy: Any = None, offload_policy: Any = None,
    shard_placement_fn: Any = None,
) -> M:  # fmt: skip
    """Shard a module's parameters over the ranks, except those that an inner module has sharded already; returns the
    module itself. Those of several modules, in a list, are gathered when the first of them begins, and freed when all
    have run.

    Apply it to layers first, from the inside out, and to the model last: the parameters of one call are gathered and
    freed together. Parameters and buffers are broadcast from the first rank. Gradients are the mean over the ranks.
    With `reshard_after_forward=False` whole parameters are kept from forward to backward; by default only the outermost
    module does so, as its backward begins at once. All ranks use the same parameters in the same order.

    A mesh of two axes has replicas along the first, and splits along the second. Parameters that lie on another axis of
    the same mesh, by tensor parallelism, are split inside their parts.

    With a `MixedPrecisionPolicy` whole parameters and gradients have other dtypes than the shards. Parameters on the
    meta device become uninitialized shards, for `module.to_empty(device=...)` and an initialization. Offload policies
    have no effect on modules on the CPU, and are refused on CUDA.

    The module gets PyTorch's methods `unshard()`, `reshard()`, `set_requires_gradient_sync(bool)`,
    `set_requires_all_reduce(bool)`, `set_reshard_after_forward(bool)`, `set_gradient_divide_factor(factor)`,
    `set_modules_to_forward_prefetch(modules)` and `set_modules_to_backward_prefetch(modules)`.
    """
    if shard_placement_fn is not None:
        raise OptionError(
            "fully_shard(shard_placement_fn=...): parameters are split along dim 0; make them global in a layout of "
            "your own instead"
        )
    modules = [module] if isinstance(module, Module) else [*module] if isinstance(module, (list, tuple)) else []
    if not (modules and all(isinstance(m, Module) for m in modules)):
        raise ArgumentError(f"fully_shard takes a module, or a list of modules; got {type(module).__name__}")
    for inner in modules:
        if KEY in stored(inner):
            raise ArgumentError(f"fully_shard was applied to this {type(inner).__name__} before")
    if mesh is not None and mesh.ndim > 2:
        raise ArgumentError(
            f"fully_shard takes a mesh of one axis, over which it splits, or of two, for replicas and for splits; this "
            f"one has {mesh.ndim}: {mesh}"
        )
    place = Placement(_kind(modules), range(current().world_size)) if mesh is None else mesh.placement
    if place.type == "cuda" and getattr(offload_policy, "pin_memory", None) is not None:
        raise OptionError("fully_shard(offload_policy=CPUOffloadPolicy()): shards of modules on CUDA stay there")
    ignored = {id(p) for p in ignored_params or ()}
    policy = MixedPrecisionPolicy.of(mp_policy)
    parts = Parts(modules, place, ignored, reshard_after_forward, policy, mesh)
    for inner in modules:
        own = stored(inner)
        own.update({KEY: parts, "reshard": parts.reshard, "unshard": functools.partial(_unshard, parts)})
        own["set_gradient_divide_factor"] = functools.partial(setattr, parts, "divisor")
        for name in (*SETTINGS, *IDLE):
            own[f"set_{name}"] = functools.partial(_set, inner, name)
        for name in ("forward", "backward"):
            own[f"set_modules_to_{name}_prefetch"] = functools.partial(parts.prefetch, name)
    return module


def _kind(modules: list[Module]) -> str:
    """The type of device of their parameters; of those on the meta device, where they will be."""
    found = (p.placement.type if p.is_global else p.device.type for m in modules for p in m.parameters())
    usual = "cuda" if torch.cuda.is_available() else "cpu"
    return next((kind for kind in found if kind != "meta"), usual)


def _set(module: Module, name: str, value: bool, *, recurse: bool = True) -> None:
    for inner in module.modules() if recurse else (module,):
        if KEY in stored(inner):
            setattr(stored(inner)[KEY], name, bool(value))


class UnshardHandle:
    """What `unshard(async_op=True)` gives: who reads the parameters waits for them by itself, except on CUDA."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def wait(self) -> None:
        self._parts.settle()


def _unshard(parts: Parts, async_op: bool = False) -> UnshardHandle | None:
    parts.unshard(ahead=async_op)
    return UnshardHandle(parts) if async_op else None


def scatter_gradients(module: Any) -> None:
    """Take the mean of the gradients that backwards without sync have summed in it."""
    _set(module, "requires_gradient_sync", True)
    for inner in module.modules():
        if KEY in stored(inner):
            stored(inner)[KEY].finish()


def register_fsdp_forward_method(module: Module, method_name: str) -> None:
    """Let a method gather the parameters and free them as `forward` does; without effect on other modules."""
    if KEY not in stored(module):
        return
    parts, method = stored(module)[KEY], getattr(module, method_name)

    @functools.wraps(method)
    def gathered(*args: Any, **named: Any) -> Any:
        cast = parts.before_forward(module, args, named)
        args, named = (args, named) if cast is None else cast
        result = method(*args, **named)
        cast = parts.after_forward(module, args, result)
        return result if cast is None else cast

    stored(module)[method_name] = gathered
