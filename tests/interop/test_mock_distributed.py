"""Published programs of several ranks, which import torch's names, run on Weft's."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import worlds
from tests.worlds import Start

PROGRAM = """
import weft as flow
flow.mock_torch.enable()
import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as funcol
from torch import nn
from torch.distributed._composable.fsdp import fully_shard as older
from torch.distributed._tensor import DTensor as older_kind
from torch.distributed._tensor.device_mesh import init_device_mesh as older_mesh
from torch.distributed._tensor.placement_types import Shard as older_placement
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import CPUOffloadPolicy, FSDPModule, MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.distributed.tensor.placement_types import Placement

dist.init_process_group("gloo")
assert older is fully_shard and older_kind is DTensor and issubclass(Shard, Placement)
assert older_mesh is init_device_mesh and older_placement is Shard
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


SHARDED = """
import weft as flow
flow.mock_torch.enable()
import functools
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch import nn
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import (
    CheckpointImpl, apply_activation_checkpointing, checkpoint_wrapper)
from torch.distributed.checkpoint.filesystem import FileSystemWriter
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.checkpoint.stateful import Stateful
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP
from torch.distributed.fsdp.api import ShardingStrategy
from torch.distributed.fsdp.fully_sharded_data_parallel import (
    BackwardPrefetch, CPUOffload, FullStateDictConfig, MixedPrecision, StateDictType)
from torch.distributed.fsdp.sharded_grad_scaler import ShardedGradScaler
from torch.distributed.fsdp.wrap import enable_wrap, transformer_auto_wrap_policy, wrap

dist.init_process_group("gloo")

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.f = nn.Linear(4, 4)

    def forward(self, x):
        return x + self.f(x).relu()

class AppState(Stateful):
    def __init__(self, model, optimizer):
        self.model, self.optimizer = model, optimizer

    def state_dict(self):
        model, optimizer = get_state_dict(self.model, self.optimizer)
        return {"model": model, "optim": optimizer}

    def load_state_dict(self, state):
        set_state_dict(self.model, self.optimizer, model_state_dict=state["model"], optim_state_dict=state["optim"])

def made(seed):
    torch.manual_seed(seed)
    model = FSDP(
        nn.Sequential(Block(), Block(), nn.Linear(4, 1)), sharding_strategy=ShardingStrategy.FULL_SHARD,
        auto_wrap_policy=functools.partial(transformer_auto_wrap_policy, transformer_layer_cls={Block}),
        mixed_precision=MixedPrecision(torch.bfloat16, torch.float32, torch.bfloat16), device_id=None,
        backward_prefetch=BackwardPrefetch.BACKWARD_PRE, cpu_offload=CPUOffload(offload_params=False))
    again = functools.partial(checkpoint_wrapper, checkpoint_impl=CheckpointImpl.NO_REENTRANT)
    apply_activation_checkpointing(model, checkpoint_wrapper_fn=again, check_fn=lambda m: isinstance(m, Block))
    return model, torch.optim.AdamW(model.parameters(), lr=1e-2)

def trained(model, optimizer, steps):
    scaler, losses = ShardedGradScaler(enabled=False), []
    x = torch.linspace(-1, 1, 32).view(8, 4)
    for _ in range(steps):
        optimizer.zero_grad()
        loss = model(x).float().square().mean()
        scaler.scale(loss).backward()
        model.clip_grad_norm_(1.0)
        scaler.step(optimizer)
        scaler.update()
        losses.append(loss.item())
    return losses

model, optimizer = made(0)
trained(model, optimizer, 2)
dcp.save({"app": AppState(model, optimizer), "step": 2}, storage_writer=FileSystemWriter("at"))
expected = trained(model, optimizer, 2)
assert expected[1] < expected[0]
model, optimizer = made(1)
state = {"app": AppState(model, optimizer), "step": 0}
dcp.load(state, checkpoint_id="at")
assert state["step"] == 2 and trained(model, optimizer, 2) == expected
on_one = FullStateDictConfig(offload_to_cpu=True, rank0_only=True)
with FSDP.state_dict_type(model, StateDictType.FULL_STATE_DICT, on_one):
    state = model.state_dict()
assert len(state) == (6 if dist.get_rank() == 0 else 0)
with enable_wrap(wrapper_cls=FSDP):
    assert isinstance(wrap(nn.Linear(2, 2)), FSDP)
print("done")
"""

UNEVEN = """
import weft as flow
flow.mock_torch.enable()
import torch
import torch.distributed as dist
from torch.distributed.algorithms.join import Join, Joinable, JoinHook
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(0)
model = DDP(torch.nn.Linear(1, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
with Join([model]):
    for x in [torch.ones(1)] * (3 + rank):
        optimizer.zero_grad()
        model(x).sum().backward()
        optimizer.step()
weights = [torch.empty(1, 1) for _ in range(2)]
dist.all_gather(weights, model.weight.detach())
assert torch.equal(*weights)
print("done")
"""

STAGED = """
import weft as flow
flow.mock_torch.enable()
import copy
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.pipelining import (
    PipelineStage, Schedule1F1B, ScheduleGPipe, ScheduleInterleaved1F1B, ScheduleInterleavedZeroBubble,
    ScheduleZBVZeroBubble)

dist.init_process_group("gloo")
rank, everyone = dist.get_rank(), dist.group.WORLD
assert everyone is dist.distributed_c10d._get_default_group() and everyone.size() == dist.get_world_size(everyone) == 2
torch.manual_seed(0)
layers, x, y = [nn.Sequential(nn.Linear(4, 4), nn.Tanh()) for _ in range(4)], torch.randn(8, 4), torch.randn(8, 4)
whole = copy.deepcopy(nn.Sequential(*layers))
for part, target in zip(x.chunk(4), y.chunk(4)):
    (nn.functional.mse_loss(whole(part), target) / 4).backward()

def run(kind, mine, modules):
    stages = [PipelineStage(m, i if len(mine) == len(modules) else rank, 2 * len(modules), torch.device("cpu"),
                            group=everyone) for i, m in zip(mine, modules)]
    schedule = kind(stages if len(modules) > 1 else stages[0], 4, loss_fn=nn.functional.mse_loss)
    losses = []
    ends = {"target": y, "losses": losses} if 3 in mine else {}
    y_ = schedule.step(*[x][rank:], **ends)
    return losses, y_

WHERE = {  # the layers of this rank, as one stage or as two
    ScheduleGPipe: [2 * rank, 2 * rank + 1], Schedule1F1B: [2 * rank, 2 * rank + 1],
    ScheduleInterleaved1F1B: [rank, rank + 2], ScheduleInterleavedZeroBubble: [rank, rank + 2],
    ScheduleZBVZeroBubble: [rank, 3 - rank]}
for kind, mine in WHERE.items():
    chunks = kind not in (ScheduleGPipe, Schedule1F1B)
    modules = [copy.deepcopy(layers[i]) for i in mine]
    losses, made = run(kind, mine, modules if chunks else [nn.Sequential(*modules)])
    for i, module in zip(mine, modules):
        assert torch.allclose(module[0].weight.grad, whole[i][0].weight.grad, atol=1e-6), (kind, i)
    if 3 in mine:
        assert torch.allclose(made, whole(x)) and len(losses) == 4
        assert abs(sum(losses) / 4 - nn.functional.mse_loss(whole(x), y)) < 1e-6
print("done")
"""

HOOKED = """
import weft as flow
flow.mock_torch.enable()
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("gloo")
rank, found = dist.get_rank(), []
exact = powerSGD_hook.PowerSGDState(None, matrix_approximation_rank=4, start_powerSGD_iter=2, min_compression_rate=0)
for state, hook in ((None, None), (None, default_hooks.fp16_compress_hook), (exact, powerSGD_hook.powerSGD_hook)):
    torch.manual_seed(0)
    model = DDP(nn.Linear(4, 4))
    if hook is not None:
        model.register_comm_hook(state, hook)
    for step in range(4):
        model.zero_grad()
        model(torch.randn(8, 4) + rank).square().sum().backward()
    found.append(model.weight.grad.clone())
assert torch.allclose(found[0], found[1], rtol=1e-2, atol=1e-2) and torch.allclose(found[0], found[2], rtol=1e-3)
print("done")
"""


@pytest.mark.parametrize(
    "program", [PROGRAM, SHARDED, UNEVEN, STAGED, HOOKED], ids=["grouped", "sharded", "uneven", "staged", "hooked"]
)
def test_programs_of_torchs_names_run(world: Start, tmp_path: Path, program: str) -> None:
    (tmp_path / "main.py").write_text(program.replace('"at"', repr(str(tmp_path / "at"))))
    said = world(worlds.PROGRAM, 2, "shm", str(tmp_path / "main.py")).well()
    assert [each.splitlines()[-1] for each in said] == ["done"] * 2
