"""Graphs whose chains are captured as CUDA graphs: what they compute is what the eager program computes."""

from __future__ import annotations

import gc
import itertools
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import weft as flow
from weft import nn
from weft.compiler import inductor
from weft.graph.on_cuda.captured import Captures
from weft.launch import spawn_threads
from weft.ops import OPS
from weft.ops.declaration import op

pytestmark = pytest.mark.cuda
DEVICE = "cuda"


@pytest.fixture
def captured(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """For each chain's function that was to be captured, whether it was."""
    found: list[bool] = []
    replay = Captures.replay

    def counted(self: Captures, *args: Any) -> Any:
        made = replay(self, *args)
        found.append(made is not None)
        return made

    monkeypatch.setattr(Captures, "replay", counted)
    return found


class Net(nn.Module):
    """Attention, norms, dropout, convolution, batch norm, tokens."""

    def __init__(self, drop: float = 0.0) -> None:
        super().__init__()
        self.token, self.qkv = nn.Embedding(11, 16), nn.Linear(16, 48, bias=False)  # keys' would have no gradient
        self.norm, self.drop, self.head = nn.LayerNorm(16), nn.Dropout(drop), nn.Linear(16, 11)
        self.conv, self.batch = nn.Conv1d(16, 16, 3, padding=1, bias=False), nn.BatchNorm1d(16)

    def forward(self, ids: Any, targets: Any) -> Any:
        x = self.token(ids)
        q, k, v = (y.reshape(len(ids), -1, 2, 8).transpose(1, 2) for y in self.qkv(x).chunk(3, -1))
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = self.norm(self.drop(x + y.transpose(1, 2).reshape(x.shape)))
        x = x + self.batch(self.conv(x.transpose(1, 2))).transpose(1, 2)
        return nn.functional.cross_entropy(self.head(x).reshape(-1, 11), targets.reshape(-1))


class Train(nn.Graph):
    def __init__(self, net: Any, optimizer: Any, scheduler: Any = None, pieces: int = 1, amp: bool = False) -> None:
        super().__init__()
        self.net = net
        self.add_optimizer(optimizer, lr_sch=scheduler)
        self.config.set_gradient_accumulation_steps(pieces)
        self.config.enable_amp(amp)

    def build(self, *batch: Any) -> Any:
        loss = self.net(*batch)
        loss.backward()
        return loss


def batches(n: int, rows: int = 4) -> list[tuple[Any, Any]]:
    rng = torch.Generator().manual_seed(1)
    return [tuple(flow.from_torch(torch.randint(0, 11, (rows, 6), generator=rng)).to(DEVICE) for _ in range(2))
            for _ in range(n)]  # fmt: skip


def made(drop: float = 0.0) -> Net:
    flow.manual_seed(0)
    return Net(drop).to(DEVICE)


Make = Callable[[Any], Any]
OPTIMIZERS: dict[str, Make] = {
    "SGD": lambda p: flow.optim.SGD(p, lr=0.1, momentum=0.9), "AdamW": lambda p: flow.optim.AdamW(p, lr=0.01),
    "LAMB": lambda p: flow.optim.LAMB(p, lr=0.01), "Adagrad": lambda p: flow.optim.Adagrad(p, lr=0.01),
    "RMSprop": lambda p: flow.optim.RMSprop(p, lr=0.01),
}  # fmt: skip


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("drop", [0.0, 0.5])
def test_steps_with_a_schedule_are_the_eager_ones(name: str, drop: float, captured: list[bool]) -> None:
    found, states = [], []
    for in_graph in (False, True):
        net = made(drop)
        optimizer = OPTIMIZERS[name](net.parameters())
        schedule = flow.optim.lr_scheduler.CosineAnnealingLR(optimizer, 8)
        flow.manual_seed(5)
        step = Train(net, optimizer, schedule) if in_graph else None
        losses = []
        for batch in batches(8):
            if step is None:
                loss = net(*batch)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                schedule.step()
            else:
                loss = step(*batch)
            losses.append(loss.item())
        found.append([*losses, float(flow.rand(1, device=DEVICE).item())])
        states.append({k: v.float().cpu().numpy().tolist() for k, v in net.state_dict().items()})
        if step is not None:
            step.close()
    assert found[1] == pytest.approx(found[0], rel=1e-4)
    for k, v in states[0].items():
        torch.testing.assert_close(torch.tensor(states[1][k]), torch.tensor(v), rtol=1e-3, atol=1e-3)
    assert captured == ([True] if name in ("SGD", "AdamW") else [])


@pytest.mark.parametrize("amp", [False, True])
def test_micro_batches_are_captured_each(amp: bool, captured: list[bool]) -> None:
    found = []
    for rows, pieces in ((4, 1), (4, 2)):
        net = made()
        del net.batch, net.conv  # whose statistics differ
        net.batch, net.conv = nn.Identity(), nn.Identity()
        step = Train(net, flow.optim.SGD(net.parameters(), lr=0.1), pieces=pieces, amp=amp)
        found.append([float(step(*batch).mean().item()) for batch in batches(8, rows)])
        step.close()
    assert found[1] == pytest.approx(found[0], rel=2e-2 if amp else 1e-4)
    assert captured and all(captured)


def test_global_tensors_of_one_rank(captured: list[bool]) -> None:
    place, found = flow.placement(DEVICE, ranks=[0]), []
    for is_global in (False, True):
        net = made()
        if is_global:
            net = net.to_global(placement=place, sbp=flow.sbp.broadcast)
        step = Train(net, flow.optim.AdamW(net.parameters(), lr=0.01))
        losses = []
        for batch in batches(6):
            if is_global:
                batch = tuple(t.to_global(placement=place, sbp=flow.sbp.split(0)) for t in batch)
            loss = step(*batch)
            losses.append(loss.numpy().item())
        found.append(losses)
        step.close()
    assert found[1] == pytest.approx(found[0], rel=1e-4) and captured == [True, True]


def test_other_memory_for_a_parameter_and_eager_steps_between(captured: list[bool]) -> None:
    net, twin = made(), made()
    twin.load_state_dict(net.state_dict())
    step = Train(net, flow.optim.SGD(net.parameters(), lr=0.1))
    by_hand = flow.optim.SGD(twin.parameters(), lr=0.1)
    for i, batch in enumerate(batches(9)):
        if i == 4:
            net.head.weight.data = net.head.weight.data * 2
            twin.head.weight.data = twin.head.weight.data * 2
        loss = twin(*batch)
        by_hand.zero_grad()
        loss.backward()
        by_hand.step()
        assert step(*batch).item() == pytest.approx(loss.item(), rel=1e-4)
    assert captured == [True, True]


class Blank(nn.Graph):
    """One that knows no model."""

    def build(self, *batch: Any) -> Any:
        raise AssertionError("it is loaded")


@pytest.mark.parametrize("is_global", [False, True])
def test_a_saved_plan_goes_on(is_global: bool, tmp_path: Path) -> None:
    place, net = flow.placement(DEVICE, ranks=[0]), made()
    if is_global:
        net = net.to_global(placement=place, sbp=flow.sbp.broadcast)
    step, twin = Train(net, flow.optim.AdamW(net.parameters(), lr=0.01)), Blank()
    given: list[Any] = batches(6)
    if is_global:
        given = [tuple(t.to_global(placement=place, sbp=flow.sbp.split(0)) for t in batch) for batch in given]
    for batch in given[:3]:
        step(*batch)
    flow.save(step.runtime_state_dict(), tmp_path / "state")
    twin.load_runtime_state_dict(flow.load(tmp_path / "state"))
    for batch in given[3:]:
        assert twin(*batch).numpy().item() == pytest.approx(step(*batch).numpy().item(), rel=1e-5)


def test_an_overwritten_parameter_is_noticed() -> None:
    net = made()
    step = Train(net, flow.optim.SGD(net.parameters(), lr=0.1))
    for batch in batches(4):
        step(*batch).item()
    y = (net.head.weight * net.head.weight).sum()
    step(*batches(1)[0]).item()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()


@pytest.mark.parametrize("late", [False, True])
def test_a_program_with_streams_of_its_own(late: bool) -> None:
    """What a launch reads comes from one, and its result is read on one; if it is late, another thread launches it."""
    net, side = Weight(flow.ones(4, device=DEVICE)), flow.cuda.Stream()
    step, seen = Train(net, flow.optim.SGD(net.parameters(), lr=0.5)), []
    for i in range(6):
        x = flow.full((4,), float(i), device=DEVICE)
        side.wait_stream(flow.cuda.current_stream())
        if i % 2:
            with flow.cuda.stream(side):
                loss = step(x * 1)
                time.sleep(0.03 * late)
                seen.append((loss + 1).item())
        else:
            loss = step(x)
            time.sleep(0.03 * late)
            side.wait_stream(flow.cuda.current_stream())
            with flow.cuda.stream(side):
                seen.append((loss + 1).item())
        flow.cuda.current_stream().wait_stream(side)
    assert seen == [1.0, 5.0, 5.0, -5.0, -31.0, -79.0] and net.w.tolist() == [-6.5] * 4


def test_an_event_is_behind_what_was_launched_before_it() -> None:
    net, side = Weight(flow.ones(4, device=DEVICE)), flow.cuda.Stream()
    step, x = Train(net, flow.optim.SGD(net.parameters(), lr=0.5)), flow.ones(4, device=DEVICE)
    for i in range(3):
        mark = flow.cuda.Event()
        step(x)
        mark.record()
        side.wait_event(mark)
        with flow.cuda.stream(side):
            assert (net.w + 0).tolist() == [0.5 - 0.5 * i] * 4
        flow.cuda.current_stream().wait_stream(side)


class Weight(nn.Module):
    def __init__(self, w: Any, drop: float = 0.0) -> None:
        super().__init__()
        self.w, self.drop = nn.Parameter(w), nn.Dropout(drop)

    def forward(self, x: Any) -> Any:
        return self.drop(self.w * x).sum()


def test_a_scaled_loss_and_a_step_that_is_undone(captured: list[bool]) -> None:
    net, scaler = Weight(flow.ones(2, device=DEVICE)), flow.amp.GradScaler(init_scale=8.0)
    step, seen = Train(net, flow.optim.SGD(net.parameters(), lr=1.0)), []
    step.set_grad_scaler(scaler)
    for value in (1.0, 1.0, 1.0, float("inf"), 1.0):
        step(flow.full((2,), value, device=DEVICE)).item()
        seen.append((net.w.tolist()[0], scaler.get_scale()))
    assert seen == [(0.0, 8.0), (-1.0, 8.0), (-2.0, 8.0), (-2.0, 4.0), (-3.0, 4.0)] and captured == [True]


def test_what_reads_on_the_host_runs_as_written(captured: list[bool]) -> None:
    """A capture that fails leaves torch's and Weft's generators, and the device, as they were."""
    place = flow.placement(DEVICE, ranks=[0])
    net = Weight(flow.ones(16, placement=place, sbp=flow.sbp.broadcast), 0.5)
    step, x = Train(net, flow.optim.RMSprop(net.parameters(), lr=0.1)), flow.ones_like(net.w)
    losses = [step(x).numpy().item() for _ in range(5)]
    assert len({*losses}) > 1 and captured == [False]
    assert torch.rand(2, device=DEVICE).shape == (2,) and flow.rand(2, device=DEVICE).shape == (2,)
    assert (flow.ones(2, device=DEVICE) * 2).tolist() == [2.0, 2.0]


def test_an_op_of_the_program_runs_at_each_launch(captured: list[bool]) -> None:
    calls: list[float] = []

    def counts_its_calls(x: Tensor) -> Tensor:
        calls.append(1.0)
        return x * len(calls)

    declared = op("... -> ...")(counts_its_calls)

    class Calls(nn.Graph):
        def build(self, x: Any) -> Any:
            return declared(x + 1)

    graph, x = Calls(), flow.zeros(2, device=DEVICE)
    results = [graph(x).tolist()[0] for _ in range(4)]
    graph.close()
    del OPS["counts_its_calls"]
    assert [b - a for a, b in itertools.pairwise(results)] == [1.0] * 3 and not captured


def test_graphs_that_are_dropped_give_their_memory_back() -> None:
    class Large(nn.Graph):
        def build(self, x: Any) -> Any:
            return (x @ x).sort(-1)[0].sum()

    x = flow.rand(1024, 1024, device=DEVICE)

    def held() -> int:
        graph = Large()
        for _ in range(4):
            graph(x).item()
        graph.close()
        del graph
        gc.collect()
        flow.cuda.synchronize()
        return flow.cuda.memory_allocated()

    sizes = [held() for _ in range(6)]
    assert sizes[-1] <= sizes[2] + 1024


@pytest.mark.hardware
def test_fused_kernels_write_in_place_and_compute_the_same(
    captured: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    def copies(self: Any, tensors: Any) -> None:
        raise AssertionError("results are computed elsewhere, and copied")

    monkeypatch.setattr(inductor.Copying, "__call__", copies)
    found, plans = [], []
    for fused in (False, True):
        net = made()
        step = Train(net, flow.optim.AdamW(net.parameters(), lr=0.01))
        step.config.enable_inductor(fused)
        found.append([step(*batch).item() for batch in batches(6, 64)])
        plans.append(str(step.plan))
        step.close()
    assert found[1] == pytest.approx(found[0], rel=1e-4)
    assert "fused(" in plans[1] and "fused(" not in plans[0] and captured == [True, True]


def losses_of_two_ranks(kind: str, in_graph: bool) -> list[float]:
    place, mine = flow.placement(kind, ranks=[0, 1]), slice(2 * flow.env.get_rank(), 2 * flow.env.get_rank() + 2)
    flow.manual_seed(0)
    net = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 8))
    net = net.to_global(placement=place, sbp=flow.sbp.broadcast)
    optimizer = flow.optim.AdamW(net.parameters(), lr=0.01)
    step = Train(nn.Sequential(net, Square()), optimizer) if in_graph else None
    found, rng = [], torch.Generator().manual_seed(0)
    for _ in range(6):
        x = flow.from_torch(torch.randn(4, 8, generator=rng)[mine]).to(kind)
        x = x.to_global(placement=place, sbp=flow.sbp.split(0))
        if step is None:
            optimizer.zero_grad()
            loss = net(x).square().mean()
            loss.backward()
            optimizer.step()
        else:
            loss = step(x)
        found.append(loss.numpy().item())
    if step is not None:
        step.close()
    return found


class Square(nn.Module):
    def forward(self, x: Any) -> Any:
        return x.square().mean()


@pytest.mark.parametrize("in_graph", [False, True])
def test_ranks_that_are_threads_share_a_device(in_graph: bool, captured: list[bool]) -> None:
    expected, _ = spawn_threads(2, losses_of_two_ranks, "cpu", False)
    for found in spawn_threads(2, losses_of_two_ranks, DEVICE, in_graph):
        assert found == pytest.approx(expected, rel=1e-4)
    assert all(captured) and bool(captured) is in_graph
