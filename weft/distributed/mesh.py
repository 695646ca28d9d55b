"""`DeviceMesh`: a grid of ranks with named axes, and a group along each, as in `torch.distributed`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from weft.core.errors import ArgumentError, RankError
from weft.core.placement import Placement
from weft.core.rank import current
from weft.distributed.groups import ProcessGroup
from weft.tensor.tensor import Tensor, of_torch


class DeviceMesh:
    """A grid of ranks. `mesh.get_group("dp")`: the ranks that differ from this one along that axis only.

    `mesh.placement` is the placement of a global tensor over the grid.
    """

    def __init__(self, device_type: str, mesh: Any, *, mesh_dim_names: Sequence[str] | None = None) -> None:
        ranks = mesh.numpy() if isinstance(mesh, Tensor) else mesh
        self.device_type, self._ranks = device_type, np.asarray(ranks, dtype=np.int64)
        self._root: DeviceMesh = self  # of which it is a part
        self._flattened: dict[str, tuple[str, ...]] = {}  # of a root: the axes that are also one, by its name
        self.mesh_dim_names = None if mesh_dim_names is None else tuple(mesh_dim_names)
        world = current().world_size
        if self._ranks.size and not (self._ranks.min() >= 0 and self._ranks.max() < world):
            raise RankError(f"a mesh is of ranks 0 to {world - 1}; got {self._ranks.tolist()}")
        if len({*self._ranks.flat}) < self._ranks.size or not self._ranks.size:
            raise RankError(f"a mesh names each of its ranks once; got {self._ranks.tolist()}")
        if self.mesh_dim_names is not None and len({*self.mesh_dim_names}) != self._ranks.ndim:
            raise ArgumentError(f"a mesh of {self._ranks.ndim} axes has as many different names; got {mesh_dim_names}")

    @property
    def mesh(self) -> Tensor:
        return of_torch(torch.from_numpy(self._ranks.copy()))

    @property
    def placement(self) -> Placement:
        return Placement(self.device_type, self._ranks.tolist())

    @property
    def ndim(self) -> int:
        return self._ranks.ndim

    @property
    def shape(self) -> tuple[int, ...]:
        return self._ranks.shape

    def size(self, mesh_dim: int | str | None = None) -> int:
        return self._ranks.size if mesh_dim is None else self._ranks.shape[self._axis(mesh_dim)]

    def get_rank(self) -> int:
        return current().index

    def get_coordinate(self) -> tuple[int, ...] | None:
        """The caller's coordinate on the grid, or None."""
        found = np.argwhere(self._ranks == current().index)
        return tuple(found[0].tolist()) if len(found) else None

    def get_local_rank(self, mesh_dim: int | str | None = None) -> int:
        """The caller's index along an axis; the axis may be omitted if there is one."""
        return self._here()[self._axis(mesh_dim)]

    def get_group(self, mesh_dim: int | str | None = None) -> ProcessGroup:
        """The group of ranks that differ from the caller along one axis only."""
        here, axis = self._here(), self._axis(mesh_dim)
        return ProcessGroup(self._ranks[(*here[:axis], slice(None), *here[axis + 1 :])].tolist())

    def get_all_groups(self) -> list[ProcessGroup]:
        return [self.get_group(axis) for axis in range(self.ndim)]

    def __getitem__(self, names: str | tuple[str, ...]) -> DeviceMesh:
        """The submesh with these axes that contains the caller."""
        wanted = (names,) if isinstance(names, str) else tuple(names)
        own, here = self.mesh_dim_names or (), self._here()
        parts = [[self._axis(part) for part in ((name,) if name in own else self._parts(name))] for name in wanted]
        axes = [axis for part in parts for axis in part]
        kept = tuple(slice(None) if axis in axes else at for axis, at in enumerate(here))
        ranks = self._ranks[kept].transpose([sorted(axes).index(axis) for axis in axes])
        return self._part(ranks.reshape([math.prod(self.shape[axis] for axis in part) for part in parts]), wanted)

    def _flatten(self, mesh_dim_name: str | None = None, backend_override: Any = None) -> DeviceMesh:
        """The same ranks along one axis; the mesh that this is a part of has it under its name from now on."""
        if self.mesh_dim_names is None:
            raise ArgumentError(f"{self}._flatten(): its axes have no names; give mesh_dim_names to init_device_mesh()")
        name = mesh_dim_name or "_".join(self.mesh_dim_names)
        if self.mesh_dim_names == (name,):
            return self
        parts, root = tuple(part for own in self.mesh_dim_names for part in self._parts(own)), self._root
        if name in (root.mesh_dim_names or ()) or root._flattened.setdefault(name, parts) != parts:
            raise ArgumentError(f"_flatten({name!r}): {root} has another axis of this name")
        return self._part(self._ranks.reshape(-1), (name,))

    def _unflatten(
        self, dim: int | str, mesh_sizes: Sequence[int], mesh_dim_names: Sequence[str], backend_override: Any = None
    ) -> DeviceMesh:
        """The same ranks, with several axes in the place of one."""
        axis, sizes = self._axis(dim), tuple(mesh_sizes)
        if math.prod(sizes) != self.shape[axis] or len(sizes) != len(mesh_dim_names):
            raise ArgumentError(f"_unflatten({dim!r}): {self.shape[axis]} ranks aren't {sizes} by {mesh_dim_names}")
        names = list(self.mesh_dim_names or map(str, range(self.ndim)))
        names[axis : axis + 1] = mesh_dim_names
        ranks = self._ranks.reshape(self.shape[:axis] + sizes + self.shape[axis + 1 :])
        return DeviceMesh(self.device_type, ranks, mesh_dim_names=names)

    def _part(self, ranks: Any, names: tuple[str, ...]) -> DeviceMesh:
        part = DeviceMesh(self.device_type, ranks, mesh_dim_names=names)
        part._root = self._root
        return part

    def _parts(self, name: str) -> tuple[str, ...]:
        """The axes of the root that an axis consists of."""
        return self._root._flattened.get(name, (name,))

    def inside(self, placement: Placement) -> Placement | None:
        """The grid of another part of the same mesh, one axis, and of this part's axes inside; None if it isn't one."""
        for name in self._root.mesh_dim_names or ():
            if name not in (self.mesh_dim_names or ()) and self._root[name].placement is placement:
                return self._root[(name, *(self.mesh_dim_names or ()))].placement
        return None

    def _axis(self, given: int | str | None) -> int:
        if given is None and self.ndim == 1:
            return 0
        if isinstance(given, str) and given in (self.mesh_dim_names or ()):
            return (self.mesh_dim_names or ()).index(given)
        if isinstance(given, int) and -self.ndim <= given < self.ndim:
            return given % self.ndim
        raise ArgumentError(f"{self} has no axis {given!r}: an axis is a number, or one of the names")

    def _here(self) -> tuple[int, ...]:
        found = self.get_coordinate()
        if found is None:
            raise RankError(f"rank {current().index} is not in {self}")
        return found

    @staticmethod
    def current() -> DeviceMesh:
        """The mesh of the innermost `with mesh:`."""
        entered = _entered()
        if not entered:
            raise ArgumentError("give a device_mesh, init_device_mesh(...), or call this in `with mesh:`")
        return entered[-1]

    def __enter__(self) -> DeviceMesh:
        _entered().append(self)
        return self

    def __exit__(self, *error: Any) -> None:
        _entered().pop()

    def __eq__(self, other: object) -> bool:
        """Whether it is the same grid; names of axes don't count, as a tensor's placement has none."""
        return isinstance(other, DeviceMesh) and self.placement is other.placement

    def __hash__(self) -> int:
        return hash(self.placement)

    def __repr__(self) -> str:
        names = "" if self.mesh_dim_names is None else f", mesh_dim_names={self.mesh_dim_names}"
        return f"DeviceMesh({self.device_type!r}, {self._ranks.tolist()}{names})"


def _entered() -> list[DeviceMesh]:
    return current().resource("meshes", lambda rank: [])


def init_device_mesh(
    device_type: str, mesh_shape: Sequence[int], *, mesh_dim_names: Sequence[str] | None = None
) -> DeviceMesh:
    """All ranks, in order, as a grid."""
    world, size = current().world_size, int(np.prod(mesh_shape))
    if size != world:
        raise RankError(
            f"init_device_mesh(): a grid of shape {tuple(mesh_shape)} has {size} ranks; the world has {world}"
        )
    return DeviceMesh(device_type, np.arange(world).reshape(mesh_shape), mesh_dim_names=mesh_dim_names)
