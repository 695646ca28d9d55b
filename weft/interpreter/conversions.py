"""Convert between local and global tensors, and from one layout to another, eagerly."""

from __future__ import annotations

import functools
from typing import Any, Final
from zlib import crc32

import torch

from weft.boxing import execute
from weft.boxing.network import links_of
from weft.boxing.part import device_of
from weft.boxing.planner import route
from weft.core import fingerprints, shard
from weft.core import sbp as sbps
from weft.core.dtype import DType
from weft.core.errors import ArgumentError, DeviceError, RankError, SbpError, ShapeError
from weft.core.fingerprints import WORD
from weft.core.placement import Placement
from weft.core.rank import current
from weft.core.sbp import NdSbp, broadcast
from weft.core.spec import Spec
from weft.interpreter.explain_movements import moving
from weft.ops.declaration import Op
from weft.ops.explain import check_arguments
from weft.ops.kernels import formatted_as
from weft.tensor import header
from weft.tensor.data import local_data
from weft.tensor.tensor import Tensor, of_shard, of_torch
from weft.transport import transport_of
from weft.transport.check import Check, check_of, digest

Fold = tuple[str, int, str, frozenset[int] | None]


def run(op: Op, args: tuple[Any, ...]) -> Tensor:
    if not isinstance(args[0], Tensor):
        check_arguments(op, args)
    return _CONVERSIONS[op.name](*args)


def to_global(x: Tensor, placement: Placement, nd_sbp: NdSbp) -> Tensor:
    spec = x.spec
    if spec is None:
        raise SbpError(
            "to_global from one layout to another takes a global tensor; a local one goes through from_local"
        )
    placement.check(current().world_size)
    nd_sbp = sbps.nd(nd_sbp, placement.ndim, len(spec.shape))
    target = spec.replace(placement=placement, nd_sbp=nd_sbp)
    if target is spec:
        return of_shard(x.shard, spec) if x.shard is not None else x
    rank, transport = current(), transport_of()
    links = links_of(rank)
    path = route(spec.shape, spec.dtype, spec.placement, spec.nd_sbp, placement, nd_sbp, links)
    if rank.world_size > 1:
        fingerprints.of(rank).fold(*_layouts(spec, target))
    transport.note(f"to_global {spec} -> {placement} {sbps.show(nd_sbp)}")

    def moved() -> Tensor:
        data = local_data(x, "to_global")
        return of_shard(formatted_as(execute.run(path, data, rank.index, transport, links.hosts), data), target)

    return moving(path, "to_global", True, (), None, moved)


@functools.lru_cache(maxsize=4096)
def _layouts(spec: Spec | None, target: Spec | tuple[Placement, Any], world: bool = False) -> Fold:
    """The fingerprint of a conversion, by which ranks check that they name the same layouts in the same order."""
    placement, how = (target.placement, target.nd_sbp) if isinstance(target, Spec) else target
    ranks = frozenset(placement.members if spec is None else (*placement.members, *spec.placement.members))
    goal = target if spec is None and isinstance(target, Spec) else f"{placement} {sbps.show(how)}"
    text = f"{'a local tensor' if spec is None else spec} to {goal}"
    among = "" if world else f" on ranks {sorted(ranks)}"
    return f"the layouts of to_global{among}", crc32(text.encode()), text, None if world else ranks


def to_local(x: Tensor) -> Tensor:
    if x.is_local:
        raise SbpError("to_local() takes a global tensor; this one is local already")
    assert x.shard is not None
    out = of_torch(torch.empty(0))
    out.blob, out.part_of = x.shard, x.spec
    return out


def from_local(x: Tensor, placement: Placement, nd_sbp: NdSbp, shape: Any, copy: bool) -> Tensor:
    """A global tensor from each rank's part. For broadcast the first rank's data is taken, so that all parts agree."""
    rank = current()
    placement.check(rank.world_size)
    data = local_data(x, "to_global")
    if data.is_meta:
        raise DeviceError(
            "to_global: a tensor on meta has no values. Make it where it is to be, "
            "flow.empty(2, 3, placement=..., sbp=...); a module's to_global() does so with parameters on meta"
        )
    if data.layout is not torch.strided:
        raise ArgumentError(
            f"a tensor of layout {data.layout} with {list(x.shape)} elements: global tensors are dense. Give "
            "x.to_dense(), as to a module: model.adjacency = model.adjacency.to_dense()"
        )
    if data.device.type != placement.type:
        data = data.to(device_of(placement).torch)
    if rank.world_size > 1 and shape is None:  # all ranks of the world compare their parts
        fingerprints.of(rank).fold(*_layouts(None, (placement, sbps.nd(nd_sbp, placement.ndim)), True))
    logical, dtype = (tuple(shape), x.dtype) if shape is not None else _agree(data, x.dtype, placement, nd_sbp)
    nd_sbp = sbps.nd(nd_sbp, placement.ndim, len(logical))
    spec = Spec(logical, dtype, placement, nd_sbp)
    mine = spec.local_shape(rank.index)
    if rank.world_size > 1 and shape is not None:
        fingerprints.of(rank).fold(*_layouts(None, spec))
        if check_of(rank) is Check.FULL and all(s.is_broadcast for s in nd_sbp):
            text = f"{spec}, whose first are {data.reshape(-1)[:4].tolist()}"
            members = frozenset(placement.members)
            fingerprints.of(rank).fold(f"values on ranks {sorted(members)}", digest(data) & WORD, text, members)
    if rank.index not in placement:
        return of_shard(torch.empty(mine, dtype=dtype.torch), spec)
    if tuple(data.shape) != mine:
        raise SbpError(
            f"rank {rank.index} holds a part of shape {list(data.shape)}, but {sbps.show(nd_sbp)} of the logical shape "
            f"{list(logical)} gives it {list(mine)}: splits are balanced, the first ranks longer by one where needed"
        )
    given, groups = data, [a for a, s in enumerate(nd_sbp) if s is broadcast and placement.shape[a] > 1]
    if (groups and shape is None) or copy:
        data = data.clone(memory_format=torch.contiguous_format)
    if shape is None:
        for axis in groups:
            transport_of().group(placement.group(rank.index, axis)).broadcast(data, 0)
    return of_shard(formatted_as(data, given), spec)


def _agree(data: torch.Tensor, dtype: DType, placement: Placement, nd_sbp: Any) -> tuple[tuple[int, ...], DType]:
    """Infer the logical shape and dtype from the ranks' parts. A collective of all ranks of the world."""
    rank = current()
    nd_sbp = sbps.nd(nd_sbp, placement.ndim)
    if rank.world_size == 1:
        sbps.nd(nd_sbp, placement.ndim, data.ndim)
        return tuple(data.shape), dtype
    mine = header.encoded(data.shape, dtype)
    table = [torch.empty_like(mine) for _ in range(rank.world_size)]
    transport_of().everyone().all_gather(table, mine)
    forms = {r: header.read(table[r], r) for r in placement.members}
    first = forms[placement.members[0]]
    if len({(len(s), d) for s, d in forms.values()}) > 1:
        shown = ", ".join(f"rank {r} {d.name}{list(s)}" for r, (s, d) in forms.items())
        raise ShapeError(f"to_global: the ranks' parts differ in dtype or number of dimensions: {shown}")
    sbps.nd(nd_sbp, placement.ndim, len(first[0]))
    logical = list(first[0])
    for dim in range(len(logical)):
        axes = [a for a, s in enumerate(nd_sbp) if s.dim == dim]
        if axes:
            cells = {
                tuple(c[a] for a in axes): forms[placement.at(c)][0][dim]
                for c in reversed(list(placement.coordinates()))
            }
            logical[dim] = sum(cells.values())
    for c in placement.coordinates():
        r = placement.at(c)
        box = shard.box(logical, placement.shape, nd_sbp, c)
        expected = tuple(b - a for a, b in box)
        if forms[r][0] != expected:
            raise SbpError(
                f"to_global: rank {r} holds a part of shape {list(forms[r][0])}, but {sbps.show(nd_sbp)} of the whole "
                f"{logical} gives it {list(expected)}: parts must agree, and splits are balanced"
            )
    return tuple(logical), first[1]


_CONVERSIONS = {"to_global": to_global, "to_local": to_local, "from_local": from_local}


def whole(x: Tensor, what: str) -> Tensor:
    """The logical value as a local tensor, on every rank of the world, in the placement or not."""
    spec, rank = x.spec, current()
    assert spec is not None
    flat = (broadcast,) * spec.placement.ndim
    everywhere = len(spec.placement.members) == rank.world_size
    if everywhere and spec.nd_sbp == flat:
        return to_local(x)
    try:
        if everywhere:
            return to_local(to_global(x, spec.placement, flat))
        fingerprints.of(rank).fold(*_reading(spec))
        return to_local(to_global(x, Placement.all(spec.placement.type), (broadcast,)))
    except RankError as error:
        error.add_note(f"in {what} of {spec}, {READ}")
        raise


READ: Final = (
    "a call of every rank of the world, in its placement or not. Read it on all of them and use it on one, or read "
    "this rank's own part with x.to_local(), which asks nobody"
)


@functools.lru_cache(maxsize=4096)
def _reading(spec: Spec) -> Fold:
    """The fingerprint of reading a value."""
    name, _, _, ranks = _layouts(spec, (Placement.all(spec.placement.type), (broadcast,)))
    text = f"numpy(), item() or the like of {spec}, which every rank calls"
    return name, crc32(text.encode()), text, ranks
