"""Programs written for torch, on four ranks with a CUDA device each: collectives, meshes, wrapped modules."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import weft as flow
import weft.distributed as dist
from tests.worlds import Start
from weft import nn
from weft.core.errors import OptionError
from weft.distributed.device_mesh import init_device_mesh
from weft.distributed.fsdp import CPUOffloadPolicy, fully_shard
from weft.distributed.tensor import Replicate, Shard, distribute_tensor
from weft.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

DEVICES = torch.cuda.device_count() or 4


def program(name: str, folder: str) -> None:
    dist.init_process_group("nccl")
    flow.cuda.set_device(dist.get_rank())
    PROGRAMS[name](dist.get_rank(), dist.get_world_size(), flow.device("cuda", dist.get_rank()), folder)


def collectives(rank: int, n: int, device: Any, _: str) -> None:
    def mine(*shape: int) -> Any:
        return flow.full(shape, float(rank), device=device)

    x = mine(4)
    dist.all_reduce(x, async_op=True).wait()
    assert x.tolist() == [6.0] * 4
    every = [flow.zeros(4, device=device) for _ in range(n)]
    dist.all_gather(every, mine(4))
    assert [int(t[0]) for t in every] == list(range(n))
    whole, part = flow.zeros(4 * n, device=device), flow.zeros(4, device=device)
    dist.all_gather_into_tensor(whole, mine(4))
    assert whole.tolist() == [float(i // 4) for i in range(4 * n)]
    dist.reduce_scatter_tensor(part, mine(4 * n))
    assert part.tolist() == [6.0] * 4
    dist.broadcast(x := mine(2), 2)
    assert x.tolist() == [2.0, 2.0]
    dist.all_to_all_single(x := flow.zeros(n, device=device), flow.arange(n, device=device) + 10.0 * rank)
    assert x.tolist() == [10.0 * i + rank for i in range(n)]
    ops = [dist.P2POp(dist.isend, mine(3), (rank + 1) % n),
           dist.P2POp(dist.irecv, x := flow.zeros(3, device=device), (rank - 1) % n)]  # fmt: skip
    for work in dist.batch_isend_irecv(ops):
        work.wait()
    assert x.tolist() == [float((rank - 1) % n)] * 3
    some = dist.new_group([1, 3])
    if rank in (1, 3):
        dist.all_reduce(x := mine(3), group=some)
        assert x.tolist() == [4.0] * 3
    dist.barrier()


class Mlp(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(8, 16), nn.Linear(16, 8)

    def forward(self, x: Any) -> Any:
        return self.down(flow.relu(self.up(x)))


def split_both_ways(rank: int, n: int, device: Any, _: str) -> None:
    """Tensor-parallel pairs, whose parts are fully sharded over the pairs, beside one whole model."""
    mesh = init_device_mesh("cuda", (2, 2), mesh_dim_names=("data", "tensor"))
    flow.manual_seed(0)
    model, whole = Mlp().to(device), Mlp().to(device)
    whole.load_state_dict(model.state_dict())
    parallelize_module(model, mesh["tensor"], {"up": ColwiseParallel(), "down": RowwiseParallel()})
    fully_shard(model, mesh=mesh["data"])
    one, other = (flow.optim.AdamW(m.parameters(), lr=0.01) for m in (model, whole))
    for i in range(3):
        x = torch.randn(8, 8, generator=torch.Generator().manual_seed(i))
        for m, optimizer, given in ((model, one, x.chunk(2)[rank // 2]), (whole, other, x)):
            optimizer.zero_grad()
            m(flow.from_torch(given).to(device)).square().mean().backward()
            optimizer.step()
    for p, q in zip(model.parameters(), whole.parameters(), strict=True):
        np.testing.assert_allclose(p.full_tensor().numpy(), q.numpy(), rtol=1e-3, atol=1e-5)


def replicas_of_parts(rank: int, n: int, device: Any, _: str) -> None:
    mesh = init_device_mesh("cuda", (2, 2), mesh_dim_names=("replicas", "parts"))
    flow.manual_seed(0)
    model, whole = Mlp().to(device), Mlp().to(device)
    whole.load_state_dict(model.state_dict())
    with pytest.raises(OptionError, match="stay there"):
        fully_shard(model, mesh=mesh, offload_policy=CPUOffloadPolicy())
    for m in (model.up, model.down, model):
        fully_shard(m, mesh=mesh)
    one, other = (flow.optim.SGD(m.parameters(), lr=0.1) for m in (model, whole))
    for i in range(3):
        x = torch.randn(8, 8, generator=torch.Generator().manual_seed(i))
        for m, optimizer, given in ((model, one, x.chunk(n)[rank]), (whole, other, x)):
            optimizer.zero_grad()
            m(flow.from_torch(given).to(device)).square().mean().backward()
            optimizer.step()
    for p, q in zip(model.parameters(), whole.parameters(), strict=True):
        np.testing.assert_allclose(p.full_tensor().numpy(), q.numpy(), rtol=1e-4, atol=1e-6)


def distributed_tensors(rank: int, n: int, device: Any, _: str) -> None:
    mesh = init_device_mesh("cuda", (n,))
    x = distribute_tensor(flow.arange(32.0, device=device).reshape(8, 4), mesh, [Shard(0)])
    y = x.redistribute(mesh, [Replicate()])
    assert y.to_local().device == device and y.full_tensor().sum().item() == 496
    whole = torch.arange(32.0).reshape(8, 4)
    np.testing.assert_allclose((x @ x.t()).full_tensor().numpy(), (whole @ whole.t()).numpy())


def wrapped(rank: int, n: int, device: Any, _: str) -> None:
    flow.manual_seed(rank)
    model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Linear(8, 2)).to(device)
    replica = nn.parallel.DistributedDataParallel(model, device_ids=[rank])
    optimizer = flow.optim.SGD(replica.parameters(), lr=0.1)
    for _ in range(3):
        with replica.no_sync():
            replica(flow.rand(2, 4, device=device) * rank).sum().backward()
        replica(flow.rand(2, 4, device=device)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    sums: list[Any] = [None] * n
    dist.all_gather_object(sums, [p.sum().item() for p in model.parameters()])
    assert sums == [sums[0]] * n


def checkpoints(rank: int, n: int, device: Any, folder: str) -> None:
    place = flow.placement("cuda", ranks=list(range(n)))
    flow.manual_seed(0)
    model = nn.Linear(8, 8).to_global(placement=place, sbp=flow.sbp.split(0))
    before = model.weight.detach().clone().numpy()
    flow.save(model.state_dict(), f"{folder}/state", global_dst_rank=0)
    dist.barrier()
    model.weight.data.zero_()
    model.load_state_dict(flow.load(f"{folder}/state", placement=place, sbp=flow.sbp.broadcast))
    np.testing.assert_array_equal(model.weight.numpy(), before)


PROGRAMS: dict[str, Callable[[int, int, Any, str], None]] = {
    f.__name__: f for f in (collectives, split_both_ways, replicas_of_parts, distributed_tensors, wrapped, checkpoints)
}


@pytest.mark.skipif(DEVICES < 4, reason="needs four CUDA devices")
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name: str, world: Start, tmp_path: Path) -> None:
    world("program", 4, "c10d", name, str(tmp_path)).well()
