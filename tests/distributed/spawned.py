"""As PyTorch's users write it: processes that are told their place, and average gradients."""

from __future__ import annotations

import os
import sys

import weft as flow
import weft.distributed as dist
from weft import multiprocessing as mp
from weft import nn
from weft.nn.parallel import DistributedDataParallel as DDP


def train(rank: int, world_size: int, port: str) -> None:
    flow.manual_seed(0)  # before it joins
    os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = "localhost", port
    dist.init_process_group("gloo", rank=rank, world_size=world_size)
    model = DDP(nn.Linear(2, 1))
    optimizer = flow.optim.SGD(model.parameters(), lr=0.1)
    for step in range(3):
        loss = (model(flow.full((4, 2), float(rank + step))) - 1).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    found = [None] * world_size
    dist.all_gather_object(found, [p.tolist() for p in model.parameters()])
    assert found[0] == found[1], found
    if dist.get_rank() == 0:
        print("alike", dist.get_world_size(), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(train, args=(2, sys.argv[1]), nprocs=2, join=True)
