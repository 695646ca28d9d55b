"""Two processes: global tensors beside DTensor, all-reduce beside Gloo, data-parallel graphs beside DDP.

The functions whose names end in `_worker` run on each rank; rank 0 prints its rows as JSON.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Shard, distribute_tensor

import weft as flow
from bench.measure import SAMPLES, Row, least
from bench.models import GPTS
from bench.steps import Training, gpt_pair, step_of
from weft.core.rank import current
from weft.interop import from_torch
from weft.launch import spawn
from weft.transport import transport_of

S, B = flow.sbp.split, flow.sbp.broadcast
MESSAGES = (("1 KB", 256, 100, 15.0), ("256 KB", 1 << 16, 50, 1.0), ("4 MB", 1 << 20, 20, 5.0))
# An all-reduce's size, elements, consecutive calls in each sample, and goal.


def run(
    worker: str, quickly: bool, transport: str = "shm", env: Mapping[str, str] | None = None,
    module: str = "bench.two_ranks",
) -> list[Row]:  # fmt: skip
    variables = {"BENCH_QUICK": str(int(quickly)), **(env or {})}
    ended = spawn(2, f"{module}:{worker}", transport=transport, env=variables, deadline=400.0)
    return [Row(*fields) for fields in json.loads(ended[0].out.splitlines()[-1])]


def ops(quickly: bool) -> list[Row]:
    return run("ops_worker", quickly)


def all_reduce(quickly: bool) -> list[Row]:
    return run("all_reduce_worker", quickly) + run("checked_worker", quickly, "c10d")


def data_parallel(quickly: bool) -> list[Row]:
    return run("data_parallel_worker", quickly)


def tell(rows: list[Row]) -> None:
    dist.destroy_process_group()
    if current().index == 0:
        print(json.dumps(rows))


def quick() -> bool:
    return os.environ.get("BENCH_QUICK") == "1"


def begin() -> Any:
    torch.set_num_threads(1)
    transport = transport_of()
    dist.init_process_group("gloo")
    return transport.group(range(transport.world_size))


def ops_worker() -> None:
    everyone = begin()
    mesh = init_device_mesh("cpu", (2,))
    place = flow.placement("cpu", ranks=[0, 1])
    torch.manual_seed(0)
    whole, weight = torch.randn(8, 8), torch.randn(8, 8)
    a = distribute_tensor(whole, mesh, [Shard(0)])
    w = distribute_tensor(weight, mesh, [Shard(1)])
    left = distribute_tensor(whole, mesh, [Shard(1)])
    right = distribute_tensor(weight, mesh, [Shard(0)])
    x = from_torch(whole).to_global(placement=place, sbp=B).to_global(sbp=S(0))
    k = from_torch(whole).to_global(placement=place, sbp=B).to_global(sbp=S(1))
    v = from_torch(weight).to_global(placement=place, sbp=B).to_global(sbp=S(0))
    del w
    found = []
    n = 500 if quick() else 5_000
    with torch.no_grad():
        for case, theirs, ours in (
            ("eager global relu 8x8, 2 ranks", lambda: torch.relu(a), lambda: flow.relu(x)),
            ("eager global add 8x8, 2 ranks", lambda: torch.add(a, a), lambda: flow.add(x, x)),
            ("eager global matmul 8x8, 2 ranks", lambda: torch.matmul(left, right), lambda: flow.matmul(k, v)),
        ):
            t, o = least([theirs, ours], n, before=everyone.barrier)
            found.append(Row(case, "DTensor", t, o, 1.2))
    tell(found)


def all_reduce_worker() -> None:
    everyone = begin()
    found = []
    for name, count, calls, goal in MESSAGES:
        t = torch.zeros(count)
        gloo, ours = least(
            [lambda t=t: dist.all_reduce(t), lambda t=t: everyone.all_reduce(t)],
            calls * SAMPLES, 1 if quick() else 3, everyone.barrier,
        )  # fmt: skip
        found.append(Row(f"all-reduce of {name}, 2 processes", "Gloo", gloo, ours, None, goal))
    tell(found)


def checked_worker() -> None:
    """The cost of comparing calls between ranks, over c10d."""
    everyone = begin()
    t = torch.zeros(256)
    calls = [lambda: dist.all_reduce(t), lambda: everyone.all_reduce(t)]
    gloo, ours = least(calls, 10 * SAMPLES, 1 if quick() else 3, everyone.barrier)
    tell([Row("all-reduce of 1 KB over c10d, 2 processes", "Gloo", gloo, ours, 1.1)])


def data_parallel_worker() -> None:
    everyone = begin()
    rank = current().index
    place = flow.placement("cpu", ranks=[0, 1])
    found = []
    for size, n, limit in zip(GPTS, (30, 2), (0.6, 0.95), strict=True):
        a, b, ids, targets = gpt_pair(size)
        half = ids.shape[0] // 2
        mine = slice(rank * half, (rank + 1) * half)
        ddp = torch.nn.parallel.DistributedDataParallel(a)
        theirs = step_of(
            lambda ddp=ddp, x=ids[mine], y=targets[mine]: ddp(x, y), torch.optim.AdamW(a.parameters(), lr=1e-3)
        )
        b.to_global(placement=place, sbp=B)
        x, y = (from_torch(t[mine].clone()).to_global(placement=place, sbp=S(0)) for t in (ids, targets))
        graph = Training(b, lambda m, x, y: m(x, y), flow.optim.AdamW(b.parameters(), lr=1e-3))
        t, o = least(
            [theirs, lambda graph=graph, x=x, y=y: graph(x, y).to_local().item()],
            max(n // (5 if quick() else 1), 2), 7, everyone.barrier,
        )  # fmt: skip
        found.append(Row(f"data-parallel GPT step, 2 ranks, {size}", "torch DDP", t, o, limit))
        graph.close()
    tell(found)
