"""Training on a CUDA device: mixed precision, graphs, checkpoints, one rank of data parallel."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

import weft as flow
from tests.graphs import Trains
from weft import nn
from weft.interop import from_torch, load_torch

pytestmark = pytest.mark.cuda
DEVICE = "cuda"
DATA = torch.randn(32, 8, generator=torch.Generator().manual_seed(0))


def model(lib: Any) -> Any:
    return lib.nn.Sequential(lib.nn.Linear(8, 32), lib.nn.GELU(), lib.nn.LayerNorm(32), lib.nn.Linear(32, 4))


def pair() -> tuple[Any, Any]:
    torch.manual_seed(0)
    theirs = model(torch)
    ours = load_torch(model(flow), theirs)
    return theirs.to(DEVICE), ours.to(DEVICE)


def losses(net: Any, x: Any, optimizer: Any, steps: int = 5) -> list[float]:
    found = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = (net(x) ** 2).mean()
        loss.backward()
        optimizer.step()
        found.append(loss.item())
    return found


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW"])
def test_a_model_trains_as_torchs_does(name: str) -> None:
    theirs, ours = pair()
    options = {"lr": 0.05, **({"momentum": 0.9} if name == "SGD" else {})}
    expected = losses(theirs, DATA.to(DEVICE), getattr(torch.optim, name)(theirs.parameters(), **options))
    got = losses(ours, from_torch(DATA).to(DEVICE), getattr(flow.optim, name)(ours.parameters(), **options))
    assert got == pytest.approx(expected, rel=1e-3)
    assert all(p.device.type == DEVICE for p in ours.parameters())


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_mixed_precision_with_a_scaled_loss(dtype: str) -> None:
    theirs, ours = pair()

    def run(lib: Any, net: Any, x: Any, scaler: Any) -> tuple[list[float], Any]:
        optimizer, found = lib.optim.SGD(net.parameters(), lr=0.05), []
        y = x
        for _ in range(5):
            optimizer.zero_grad()
            with lib.autocast(DEVICE, dtype=getattr(lib, dtype)):
                y = net(x)
                loss = (y.float() ** 2).mean()
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            found.append(loss.item())
        return found, y.dtype

    expected, _ = run(torch, theirs, DATA.to(DEVICE), torch.amp.GradScaler(DEVICE))
    got, kind = run(flow, ours, from_torch(DATA).to(DEVICE), flow.amp.GradScaler())
    assert kind is getattr(flow, dtype)
    assert got == pytest.approx(expected, rel=3e-2) and got[-1] < got[0]


def test_an_infinite_gradient_makes_no_step() -> None:
    w = nn.Parameter(flow.ones(2, device=DEVICE))
    optimizer, scaler = flow.optim.SGD([w], lr=1.0), flow.amp.GradScaler(init_scale=8.0)
    scaler.scale((w * float("inf")).sum()).backward()
    scaler.step(optimizer)
    scaler.update()
    assert w.tolist() == [1.0, 1.0] and scaler.get_scale() == 4.0


def test_a_graph_trains_as_eagerly_and_as_on_the_cpu() -> None:
    found = {}
    for device, graph in ((DEVICE, True), (DEVICE, False), ("cpu", True)):
        _, net = pair()
        net, x = net.to(device), from_torch(DATA).to(device)
        optimizer = flow.optim.AdamW(net.parameters(), lr=0.05)
        if graph:
            step = Trains(net, optimizer, lambda y: (y**2).mean())
            found[device, graph] = [step(x).item() for _ in range(5)]
            step.close()
        else:
            found[device, graph] = losses(net, x, optimizer)
    assert found[DEVICE, True] == pytest.approx(found[DEVICE, False], rel=1e-4)
    assert found[DEVICE, True] == pytest.approx(found["cpu", True], rel=1e-3)


def test_a_graph_of_global_tensors_with_dropout_draws_anew_and_repeats() -> None:
    place = flow.placement(DEVICE, ranks=[0])

    class Drop(nn.Graph):
        def build(self, x: Any) -> Any:
            return nn.functional.dropout(x, 0.5)

    x = flow.ones(64, placement=place, sbp=flow.sbp.broadcast)
    runs = []
    for _ in range(2):
        flow.manual_seed(5)
        graph = Drop()
        runs.append([graph(x).numpy().tolist() for _ in range(2)])
        graph.close()
    assert runs[0] == runs[1] and runs[0][0] != runs[0][1]


def test_a_checkpoint_moves_between_devices(tmp_path: Path) -> None:
    _, net = pair()
    optimizer = flow.optim.AdamW(net.parameters(), lr=0.05)
    losses(net, from_torch(DATA).to(DEVICE), optimizer, 2)
    flow.save({"net": net.state_dict(), "optimizer": optimizer.state_dict()}, tmp_path / "all")
    expected = losses(net, from_torch(DATA).to(DEVICE), optimizer, 2)
    for device in ("cpu", DEVICE):
        state = flow.load(tmp_path / "all", map_location=device)
        assert all(t.device.type == device for t in state["net"].values())
        again = model(flow).to(device)
        again.load_state_dict(state["net"])
        after = flow.optim.AdamW(again.parameters(), lr=0.05)
        after.load_state_dict(state["optimizer"])
        assert losses(again, from_torch(DATA).to(device), after, 2) == pytest.approx(expected, rel=1e-3)


def test_one_rank_of_data_parallel_and_collectives_of_one() -> None:
    _, net = pair()
    _, alone = pair()
    x = from_torch(DATA).to(DEVICE)
    wrapped = nn.parallel.DistributedDataParallel(net)
    assert losses(wrapped, x, flow.optim.SGD(wrapped.parameters(), lr=0.05)) == losses(
        alone, x, flow.optim.SGD(alone.parameters(), lr=0.05)
    )
    t = flow.ones(4, device=DEVICE)
    assert flow.comm.all_reduce(t).tolist() == [1.0] * 4 and t.device.type == DEVICE
    flow.comm.broadcast(t, 0)
    flow.comm.barrier()


def test_batches_pinned_and_moved() -> None:
    rows = flow.utils.data.TensorDataset(from_torch(DATA), flow.arange(32))
    for x, i in flow.utils.data.DataLoader(rows, batch_size=8, pin_memory=DEVICE == "cuda"):
        assert x.to(DEVICE, non_blocking=True)[0].cpu().equal(from_torch(DATA)[int(i[0])])


def test_the_profiler_and_the_trace_see_ops_of_the_device() -> None:
    x = flow.ones(8, 8, device=DEVICE)
    with flow.profiler.profile() as p:
        (x @ x).sum().item()
    assert {"matmul", "sum"} <= {r.name for r in p.key_averages()}
