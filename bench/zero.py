"""Peak memory per rank of a sharded GPT on four ranks: ZeRO's stages and eager `fully_shard`, against torch's FSDP2.

Ours counts all bytes that kernels allocated in the thread that computes. On two hosts others wait for Gloo: what they
and Gloo allocate isn't counted here, only told by `graph.memory()`. Torch's is what its own tracker for FSDP2 counts:
its tensors, a third less than kernels and Gloo allocated in the same steps.
"""

from __future__ import annotations

import itertools
import json
import os
from typing import Any, Final

import torch
import torch.distributed as dist
from torch.distributed._tools.fsdp2_mem_tracker import FSDPMemTracker
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

import weft as flow
from bench.measure import Row
from bench.memory import peak_of
from bench.models import VOCABULARY, models
from bench.steps import Step, Training, step_of
from weft.core.rank import current
from weft.interop import from_torch
from weft.launch import spawn
from weft.transport.hosts import HOSTS

RANKS: Final = 4
LIMIT: Final = 1.05
SIZE: Final = (4, 256, 1, 128)  # layers, width, batch per rank, tokens: parameters take as much as activations
S, B = flow.sbp.split, flow.sbp.broadcast


def zero(quick: bool) -> list[Row]:
    """Peaks of a rank, parameters and states included. torch's FSDP2 keeps whole parameters between forward and
    backward, as stages 1 and 2 do, or gathers them again, as stage 3 and `fully_shard` do."""
    case = "peak of a rank, GPT 4 layers, d 256, 1x128 on 4 ranks, AdamW"
    kept, again = _apart("fsdp-kept"), _apart("fsdp")
    rows = [Row(f"{case}: whole", "FSDP2, parameters kept", kept, _apart("graph-0"), unit="bytes")]
    for hosts, stage in itertools.product((1, 2), (1, 2, 3)):
        name, theirs = ("FSDP2", again) if stage == 3 else ("FSDP2, parameters kept", kept)
        ours = _apart(f"graph-{stage}", hosts)
        rows.append(
            Row(f"{case}: ZeRO stage {stage}{', on 2 hosts' * (hosts > 1)}", name, theirs, ours, LIMIT, unit="bytes")
        )
    rows.append(Row(f"{case}: eager fully_shard", "FSDP2", again, _apart("eager"), LIMIT, unit="bytes"))
    return rows


def _apart(kind: str, hosts: int = 1) -> int:
    ended = spawn(RANKS, "bench.zero:worker", env={"BENCH_KIND": kind, HOSTS: str(hosts)}, deadline=120.0)
    return max(json.loads(rank.out.splitlines()[-1]) for rank in ended)


def worker() -> None:
    torch.set_num_threads(1)
    kind = os.environ["BENCH_KIND"]
    if kind.startswith("fsdp"):
        print(_of_fsdp(again=kind == "fsdp"))
    else:
        print(peak_of(_eager if kind == "eager" else lambda: _graph(int(kind[-1]))))


def _batch() -> tuple[torch.Tensor, torch.Tensor]:
    _, _, batch, tokens = SIZE
    ids = torch.randint(0, VOCABULARY, (batch, tokens + 1), generator=torch.Generator().manual_seed(current().index))
    return ids[:, :-1].contiguous(), ids[:, 1:].contiguous()


def _model(lib: Any) -> Any:
    layers, width, _, tokens = SIZE
    lib.manual_seed(0)
    return models(lib).GPT(layers, width, tokens)


def _of_fsdp(again: bool) -> int:
    dist.init_process_group("gloo")
    model, mesh = _model(torch), init_device_mesh("cpu", (RANKS,))
    for block in model.blocks:
        fully_shard(block, mesh=mesh, reshard_after_forward=again)
    fully_shard(model, mesh=mesh, reshard_after_forward=again)
    ids, targets = _batch()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    tracker = FSDPMemTracker(model, optimizer)
    tracker.track_inputs((ids, targets))
    step = step_of(lambda: model(ids, targets), optimizer)
    with tracker:
        for _ in range(3):
            step()
            tracker.reset_mod_stats()
    dist.destroy_process_group()
    return int(tracker.get_tracker_snapshot("peak")[torch.device("cpu")]["Total"])


def _eager() -> Step:
    model = _model(flow)
    for block in model.blocks:
        flow.distributed.fsdp.fully_shard(block)
    flow.distributed.fsdp.fully_shard(model)
    ids, targets = map(from_torch, _batch())
    return step_of(lambda: model(ids, targets), flow.optim.AdamW(model.parameters(), lr=1e-3))


def _graph(stage: int) -> Step:
    place = flow.placement("cpu", ranks=list(range(RANKS)))
    model = _model(flow).to_global(placement=place, sbp=B)
    x, y = (from_torch(t).to_global(placement=place, sbp=S(0)) for t in _batch())
    graph = Training(model, lambda m, x, y: m(x, y), flow.optim.AdamW(model.parameters(), lr=1e-3))
    if stage:
        graph.config.enable_zero(stage=stage)
    graph.compile(x, y)
    return lambda: graph(x, y).to_local().item()
