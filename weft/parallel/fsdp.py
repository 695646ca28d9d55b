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
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import torch

from weft.autograd import no_grad
from weft.autograd.graph import at_end_of_backward, passing
from weft.autograd.sweep import accumulate
from weft.autograd.trees import leaves, mapped
from weft.boxing.execute import execute, execute_together
from weft.boxing.lowering import LocalStep
from weft.compiler import buckets
from weft.core import dtype as dtypes
from weft.core.dispatch import here, hooks
from weft.core.dtype import DType
from weft.core.errors import ArgumentError, OptionError, TraceError
from weft.core.placement import Placement
from weft.core.rank import current
from weft.core.sbp import broadcast, split
from weft.functional.create import creation
from weft.nn.module.module import Module
from weft.ops import ops
from weft.tensor.blob import blob_of
from weft.tensor.data import local_data
from weft.tensor.parameter import Parameter
from weft.tensor.tensor import Tensor, of_shard, of_torch
from weft.transport import transport_of
from weft.transport.base import Group
from weft.transport.line import Line

M = TypeVar("M", bound=Module)
LINE: Final = "parts"  # a separate line, as gathers and scatters overlap with the program's own collectives
KEY: Final = "_parts"  # the attribute of a sharded module for its `Parts`
MOVED: Final = "fully_shard(): {} is {}: parameters are to be local, each rank's alike, and become global here"


IDLE: Final = ("set_is_last_backward", "set_requires_all_reduce")  # that is, there are no replicas to wait for


@dataclass(frozen=True)
class MixedPrecisionPolicy:
    """The dtypes in which a module computes, gradients are summed, and outputs are returned; `cast_forward_inputs`
    casts its inputs to `param_dtype`. Shards and their gradients keep the parameter's dtype."""

    param_dtype: DType | None = None
    reduce_dtype: DType | None = None
    output_dtype: DType | None = None
    cast_forward_inputs: bool = True

    @staticmethod
    def of(given: Any) -> MixedPrecisionPolicy:
        """A policy from one of ours, or torch's, or None."""
        names = ("param_dtype", "reduce_dtype", "output_dtype")
        if given is not None and not all(hasattr(given, name) for name in (*names, "cast_forward_inputs")):
            raise ArgumentError(f"fully_shard(mp_policy=...) takes a MixedPrecisionPolicy; got {given!r}")
        found = {name: getattr(given, name, None) for name in names}
        kinds: dict[str, Any] = {name: None if d is None else dtypes.of(d) for name, d in found.items()}
        return MixedPrecisionPolicy(**kinds, cast_forward_inputs=getattr(given, "cast_forward_inputs", True))


@dataclass(frozen=True)
class OffloadPolicy:
    """Shards stay where they are: on the CPU."""


@dataclass(frozen=True)
class CPUOffloadPolicy(OffloadPolicy):
    """Shards are on the CPU, as always."""

    pin_memory: bool = True


class _Kind(type):
    def __instancecheck__(cls, module: Any) -> bool:
        return isinstance(module, Module) and KEY in module.__dict__


class FSDPModule(metaclass=_Kind):
    """For isinstance: a module to which `fully_shard` was applied, which keeps its type."""


def fully_shard(
    module: M, *, mesh: Any = None, reshard_after_forward: bool | None = None,
    ignored_params: Iterable[Tensor] | None = None, mp_policy: Any = None, offload_policy: Any = None,
    shard_placement_fn: Any = None,
) -> M:  # fmt: skip
    """Shard a module's parameters over the ranks, except those that an inner module has sharded already; returns the
    module itself.

    Apply it to layers first, from the inside out, and to the model last: the parameters of one call are gathered and
    freed together. Parameters and buffers are broadcast from the first rank. Gradients are the mean over the ranks.
    With `reshard_after_forward=False` whole parameters are kept from forward to backward; by default only the outermost
    module does so, as its backward begins at once. All ranks use the same parameters in the same order.

    With a `MixedPrecisionPolicy` whole parameters and gradients have other dtypes than the shards. Parameters on the
    meta device become uninitialized shards, for `module.to_empty(device="cpu")` and an initialization. Offload policies
    have no effect, as shards are on the CPU.

    The module gets PyTorch's methods `unshard()`, `reshard()`, `set_requires_gradient_sync(bool)`,
    `set_reshard_after_forward(bool)`, `set_modules_to_forward_prefetch(modules)` and
    `set_modules_to_backward_prefetch(modules)`.
    """
    if shard_placement_fn is not None:
        raise OptionError(
            "fully_shard(shard_placement_fn=...): parameters are split along dim 0; make them global in a layout of "
            "your own instead"
        )
    if not isinstance(module, Module):
        raise ArgumentError(f"fully_shard takes a module; got {type(module).__name__}")
    if KEY in module.__dict__:
        raise ArgumentError(f"fully_shard was applied to this {type(module).__name__} before")
    if mesh is not None and mesh.ndim != 1:
        raise ArgumentError(
            f"fully_shard splits over one axis; this mesh has {mesh.ndim}. For replicas of what is split, make the "
            "parameters global on the grid, and train a graph with config.enable_zero(): it splits along one axis"
        )
    place = Placement("cpu", range(current().world_size)) if mesh is None else mesh.placement
    ignored = {id(p) for p in ignored_params or ()}
    policy = MixedPrecisionPolicy.of(mp_policy)
    parts = module.__dict__[KEY] = Parts(module, place, ignored, reshard_after_forward, policy)
    for name in ("unshard", "reshard"):
        module.__dict__[name] = getattr(parts, name)
    for name in ("set_requires_gradient_sync", "set_reshard_after_forward", *IDLE):
        module.__dict__[name] = functools.partial(_set, module, name)
    for name in ("forward", "backward"):
        module.__dict__[f"set_modules_to_{name}_prefetch"] = functools.partial(parts.prefetch, name)
    return module


def _set(module: Module, name: str, value: bool, *, recurse: bool = True) -> None:
    for inner in module.modules() if recurse else (module,):
        if KEY in inner.__dict__:
            setattr(inner.__dict__[KEY], name.removeprefix("set_"), bool(value))


class Sharded:
    """One parameter: its shard, and the whole that replaces it for a while."""

    def __init__(
        self, name: str, p: Parameter, place: Placement, holders: list[tuple[Module, str]], dtype: DType | None
    ) -> None:  # fmt: skip
        self.name, self.part, self.holders = name, p, holders
        ranks = place.shape[0]
        self.split = p.ndim > 0 and p.shape[0] >= ranks > 1
        layout = (split(0) if self.split else broadcast,)
        kind = dtype if dtype is not None and p.dtype.differentiable else p.dtype
        with no_grad():
            if p.is_meta:  # type: ignore[attr-defined]  # bound from the registry
                part = creation.empty(tuple(p.shape), dtype=p.dtype, placement=place, sbp=layout)
                whole = torch.empty(tuple(p.shape), dtype=kind.torch)
            else:
                same = ops.from_local(p.detach(), place, (broadcast,), None)  # the first rank's
                part = ops.clone(ops.to_global(same, place, layout))
                whole = local_data(same.to_local(), "fully_shard").to(kind.torch, copy=True)
            p._hold(part)
        self.shares = not self.split and kind is p.dtype  # the memory of the part
        self.data = local_data(part, "fully_shard") if self.shares else whole
        self.whole = Parameter(of_torch(self.data), p.requires_grad)
        self.bytes = self.data.nbytes
        self.hooked = False
        if self.split:
            self.size = self.data.untyped_storage().nbytes()
            self.drop()

    def here(self) -> torch.Tensor:
        return local_data(self.part, "fully_shard")

    def drop(self) -> None:
        if self.split:
            hooks.wait_write(self.whole.blob)
            self.data.untyped_storage().resize_(0)

    def make_room(self) -> None:
        storage = self.data.untyped_storage()
        if self.split and storage.nbytes() < self.size:
            storage.resize_(self.size)

    def adopt(self) -> None:
        """Take a parameter that stands in the shard's place since, as `load_state_dict(assign=True)` puts one there."""
        module, name = self.holders[0]
        found = module.__dict__.get(name)
        if found is self.part or found is self.whole:
            return
        if not isinstance(found, Parameter) or found.spec is not self.part.spec:
            raise ArgumentError(
                f"fully_shard(): {self.name} was replaced by {type(found).__name__} {getattr(found, 'spec', None)}, "
                f"not a parameter {self.part.spec}; copy the value instead, `with no_grad(): p.copy_(value)`"
            )
        self.part = found

    def stand(self, p: Parameter) -> None:
        for module, name in self.holders:
            module.__dict__[name] = p  # its role stays the same; a graph needn't check again


class Parts:
    """The parameters of one `fully_shard` call, which are gathered and freed together."""

    def __init__(
        self, module: Module, place: Placement, ignored: set[int], again: bool | None, policy: MixedPrecisionPolicy
    ) -> None:  # fmt: skip
        self.module, self.place, self.policy = module, place, policy
        self.reshard_after_forward, self.requires_gradient_sync = again, True
        self.is_whole = self.fresh = self.in_backward = False
        self.some_gone = False  # whether backward has freed some of the whole parameters
        self.ahead: dict[str, list[Parts]] = {"forward": [], "backward": []}
        self.arrived: list[Sharded] = []
        self.line = Line(transport_of(), LINE)
        self.group: Group = self.line.group(place.members)
        self.members = [Sharded(name, p, place, at, policy.param_dtype) for name, p, at in _own(module, ignored)]
        most = buckets.limit(sum(s.bytes for s in self.members))
        self.alone = [s for s in self.members if s.split and buckets.travels_alone(s.bytes, most)]
        self.together: dict[Any, list[Sharded]] = {}
        for s in self.members:
            if s.split and s not in self.alone:
                self.together.setdefault(s.data.dtype, []).append(s)
        for b in module.buffers():
            if b.is_local and not b.is_meta:  # type: ignore[attr-defined]  # bound from the registry
                self.group.broadcast(local_data(b, "fully_shard"), 0)
        module.register_forward_pre_hook(
            lambda m, args, named: self.before_forward(args, named), prepend=True, with_kwargs=True
        )
        module.register_forward_hook(lambda m, args, result: self.after_forward(result))
        module.register_state_dict_pre_hook(lambda *_: self.reshard())
        module.register_load_state_dict_pre_hook(lambda *_: self.reshard())

    # ---- whole and not -------------------------------------------------------------------------------

    def unshard(self) -> None:
        """All-gather the parameters."""
        for s in self.members:
            s.adopt()
            hooks.wait_write(s.whole.blob)
            s.make_room()
        with torch.autograd._unsafe_preserve_version_counter(tuple(s.data for s in self.members if s.split)):
            for several in (*([s] for s in self.alone), *self.together.values()):
                shards = [s.here().to(s.data.dtype) for s in several]
                self._box("all_gather", several, shards, [s.data for s in several])
            for s in self.members:
                if not (s.split or s.shares):
                    s.data.copy_(s.here())
        if not self.is_whole:
            for s in self.members:
                self._hook(s)
                s.stand(s.whole)
                if s.shares:
                    s.whole.blob = blob_of(s.part)  # the same memory
        self.is_whole, self.some_gone = True, False

    def _box(self, kind: str, several: list[Sharded], given: list[torch.Tensor], outs: list[torch.Tensor]) -> None:
        """Move several values together, as a graph does."""
        before, shape = tuple(given[0].shape), tuple(outs[0].shape)
        step = LocalStep(
            kind, current().index, dtypes.of_torch(given[0].dtype), "cpu", before, shape, self.place.members,
            self.group.index, dim=0, reduce="sum",
        )  # fmt: skip
        if len(several) == 1:
            execute(step, given[0], self.line, out=outs[0])
        else:
            execute_together(step, given, outs, self.line)

    def reshard(self) -> None:
        """Put the shards back, and free the whole parameters."""
        if not self.is_whole:
            return
        self.is_whole = self.fresh = False
        for s in self.members:
            s.drop()
            s.stand(s.part)

    def prefetch(self, way: str, modules: Sequence[Module]) -> None:
        """Prefetch the parameters of these modules when this one begins."""
        self.ahead[way] = [m.__dict__[KEY] for m in modules]

    def _ahead(self, way: str) -> None:
        for parts in self.ahead[way]:
            if not parts.fresh:
                parts.unshard()
                parts.fresh = True

    # ---- forward -------------------------------------------------------------------------------------

    def before_forward(self, args: Any, named: Any) -> Any:
        if here.trace is not None:
            raise TraceError(
                "a module that was sharded by fully_shard() gathers its parameters as it is called; in a graph the job "
                "says that. Make the parameters global instead, model.to_global(placement=..., sbp=flow.sbp.broadcast),"
                " and call self.config.enable_zero(stage=3) in the graph's __init__"
            )
        if self.reshard_after_forward is None:  # it is the outermost if no other module runs at its first call
            working = _working()
            self.reshard_after_forward = bool(working)
        _working().append(self)
        if not (self.fresh or (passing.ends is not None and self.is_whole and not self.some_gone)):
            self.unshard()
        self.fresh = False
        self._ahead("forward")
        return _cast((args, named), self.policy.param_dtype if self.policy.cast_forward_inputs else None)

    def after_forward(self, result: Any) -> Any:
        working = _working()
        while working and working.pop() is not self:  # drop modules whose forward failed
            pass
        if passing.ends is not None:  # recomputed for backward, which needs it whole
            self._watch()
            return _cast(result, self.policy.output_dtype)
        outputs = [t for t in leaves(result) if isinstance(t, Tensor) and t.requires_grad and t.node is not None]
        for t in outputs if here.grad else ():
            t.register_hook(self.before_backward)
        if self.reshard_after_forward or not outputs:
            self.reshard()
        return _cast(result, self.policy.output_dtype)

    # ---- backward ------------------------------------------------------------------------------------

    def before_backward(self, _: Tensor) -> None:
        if self.in_backward:
            return
        self._watch()
        if not self.is_whole or self.some_gone:
            self.unshard()
        self.fresh = False
        self._ahead("backward")

    def _watch(self) -> None:
        if not self.in_backward:
            self.in_backward = True
            at_end_of_backward(self.finish, outermost=True)

    def _hook(self, s: Sharded) -> None:
        if s.part.requires_grad is not s.whole.requires_grad:
            s.whole.requires_grad = s.part.requires_grad
        if s.whole.requires_grad and not s.hooked:
            s.hooked = True
            s.whole.register_post_accumulate_grad_hook(functools.partial(self.found, s))

    def found(self, s: Sharded, _: Tensor) -> None:
        """A hook: backward has made a gradient, and no longer needs the parameter."""
        self._watch()
        if not self.requires_gradient_sync:
            return
        several = [s]
        if s.split and s not in self.alone:
            self.arrived.append(s)
            expected = [other for other in self.together[s.data.dtype] if other.whole.requires_grad]
            several = [a for a in self.arrived if a.data.dtype is s.data.dtype]
            if len(several) < len(expected):
                return
        self._scatter(several)
        for each in several:
            each.drop()
        self.some_gone = True

    def _scatter(self, several: list[Sharded]) -> None:
        """Reduce-scatter the mean of gradients."""
        self.arrived = [s for s in self.arrived if s not in several]
        several.sort(key=self.members.index)
        grads = []
        for s in several:
            assert s.whole.grad is not None
            reduced = (self.policy.reduce_dtype or s.whole.grad.dtype).torch
            grads.append(local_data(s.whole.grad, "fully_shard").to(reduced))
            s.whole.grad = None
        with no_grad():
            for s, mine in zip(several, self._parts_of(several, grads), strict=True):
                assert s.part.spec is not None
                accumulate(s.part, of_shard(mine.to(s.part.dtype.torch), s.part.spec), False)

    def _parts_of(self, several: list[Sharded], grads: list[torch.Tensor]) -> list[torch.Tensor]:
        size = self.group.size
        if not several[0].split:
            outs = [grads[0].contiguous()]
            self.group.all_reduce(outs[0])
        else:
            outs = [torch.empty_like(s.here(), dtype=g.dtype) for s, g in zip(several, grads, strict=True)]
            self._box("reduce_scatter", several, grads, outs)
        torch._foreach_div_(outs, size)
        return outs

    def finish(self) -> None:
        """At the end of backward: scatter the remaining gradients, and free the whole parameters."""
        self.in_backward = False
        waiting: dict[Any, list[Sharded]] = {}
        if self.requires_gradient_sync:
            for s in self.members:  # also gradients accumulated without sync
                if s.whole.grad is not None:
                    waiting.setdefault(s.data.dtype if s.split and s not in self.alone else s, []).append(s)
        for several in waiting.values():
            self._scatter(several)
        self.arrived.clear()
        self.reshard()


def _own(module: Module, ignored: set[int]) -> list[tuple[str, Parameter, list[tuple[Module, str]]]]:
    """A module's parameters that no inner module has sharded, each with all its holders in the module."""
    found: dict[int, tuple[str, Parameter, list[tuple[Module, str]]]] = {}
    inside: dict[int, str] = {}
    for path, inner in module.named_modules():
        if inner is not module and KEY in inner.__dict__:
            inside |= dict.fromkeys((id(s.part) for s in inner.__dict__[KEY].members), path)
    for path, inner in module.named_modules():
        for name, p in inner._parameters.items():
            if p is None or id(p) in ignored:
                continue
            full = f"{path}.{name}" if path else name
            if id(p) in inside:
                if not f"{path}.".startswith(f"{inside[id(p)]}."):
                    raise ArgumentError(
                        f"fully_shard(): {full} is also a parameter of {inside[id(p)]}, which was sharded by itself, "
                        "and would be whole only while that computes. Shard a module that holds both in one call"
                    )
                continue
            if p.is_global:
                raise ArgumentError(MOVED.format(full, f"global already, {p.placement} {p.sbp}"))
            if p.device.type not in ("cpu", "meta"):
                raise ArgumentError(MOVED.format(full, f"on {p.device}; only parameters on the CPU are split eagerly"))
            found.setdefault(id(p), (full, p, []))[2].append((inner, name))
    return list(found.values())


def _cast(tree: Any, dtype: DType | None) -> Any:
    """Nested values whose floating tensors are cast; None without a dtype."""

    def leaf(v: Any) -> Any:
        return ops.cast(v, dtype) if isinstance(v, Tensor) and v.dtype.differentiable and v.dtype is not dtype else v

    return None if dtype is None else mapped(tree, leaf)


def _working() -> list[Parts]:
    """The sharded modules of this rank whose forward is running, outermost first."""
    return current().resource("sharded modules at work", lambda rank: [])
