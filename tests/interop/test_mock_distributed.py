"""Published programs of several ranks, which import torch's names, run on Weft's."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

PROGRAM = """
import weft as flow
flow.mock_torch.enable()
import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as funcol
from torch import nn
from torch.distributed._composable.fsdp import fully_shard as older
from torch.distributed._tensor import DTensor as older_kind
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import CPUOffloadPolicy, FSDPModule, MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.distributed.tensor.placement_types import Placement

dist.init_process_group("gloo")
assert older is fully_shard and older_kind is DTensor and issubclass(Shard, Placement)
mesh = init_device_mesh("cpu", (dist.get_world_size(),), mesh_dim_names=("ranks",))
x = torch.arange(12.0).view(4, 3) - 5
assert torch.equal(funcol.wait_tensor(funcol.all_reduce(x, "sum", mesh)), 2 * x)

torch.manual_seed(0)
theirs = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
expected = theirs(x)
weight = theirs[0].weight.detach().clone()
parallelize_module(theirs, mesh["ranks"], {"0": ColwiseParallel(), "2": RowwiseParallel()})
assert theirs[0].weight.placements == (Shard(0),) and theirs[2].weight.to_local().shape == (2, 2)
assert torch.allclose(theirs(x), expected, atol=1e-6) and torch.equal(theirs[0].weight.full_tensor(), weight)

with torch.device("meta"):
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
half = MixedPrecisionPolicy(param_dtype=torch.bfloat16)
fully_shard(model[0], mesh=mesh, mp_policy=half, offload_policy=CPUOffloadPolicy())
fully_shard(model, mesh=mesh, mp_policy=MixedPrecisionPolicy(param_dtype=torch.bfloat16, output_dtype=torch.float32))
assert isinstance(model, FSDPModule) and all(isinstance(p, DTensor) for p in model.parameters())
model.to_empty(device="cpu")
model.apply(lambda m: m.reset_parameters() if isinstance(m, nn.Linear) else None)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
before = model[0].weight.full_tensor()
y = model(x)
y.square().mean().backward()
norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
optimizer.step()
assert y.dtype is torch.float32 and not torch.equal(model[0].weight.full_tensor(), before)
assert model[0].weight.grad.placements == (Shard(0),) and model[2].weight.device_mesh == mesh
dist.destroy_process_group()
print("done")
"""


def test_torchs_shards_and_plans_are_wefts(tmp_path: Path) -> None:
    (tmp_path / "main.py").write_text(PROGRAM)
    root = str(Path(__file__).parents[2])
    done = subprocess.run(
        [sys.executable, "-m", "weft.launch", "--nproc_per_node", "2", "main.py"],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": root}, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.stdout.count("done") == 2, done.stdout + done.stderr
