"""`DeviceMesh`: a grid of ranks with named axes, and a group along each, as in `torch.distributed`."""

from __future__ import annotations

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
        here, axes = self._here(), [self._axis(name) for name in wanted]
        kept = tuple(slice(None) if axis in axes else at for axis, at in enumerate(here))
        order = [sorted(axes).index(axis) for axis in axes]
        part = DeviceMesh(self.device_type, self._ranks[kept].transpose(order), mesh_dim_names=wanted)
        part._root = self._root
        return part

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
