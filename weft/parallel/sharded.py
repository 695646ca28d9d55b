"""A parameter of `fully_shard`: its shard, and the whole that replaces it while its module computes."""

from __future__ import annotations

from typing import Any, Final

import torch

from weft.autograd import no_grad
from weft.boxing.part import device_of
from weft.core.dispatch import hooks
from weft.core.dtype import DType
from weft.core.errors import ArgumentError
from weft.core.placement import Placement
from weft.core.sbp import broadcast, split
from weft.core.spec import Spec
from weft.core.stored import stored
from weft.functional.create import creation
from weft.functional.tensor.sparse import to_dense
from weft.nn.module.members import PARAMETER, of_role
from weft.nn.module.module import Module
from weft.ops import ops
from weft.system import comm
from weft.tensor.blob import blob_of
from weft.tensor.data import local_data
from weft.tensor.parameter import Parameter
from weft.tensor.tensor import Tensor, of_shard, of_torch

KEY: Final = "_parts"  # the attribute of a sharded module for its `Parts`
MOVED: Final = "fully_shard(): {} is {}: parameters are to be local, each rank's alike, and become global here"


class Sharded:
    """One parameter: its shard, and the whole that replaces it for a while."""

    def __init__(
        self, name: str, p: Parameter, place: Placement, holders: list[tuple[Module, str]], dtype: DType | None,
        mesh: Any = None,
    ) -> None:  # fmt: skip
        self.name, self.part, self.holders, self.place = name, p, holders, place
        outer = p.spec
        size = outer.local_shape(outer.placement.members[-1]) if outer is not None else tuple(p.shape)  # the smallest
        self.split = p.ndim > 0 and size[0] >= place.shape[-1] > 1
        self.alike = (broadcast,) * place.ndim
        self.layout = (*self.alike[1:], split(0)) if self.split else self.alike
        kind = dtype if dtype is not None and p.dtype.is_floating_point else p.dtype
        with no_grad():
            if p.is_meta:
                part = creation.empty(tuple(p.shape), dtype=p.dtype, placement=place, sbp=self.layout)
                whole = torch.empty(tuple(p.shape), dtype=kind.torch, device=device_of(place).torch)
            else:
                given = of_torch(local_data(p.detach(), "fully_shard").clone().to(device_of(place).torch))
                comm.broadcast(given, place.members[0], place.members)
                same = ops.from_local(given, place, self.alike, tuple(given.shape))
                part = ops.clone(ops.to_global(same, place, self.layout))
                whole = local_data(given, "fully_shard").to(kind.torch)
            if outer is not None:
                spec = Spec(outer.shape, p.dtype, mesh.inside(outer.placement), (*outer.nd_sbp, *self.layout))
                part = of_shard(local_data(part, "fully_shard"), spec)
            p._hold(part)
        self.shares = not self.split and kind is p.dtype  # the memory of the part
        self.data = local_data(part, "fully_shard") if self.shares else whole
        self.outer = None if outer is None else Spec(outer.shape, kind, outer.placement, outer.nd_sbp)
        value = of_torch(self.data) if self.outer is None else of_shard(self.data, self.outer)
        self.whole = Parameter(value, p.requires_grad)
        self.bytes = self.data.nbytes
        self.hooked = False
        self.held: torch.Tensor | None = None  # a gradient that is summed over the shard's ranks alone
        if self.split:
            self.size = self.data.untyped_storage().nbytes()
            self.drop()

    def gradient(self) -> Tensor:
        """This rank's gradient of the whole."""
        grad = self.whole.grad
        assert grad is not None
        grad = to_dense(grad)
        return grad if self.outer is None else ops.to_global(grad, self.outer.placement, self.outer.nd_sbp)

    def of(self, data: torch.Tensor) -> Tensor:
        """A tensor that is split as the parameter, and has `data` on this rank."""
        assert self.part.spec is not None
        return of_shard(data, self.part.spec)

    def here(self) -> torch.Tensor:
        return local_data(self.part, "fully_shard")

    def drop(self) -> None:
        if self.split:
            hooks.wait_write(blob_of(self.whole))
            self.data.untyped_storage().resize_(0)

    def make_room(self) -> None:
        storage = self.data.untyped_storage()
        if self.split and storage.nbytes() < self.size:
            storage.resize_(self.size)

    def write_back(self) -> None:
        if not self.shares:
            with no_grad():
                same = ops.from_local(of_torch(self.data), self.place, self.alike, tuple(self.data.shape))
                self.here().copy_(local_data(ops.to_global(same, self.place, self.layout), "fully_shard"))

    def adopt(self) -> None:
        """Take a parameter that stands in the shard's place since, as `load_state_dict(assign=True)` puts one there."""
        module, name = self.holders[0]
        found = stored(module).get(name)
        if found is self.part or found is self.whole:
            return
        if not isinstance(found, Parameter) or found.spec is not self.part.spec:
            raise ArgumentError(
                f"fully_shard(): {self.name} was replaced by {type(found).__name__} {getattr(found, 'spec', None)}, "
                f"not a parameter {self.part.spec}; copy the value instead, `with no_grad(): p.copy_(value)`"
            )
        self.part = found

    def share(self) -> None:
        """Let the whole have the memory of the part."""
        if self.outer is None:
            self.whole.blob = blob_of(self.part)
        else:
            self.whole.shard = blob_of(self.part)

    def stand(self, p: Parameter) -> None:
        for module, name in self.holders:
            stored(module)[name] = p  # its role stays the same; a graph needn't check again


def own_parameters(
    module: Module, ignored: set[int], mesh: Any, place: Placement
) -> list[tuple[str, Parameter, list[tuple[Module, str]]]]:
    """A module's parameters that no inner module has sharded, each with all its holders in the module."""
    found: dict[int, tuple[str, Parameter, list[tuple[Module, str]]]] = {}
    inside: dict[int, list[str]] = {}
    for path, inner in module.named_modules():
        if inner is not module and KEY in stored(inner):
            for s in stored(inner)[KEY].members:
                inside.setdefault(id(s.part), []).append(path)
    for path, inner in module.named_modules():
        for name, p in of_role(inner, PARAMETER):
            if p is None or id(p) in ignored:
                continue
            full = f"{path}.{name}" if path else name
            if id(p) in inside:
                if not f"{path}.".startswith(tuple(f"{holder}." for holder in inside[id(p)])):
                    other = inside[id(p)][0]
                    raise ArgumentError(
                        f"fully_shard(): {full} is also a parameter of {other}, which was sharded by itself, and would "
                        "be whole only while that computes. Shard a module that holds both in one call"
                    )
                continue
            if p.is_global and (mesh is None or mesh.inside(p.placement) is None):
                raise ArgumentError(MOVED.format(full, f"global already, {p.placement} {p.sbp}"))
            kind = p.placement.type if p.is_global else p.device.type
            if kind not in (place.type, "meta"):
                raise ArgumentError(MOVED.format(full, f"on {kind}, and is to be split over {place}"))
            found.setdefault(id(p), (full, p, []))[2].append((inner, name))
    return list(found.values())
