"""Ranks with a CUDA device each, over NCCL: what they compute is what the CPU's ranks compute.

Where there are fewer devices, they are emulated: NCCL's calls go to Gloo, and each access to memory is checked for
whether it waits for those before it on other streams.
"""

from __future__ import annotations

import functools
import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import weft as flow
from tests.graph.training import test_pipelines as pipelines
from tests.graph.training import test_zero as zero
from tests.parallel import test_fsdp as fsdp
from tests.worlds import Start
from weft import nn
from weft.nn.parallel import DistributedDataParallel
from weft.transport import transport_of

B, P, S = flow.sbp.broadcast, flow.sbp.partial_sum, flow.sbp.split
DEVICES = torch.cuda.device_count() or 4
KIND = "cuda"
GRID: list[Any] = [[0, 1], [2, 3]]


def ranks(n: int) -> Any:
    return pytest.mark.skipif(n > DEVICES, reason=f"needs {n} CUDA devices")


def moves(size: str) -> None:
    """Every way between two layouts, of sizes that split evenly and not, inside a group, to and from the host."""
    place, host = (flow.placement(kind, ranks=list(range(int(size)))) for kind in (KIND, "cpu"))
    kinds = (torch.float32, torch.int64, torch.float16, torch.int16, torch.bool, torch.complex64)
    for shape, dtype in zip(((8, 4), (5, 3), (7, 2), (4, 3), (5, 2), (3, 4)), kinds, strict=True):
        whole = torch.arange(float(np.prod(shape))).reshape(shape).to(dtype)
        for src, dst in itertools.product((B, S(0), S(1), P), repeat=2):
            x = flow.tensor(whole.numpy(), placement=place, sbp=B).to_global(sbp=src)
            assert x.to_local().is_cuda
            for to in (place, host):
                y = x.to_global(placement=to, sbp=dst)
                assert y.to_local().is_cuda is (to is place)
                np.testing.assert_array_equal(y.numpy(), whole.numpy(), err_msg=f"{src} to {dst} on {to}")
            back = x.to_global(placement=host, sbp=src).to_global(placement=place, sbp=dst)
            np.testing.assert_array_equal(back.numpy(), whole.numpy())


def moves_on_a_grid() -> None:
    place, line = flow.placement(KIND, ranks=GRID), flow.placement(KIND, ranks=[1, 2])
    whole = torch.arange(48.0).reshape(8, 6)
    layouts = [[a, b] for a in (B, S(0), S(1), P) for b in (B, S(0), S(1), P)]
    for i, src in enumerate(layouts):
        x = flow.tensor(whole.numpy(), placement=place, sbp=[B, B]).to_global(sbp=src)
        for dst in (layouts[(3 * i + 1) % 16], layouts[(7 * i + 2) % 16]):
            y = x.to_global(sbp=dst)
            np.testing.assert_array_equal(y.numpy(), whole.numpy(), err_msg=f"{src} to {dst}")
        there = x.to_global(placement=line, sbp=S(0))
        np.testing.assert_array_equal(there.to_global(placement=place, sbp=src).numpy(), whole.numpy())


@ranks(2)
@pytest.mark.parametrize("size", [2, 4])
def test_layouts_change_over_nccl(size: int, world: Start) -> None:
    if size > DEVICES:
        pytest.skip(f"needs {size} CUDA devices")
    world("moves", size, "c10d", str(size)).well()


@ranks(4)
def test_layouts_of_a_grid(world: Start) -> None:
    world("moves_on_a_grid", 4, "c10d").well()


def messages() -> None:
    """Of two of several ranks, and around a ring."""
    rank, n = flow.env.get_rank(), flow.env.get_world_size()
    x, y = flow.full((3,), float(rank), device=KIND), flow.zeros(3, device=KIND)
    if rank == 0:
        flow.comm.send(x + 5, 1)
    elif rank == 1:
        flow.comm.recv(0, out=y)
        assert y.tolist() == [5.0] * 3
    after, before = (rank + 1) % n, (rank - 1) % n
    for first in (True, False):
        if first is (rank % 2 == 0):
            flow.comm.send(x, after)
        else:
            flow.comm.recv(before, out=y)
            assert y.tolist() == [float(before)] * 3


def empty_parts() -> None:
    """A rank that has nothing for anyone, and gets nothing, in the first call of all."""
    rank, n = flow.env.get_rank(), flow.env.get_world_size()
    sizes, mine = [[0 if n - 1 in (a, b) else 2 + a + b for b in range(n)] for a in range(n)], f"{KIND}:{rank}"
    parts = [torch.full((k,), 10.0 * rank + b, device=mine) for b, k in enumerate(sizes[rank])]
    outs = [torch.zeros(sizes[a][rank], device=mine) for a in range(n)]
    transport_of().group(tuple(range(n))).all_to_all(outs, parts)
    for a, out in enumerate(outs):
        assert out.tolist() == [10.0 * a + rank] * sizes[a][rank]


REDUCTIONS = {"sum": torch.add, "prod": torch.mul, "max": torch.maximum, "min": torch.minimum,
              "band": torch.bitwise_and, "bor": torch.bitwise_or, "bxor": torch.bitwise_xor}  # fmt: skip


def sums() -> None:
    """Every reduction, of dtypes that NCCL has and of others."""
    rank, n = flow.env.get_rank(), flow.env.get_world_size()
    group = transport_of().group(tuple(range(n)))
    for dtype in (torch.float32, torch.bfloat16, torch.int64, torch.int16, torch.bool, torch.uint8):
        parts = [(torch.arange(6).reshape(2, 3) % (r + 2)).to(dtype) for r in range(n)]
        for name, function in REDUCTIONS.items():
            if (dtype.is_floating_point and name in ("band", "bor", "bxor")) or (
                dtype == torch.bool and name == "prod"
            ):
                continue
            t = parts[rank].to(KIND)
            group.all_reduce(t, name)
            wanted = functools.reduce(function, parts)
            assert t.cpu().equal(wanted), (dtype, name, t, wanted)


@ranks(4)
@pytest.mark.parametrize("what", ["messages", "sums", "empty_parts"])
def test_messages_sums_and_parts(what: str, world: Start) -> None:
    world(what, 4, "c10d").well()


class Blank(nn.Graph):
    """One that knows no model."""

    def build(self, x: Any) -> Any:
        raise AssertionError("it is loaded")


def goes_on(folder: str) -> None:
    case = pipelines.CASES["interleaved"]
    places = [flow.placement(KIND, ranks=list(r)) for r in case.ranks]
    model = pipelines.Model(len(places))
    for stage, place in zip(model.stages, places, strict=True):
        stage.to_global(placement=place, sbp=B)
    graph, twin, given = pipelines.Train(model, case.micro, places), Blank(), pipelines.DATA
    xs = [flow.tensor(x, placement=places[0], sbp=B) for x in given]
    graph(xs[0])
    path = f"{folder}/{flow.env.get_rank()}"
    flow.save(graph.runtime_state_dict(), path)
    twin.load_runtime_state_dict(flow.load(path))
    for x in xs[1:]:
        one, other = (g(x).to_global(placement=places[0], sbp=B).numpy() for g in (graph, twin))
        np.testing.assert_allclose(one, other, rtol=1e-5)


@ranks(2)
def test_a_saved_pipeline_goes_on(world: Start, tmp_path: Path) -> None:
    world("goes_on", 2, "c10d", str(tmp_path)).well()


# ---- training -------------------------------------------------------------------------------------------


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.token, self.norm = nn.Embedding(11, 16), nn.LayerNorm(16)
        self.up, self.down, self.head = nn.Linear(16, 32), nn.Linear(32, 16), nn.Linear(16, 11)

    def forward(self, ids: Any, targets: Any) -> Any:
        x = self.token(ids)
        x = x + self.down(nn.functional.gelu(self.up(self.norm(x))))
        return nn.functional.cross_entropy(self.head(x).reshape(-1, 11), targets.reshape(-1))


class Train(nn.Graph):
    def __init__(self, net: Any, optimizer: Any, pieces: int) -> None:
        super().__init__()
        self.net = net
        self.add_optimizer(optimizer)
        self.config.set_gradient_accumulation_steps(pieces)

    def build(self, *batch: Any) -> Any:
        loss = self.net(*batch)
        loss.backward()
        return loss


def batches(n: int) -> list[tuple[torch.Tensor, torch.Tensor]]:
    rng = torch.Generator().manual_seed(1)
    return [tuple(torch.randint(0, 11, (8, 6), generator=rng) for _ in range(2)) for _ in range(n)]  # type: ignore[misc]


def alone() -> list[float]:
    flow.manual_seed(0)
    net = Net()
    optimizer, losses = flow.optim.AdamW(net.parameters(), lr=0.01), []
    for batch in batches(6):
        loss = net(*map(flow.from_torch, batch))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def data_parallel(way: str, size: str) -> None:
    """Eagerly, as a graph (one launch waited for, or all in flight), and wrapped as torch's programs wrap it."""
    n, rank = int(size), flow.env.get_rank()
    place = flow.placement(KIND, ranks=list(range(n)))
    flow.manual_seed(0)
    net: Any = Net()
    net = DistributedDataParallel(net.to(KIND)) if way == "wrapped" else net.to_global(placement=place, sbp=B)
    optimizer = flow.optim.AdamW(net.parameters(), lr=0.01)
    graph = Train(net, optimizer, 2 if way == "pieces" else 1) if way in ("graph", "pieces") else None
    losses: list[Any] = []
    for batch in batches(6):
        mine = [flow.from_torch(t.chunk(n)[rank]).to(KIND) for t in batch]
        if way != "wrapped":
            mine = [t.to_global(placement=place, sbp=S(0)) for t in mine]
        if graph is not None:
            losses.append(graph(*mine))
            continue
        loss = net(*mine)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    if way == "wrapped":
        for loss in losses:
            flow.comm.all_reduce(loss.div_(n))
    found = [float(loss.mean().item()) for loss in losses]
    np.testing.assert_allclose(found, alone(), rtol=1e-4)


@pytest.mark.parametrize("way", ["eager", "graph", "pieces", "wrapped"])
@pytest.mark.parametrize("size", [2, 4])
def test_data_parallel(way: str, size: int, world: Start) -> None:
    if size > DEVICES:
        pytest.skip(f"needs {size} CUDA devices")
    world("data_parallel", size, "c10d", way, str(size)).well()


def in_parts(stage: str, optimizer: str, layout: str) -> None:
    mesh, x_sbp, micro_batches = zero.LAYOUTS[layout]
    asked = {"stage": int(stage), "shard_min_size": 4}
    found = zero.train(asked, optimizer, mesh, x_sbp, micro_batches, KIND)
    expected = zero.train(None, optimizer, mesh, x_sbp, micro_batches, "cpu")
    np.testing.assert_allclose(found[0], expected[0], atol=1e-5)
    for a, b in zip(found[1], expected[1], strict=True):
        np.testing.assert_allclose(a, b, atol=1e-5)


@pytest.mark.parametrize("stage", [1, 2, 3])
@pytest.mark.parametrize(("optimizer", "layout"), [("AdamW", "data"), ("clipped", "grid"), ("AdamW", "batches")])
def test_zero(stage: int, optimizer: str, layout: str, world: Start) -> None:
    size = int(np.max(zero.LAYOUTS[layout][0])) + 1
    if size > DEVICES:
        pytest.skip(f"needs {size} CUDA devices")
    world("in_parts", size, "c10d", str(stage), optimizer, layout).well()


def pipeline(name: str) -> None:
    case = pipelines.CASES[name]
    means, found, _ = pipelines.train(case, KIND)
    parts = 1 if case.tensor else len(case.ranks[0])
    losses, wanted = pipelines.alone(len(case.ranks), case.micro, case.dropout, case.tied, not case.tensor, parts)
    np.testing.assert_allclose(means, losses, rtol=1e-4)
    for key, value in wanted.items():
        np.testing.assert_allclose(found[key], value, rtol=1e-3, atol=1e-5, err_msg=key)


@pytest.mark.parametrize(
    "name", ["1f1b", "interleaved", "zero bubble, interleaved", "tied", "data-parallel", "tensor-parallel"]
)
def test_pipelines(name: str, world: Start) -> None:
    size = 1 + max(r for stage in pipelines.CASES[name].ranks for r in stage)
    if size > DEVICES:
        pytest.skip(f"needs {size} CUDA devices")
    world("pipeline", size, "c10d", name).well()


class Passes(nn.Graph):
    """What one rank makes, the next reads; nothing comes back."""

    def __init__(self, places: list[Any]) -> None:
        super().__init__()
        self.places = places

    def build(self, x: Any) -> Any:
        for place in self.places:
            x = (x.to_global(placement=place, sbp=B) * 2).cumsum(0)
        return x


def passing() -> None:
    places = [flow.placement(KIND, ranks=[r]) for r in (0, 1)]
    graph, whole = Passes(places), torch.arange(12.0).reshape(4, 3)
    outs = [graph(flow.tensor((whole + i).numpy(), placement=places[0], sbp=B)) for i in range(8)]  # all in flight
    for i, y in enumerate(outs):
        wanted = 4 * (whole + i).cumsum(0).cumsum(0)
        np.testing.assert_allclose(y.to_global(placement=places[0], sbp=B).numpy(), wanted.numpy())


@ranks(2)
def test_registers_between_ranks_are_overwritten_late_enough(world: Start) -> None:
    world("passing", 2, "c10d").well()


def fully_sharded(optimizer: str, batches: str, clip: str, again: str) -> None:
    """On each rank a part of every batch: what one trains on all of it."""
    n, rank = int(batches), flow.env.get_rank()
    size = flow.env.get_world_size()
    flow.manual_seed(0)
    net = fsdp.sharded(fsdp.Net().to(KIND), reshard_after_forward={"yes": True, "no": False}.get(again))
    data = torch.tensor(fsdp.DATA).view(n, size, -1, 5)[:, rank].reshape(-1, 5)
    fsdp.train(net, flow.tensor(data.tolist()).to(KIND), optimizer, n, clip == "clip")
    for p, q in zip(net.parameters(), fsdp.alone(optimizer, n, clip == "clip"), strict=True):
        assert p.is_global and p.to_local().is_cuda
        torch.testing.assert_close(torch.tensor(p.numpy()), torch.tensor(q), rtol=1e-4, atol=1e-5)
    assert fsdp.held(net) == 0


@pytest.mark.parametrize(
    ("size", "optimizer", "batches", "clip", "again"),
    [
        (2, "AdamW", 1, "", ""),
        (3, "AdamW", 2, "clip", "yes"),
        (2, "momentum", 1, "clip", "no"),
        (2, "LAMB", 2, "", "yes"),
    ],
)
def test_fully_sharded_data_parallel(
    size: int, optimizer: str, batches: int, clip: str, again: str, world: Start
) -> None:
    if size > DEVICES:
        pytest.skip(f"needs {size} CUDA devices")
    world("fully_sharded", size, "c10d", optimizer, str(batches), clip, again).well()
