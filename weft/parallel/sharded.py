"""A parameter of `fully_shard`: its shard, and the whole that replaces it while its module computes."""

from __future__ import annotations

from typing import Final

import torch

from weft.autograd import no_grad
from weft.autograd.inplace import assign
from weft.core.dispatch import hooks
from weft.core.dtype import DType
from weft.core.errors import ArgumentError
from weft.core.placement import Placement
from weft.core.sbp import broadcast, split
from weft.functional.create import creation
from weft.nn.module.module import Module
from weft.ops import ops
from weft.tensor.data import local_data
from weft.tensor.parameter import Parameter
from weft.tensor.tensor import of_torch

KEY: Final = "_parts"  # the attribute of a sharded module for its `Parts`
MOVED: Final = "fully_shard(): {} is {}: parameters are to be local, each rank's alike, and become global here"


class Sharded:
    """One parameter: its shard, and the whole that replaces it for a while."""

    def __init__(
        self, name: str, p: Parameter, place: Placement, holders: list[tuple[Module, str]], dtype: DType | None
    ) -> None:  # fmt: skip
        self.name, self.part, self.holders = name, p, holders
        ranks = place.shape[-1]
        self.split = p.ndim > 0 and p.shape[0] >= ranks > 1
        alike = (broadcast,) * place.ndim
        layout = (*alike[1:], split(0)) if self.split else alike
        kind = dtype if dtype is not None and p.dtype.differentiable else p.dtype
        with no_grad():
            if p.is_meta:  # type: ignore[attr-defined]  # bound from the registry
                part = creation.empty(tuple(p.shape), dtype=p.dtype, placement=place, sbp=layout)
                whole = torch.empty(tuple(p.shape), dtype=kind.torch)
            else:
                same = ops.from_local(p.detach(), place, alike, None)  # the first rank's
                part = ops.clone(ops.to_global(same, place, layout))
                whole = local_data(same.to_local(), "fully_shard").to(kind.torch, copy=True)
            p._hold(part)
        self.shares = not self.split and kind is p.dtype  # the memory of the part
        self.data = local_data(part, "fully_shard") if self.shares else whole
        self.whole = Parameter(of_torch(self.data), p.requires_grad)
        self.bytes = self.data.nbytes
        self.hooked = False
        self.held: torch.Tensor | None = None  # a gradient that is summed over the shard's ranks alone
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

    def write_back(self) -> None:
        spec = self.part.spec
        assert spec is not None
        if not self.shares:
            with no_grad():
                same = ops.from_local(self.whole.detach(), spec.placement, (broadcast,) * len(spec.nd_sbp), spec.shape)
                assign(self.part, ops.cast(ops.to_global(same, spec.placement, spec.nd_sbp), self.part.dtype))

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


def own_parameters(module: Module, ignored: set[int]) -> list[tuple[str, Parameter, list[tuple[Module, str]]]]:
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
