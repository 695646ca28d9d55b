"""Ranks as a grid with named axes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import weft as flow
import weft.distributed as dist
from weft.core.errors import ArgumentError, RankError
from weft.distributed.device_mesh import DeviceMesh, init_device_mesh  # type: ignore[import-not-found]
from weft.launch import spawn_threads


def seen() -> Any:
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    assert mesh.shape == (2, 2) and mesh.ndim == 2 and mesh.size() == 4 and mesh.size("tp") == 2
    assert mesh.mesh.tolist() == [[0, 1], [2, 3]] and mesh.get_rank() == dist.get_rank()
    row, column = mesh.get_group("tp"), mesh.get_group(0)
    assert mesh.get_all_groups()[1].ranks == row.ranks == mesh["tp"].get_group().ranks
    x = flow.tensor([float(dist.get_rank())])
    dist.all_reduce(x, group=row)
    turned = mesh["tp", "dp"]
    assert turned.mesh.tolist() == [[0, 2], [1, 3]] and turned == DeviceMesh(
        "cpu", [[0, 2], [1, 3]], mesh_dim_names=("tp", "dp")
    )
    with pytest.raises(ArgumentError, match="no axis 'pp'"):
        mesh.get_group("pp")
    with pytest.raises(ArgumentError, match="no axis None"):
        mesh.get_group()
    with pytest.raises(RankError, match="has 6 ranks; the world has 4"):
        init_device_mesh("cpu", (2, 3))
    with pytest.raises(RankError, match="each of its ranks once"):
        DeviceMesh("cpu", [0, 0])
    part = DeviceMesh("cpu", [0, 1])
    if dist.get_rank() > 1:
        assert part.get_coordinate() is None
        with pytest.raises(RankError, match="is not in"):
            part.get_group()
    y = flow.ones(4, placement=mesh.placement, sbp=[flow.sbp.split(0), flow.sbp.broadcast])
    assert y.to_local().shape == (2,)
    return mesh.get_coordinate(), mesh.get_local_rank("dp"), row.ranks, column.ranks, x.item()


def test_groups_along_the_axes() -> None:
    assert spawn_threads(4, seen, deadline=60) == [
        ((0, 0), 0, (0, 1), (0, 2), 1.0),
        ((0, 1), 0, (0, 1), (1, 3), 1.0),
        ((1, 0), 1, (2, 3), (0, 2), 5.0),
        ((1, 1), 1, (2, 3), (1, 3), 5.0),
    ]


def test_axes_join_and_part_as_in_torch() -> None:
    def run() -> None:
        sizes, names = (2, 2, 2), ("dp", "cp", "tp")
        world = init_device_mesh("cpu", (8,), mesh_dim_names=("world",))
        grid = world._unflatten(0, sizes, names)
        assert grid == DeviceMesh("cpu", np.arange(8).reshape(sizes), mesh_dim_names=names)
        joined = grid["dp", "cp"]._flatten("batch")
        rank = flow.env.get_rank()
        assert joined.mesh.tolist() == [rank % 2, 2 + rank % 2, 4 + rank % 2, 6 + rank % 2]
        assert joined == grid["batch"] == joined["batch"] and joined.mesh_dim_names == ("batch",)
        assert grid["batch", "tp"].mesh.tolist() == [[0, 1], [2, 3], [4, 5], [6, 7]]
        assert grid["tp", "batch"].mesh.tolist() == [[0, 2, 4, 6], [1, 3, 5, 7]]
        assert joined.inside(grid["tp"].placement) is grid["tp", "batch"].placement  # as sharded parameters need it
        assert grid["batch", "tp"]._flatten("all").size() == 8 and grid["dp"]._flatten("dp") == grid["dp"]
        assert grid["cp", "tp"]._flatten().mesh_dim_names == ("cp_tp",)
        assert grid._unflatten("cp", (1, 2), ("a", "b")).shape == (2, 1, 2, 2)
        with pytest.raises(ArgumentError, match="has another axis of this name"):
            grid["cp", "tp"]._flatten("batch")
        with pytest.raises(ArgumentError, match="8 ranks aren't"):
            world._unflatten(0, (2, 2), ("a", "b"))
        with pytest.raises(ArgumentError, match="its axes have no names"):
            DeviceMesh("cpu", range(8))._flatten()

    spawn_threads(8, run, deadline=60)


def test_stores_are_torchs() -> None:
    store = dist.PrefixStore("run", dist.HashStore())
    store.set("a", "1")
    assert store.get("a") == b"1" and store.add("n", 2) == 2
