"""Fully-sharded data parallelism: as one rank would train on all of the data, holding parts."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from collections.abc import Callable
from typing import Any

import pytest
import torch

import weft as flow
from tests.graphs import Calls
from tests.ranks import on
from weft import nn
from weft.core.errors import ArgumentError, OptionError, TraceError
from weft.distributed.fsdp import (
    CPUOffloadPolicy,
    FSDPModule,
    MixedPrecisionPolicy,
    fully_shard,
    register_fsdp_forward_method,
)
from weft.distributed.pipelining import PipelineStage, Schedule1F1B
from weft.distributed.tensor import distribute_tensor
from weft.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from weft.launch import spawn_threads
from weft.parallel.sharded import KEY
from weft.tensor.data import local_data
from weft.vm import vm_of

S, B = flow.sbp.split, flow.sbp.broadcast
DATA = torch.randn(12, 5, generator=torch.Generator().manual_seed(0)).tolist()


class Block(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(width), nn.Linear(width, 3 * width), nn.Linear(3 * width, width)

    def forward(self, x: Any) -> Any:
        return x + self.down(flow.tanh(self.up(self.norm(x))))


class Net(nn.Module):
    """Uneven sizes, a weight that is read twice, a scalar, and one that is frozen."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.Sequential(Block(5), Block(5))
        self.tied, self.head = nn.Linear(5, 5), nn.Linear(5, 1)
        self.scale = nn.Parameter(flow.tensor(0.5))
        self.head.weight.requires_grad_(False)

    def forward(self, x: Any) -> Any:
        return self.head(self.tied(self.blocks(self.tied(x)))) * self.scale


def sharded(net: Any, **options: Any) -> Any:
    for block in net.blocks:
        fully_shard(block, **options)
    return fully_shard(net, **options)


OPTIMIZERS: dict[str, Callable[[Any], Any]] = {
    "AdamW": lambda ps: flow.optim.AdamW(ps, lr=0.05),
    "momentum": lambda ps: flow.optim.SGD(ps, lr=0.05, momentum=0.9),
    "LAMB": lambda ps: flow.optim.LAMB(ps, lr=0.05),
}


def train(net: Any, data: Any, optimizer: str, batches: int = 1, clip: bool = False, steps: int = 3) -> list[float]:
    opt, losses = OPTIMIZERS[optimizer](net.parameters()), []
    for _ in range(steps):
        opt.zero_grad()
        for x in data.chunk(batches, 0):
            loss = net(x).square().mean() / batches
            loss.backward()
        if clip:
            nn.utils.clip_grad_norm_(net.parameters(), 0.1)
        opt.step()
        losses.append(loss.item())
    return losses


def alone(optimizer: str, batches: int, clip: bool) -> list[Any]:
    flow.manual_seed(0)
    net = Net()
    train(net, flow.tensor(DATA), optimizer, batches, clip)
    return [p.tolist() for p in net.parameters()]


@pytest.mark.parametrize(
    ("ranks", "optimizer", "batches", "clip", "again"),
    [
        (2, "AdamW", 1, False, None), (3, "AdamW", 2, False, True), (2, "momentum", 1, True, False),
        (3, "LAMB", 1, False, None), (1, "AdamW", 1, True, True),
    ],
)  # fmt: skip
def test_ranks_train_on_all_of_the_data(ranks: int, optimizer: str, batches: int, clip: bool, again: Any) -> None:
    def run() -> Any:
        rank = flow.env.get_rank()
        flow.manual_seed(rank)  # the first rank's count
        net = sharded(Net(), reshard_after_forward=again)
        assert isinstance(net, FSDPModule) and isinstance(net, Net) and not isinstance(Net(), FSDPModule)
        # each rank has its part of every batch
        data = torch.tensor(DATA).view(batches, ranks, -1, 5)[:, rank].reshape(-1, 5)
        train(net, flow.tensor(data.tolist()), optimizer, batches, clip)
        for p in net.parameters():
            assert p.is_global and p.sbp == ((S(0),) if p.ndim and p.shape[0] >= ranks > 1 else (B,))
        return [p.numpy().tolist() for p in net.parameters()]

    expected = alone(optimizer, batches, clip)
    for found in spawn_threads(ranks, run, deadline=60):
        for a, b in zip(expected, found, strict=True):
            torch.testing.assert_close(torch.tensor(b), torch.tensor(a), rtol=1e-4, atol=1e-5)


def trains_over_a_network() -> None:
    """There the next module's parameters are gathered while one computes, and gradients are scattered."""
    rank, expected = flow.env.get_rank(), alone("AdamW", 2, True)
    flow.manual_seed(0)
    net = sharded(Net(), reshard_after_forward=True)
    data = torch.tensor(DATA).view(2, 2, -1, 5)[:, rank].reshape(-1, 5)
    with flow.explain() as moved, flow.vm.trace() as ran:
        train(net, flow.tensor(data.tolist()), "AdamW", 2, True)
    for name, part in (("all_gather", 1), ("reduce_scatter", 2)):  # each shown once, with what it has moved
        rows = [e for e in ran.events if e.name == name]
        given = sum(e.moved for e in rows) / part
        assert given == sum(m.moved for m in moved.movements if m.what == name) > 0
        assert {e.peers for e in rows} == {(0, 1)} and "collective:parts" in {e.stream for e in rows}
    for p, q in zip(net.parameters(), expected, strict=True):
        torch.testing.assert_close(torch.tensor(p.numpy()), torch.tensor(q), rtol=1e-4, atol=1e-5)
    assert vm_of().statistics()["streams"]["collective:parts"]["issued"] > 6 and held(net) == 0
    gathers = [m for m in moved.movements if m.what == "all_gather"]
    assert {m.line.function for m in gathers if m.line} >= {"train"} and all(m.line for m in gathers)


def test_parameters_are_gathered_ahead_over_a_network(world: Any) -> None:
    world("trains_over_a_network", 2, "c10d").well()


class Perhaps(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(8, 8, bias=False), nn.Linear(8, 8, bias=False)

    def forward(self, x: Any, both: bool) -> Any:
        return self.second(self.first(x)) if both else self.first(x)


def perhaps() -> None:
    net, x = Perhaps(), flow.ones(2, 8)
    for layer in (net.first, net.second):
        fully_shard(layer)
    fully_shard(net)
    net.first.set_modules_to_forward_prefetch([net.second])
    for both in (True, True, False):  # from the second time on it is known what follows, too
        with flow.no_grad():
            net(x, both)
            assert held(net) == 0
    wholes = [p.to_global(sbp=B).to_local() for p in net.parameters()]
    with flow.no_grad():
        for p in net.parameters():
            p.mul_(2)
        expected = 4 * (x @ wholes[0].t()) @ wholes[1].t()
        torch.testing.assert_close(net(x, True).to_torch(), expected.to_torch())


@pytest.mark.parametrize("transport", ["local", "c10d"])
def test_what_was_gathered_ahead_in_vain_is_not_used_later(transport: str, world: Any) -> None:
    if transport == "local":
        spawn_threads(2, perhaps, deadline=60)
    else:
        world("perhaps", 2, transport).well()


GRIDS = ((2, 2), (2, 1), (1, 2))


@pytest.mark.parametrize("shape", GRIDS)
def test_a_grid_has_replicas_of_what_is_split(shape: tuple[int, int]) -> None:
    ranks = shape[0] * shape[1]

    def run() -> Any:
        rank = flow.env.get_rank()
        flow.manual_seed(rank)
        net = sharded(Net(), mesh=flow.distributed.init_device_mesh("cpu", shape))
        data = torch.tensor(DATA).view(ranks, -1, 5)[rank]
        train(net, flow.tensor(data.tolist()), "AdamW", 1, True)
        assert net.tied.weight.sbp == (B, S(0) if shape[1] > 1 else B) and net.head.bias.sbp == (B, B)
        return [p.numpy().tolist() for p in net.parameters()]

    expected = alone("AdamW", 1, True)
    for found in spawn_threads(ranks, run, deadline=60):
        for a, b in zip(expected, found, strict=True):
            torch.testing.assert_close(torch.tensor(b), torch.tensor(a), rtol=1e-4, atol=1e-5)


def replicas_sum() -> None:
    def run(waits: bool) -> Any:
        flow.manual_seed(0)
        ranks = flow.env.get_world_size()
        policy = MixedPrecisionPolicy(reduce_dtype=flow.float64)
        net = sharded(Net(), mesh=flow.distributed.init_device_mesh("cpu", (2, ranks // 2)), mp_policy=policy)
        mine = flow.tensor(DATA[flow.env.get_rank() :: ranks])
        net.set_requires_all_reduce(not waits)
        net(mine[:1]).sum().backward()
        assert not waits or all(p.grad is None for p in net.parameters())
        net.set_requires_all_reduce(True)
        net(mine[1:]).sum().backward()
        return [None if p.grad is None else p.grad.numpy().tolist() for p in net.parameters()]

    for a, b in zip(run(False), run(True), strict=True):
        torch.testing.assert_close(a and torch.tensor(a), b and torch.tensor(b), rtol=1e-4, atol=1e-5)


def test_replicas_sum_when_asked_to() -> None:
    spawn_threads(4, replicas_sum, deadline=60)


def test_replicas_sum_over_a_network(world: Any) -> None:
    world("replicas_sum", 2, "c10d").well()


class Fails(flow.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x.clone()

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        raise ValueError("not finite")


def a_backward_fails() -> None:
    def once(p: Any) -> list[float]:
        return p.grad.to_global(sbp=B).to_local().tolist()

    flow.manual_seed(0)
    layers = [nn.Linear(8, 8) for _ in range(3)]
    net, x = nn.Sequential(*layers), flow.ones(2, 8)
    for layer in layers:
        fully_shard(layer)
    fully_shard(net)
    net(x).sum().backward()
    expected = [once(p) for p in net.parameters()]
    net.zero_grad()
    with pytest.raises(ValueError, match="not finite"):
        layers[2](layers[1](Fails.apply(layers[0](x)))).sum().backward()
    assert held(net) == 0 and all(p.is_global for p in net.parameters())
    assert layers[0].weight.grad is None and once(layers[2].weight) == expected[4]
    net.zero_grad()
    net(x).sum().backward()
    assert [once(p) for p in net.parameters()] == expected


@pytest.mark.parametrize("transport", ["local", "c10d"])
def test_a_backward_that_fails_leaves_it_as_it_was(transport: str, world: Any) -> None:
    if transport == "local":
        spawn_threads(2, a_backward_fails, deadline=60)
    else:
        world("a_backward_fails", 2, transport).well()


class Scored(Net):
    def score(self, x: Any) -> Any:
        return self.tied(x).square().mean()


@on(2)
def test_another_method_gathers_as_forward_does() -> None:
    flow.manual_seed(0)
    net, whole = Scored(), Net()
    whole.load_state_dict(net.state_dict())
    fully_shard(net).set_gradient_divide_factor(1.0)
    register_fsdp_forward_method(net, "score")
    register_fsdp_forward_method(whole, "no method of a module that isn't sharded")
    x = flow.tensor(DATA)
    net.score(x).backward()
    whole.tied(x).square().mean().backward()
    assert net.tied.weight.is_global
    torch.testing.assert_close(
        torch.tensor(net.tied.weight.grad.numpy()), 2 * torch.tensor(whole.tied.weight.grad.tolist())
    )
    handle = net.unshard(async_op=True)
    handle.wait()
    assert net.tied.weight.is_local


def held(net: Any) -> int:
    """The bytes of whole parameters that are there just now."""
    parts = [m.__dict__[KEY] for m in net.modules() if KEY in m.__dict__]
    return sum(s.data.untyped_storage().nbytes() for p in parts for s in p.members if s.split)


def test_a_layer_is_whole_only_while_it_computes() -> None:
    def run() -> None:
        net = nn.Sequential(*(nn.Linear(8, 8) for _ in range(4)))
        size = 4 * (64 + 8)
        for layer in net:
            fully_shard(layer)
        fully_shard(net)
        seen: list[int] = []
        for layer in net:
            layer.register_forward_hook(lambda *_: seen.append(held(net)))
        assert held(net) == 0
        y = net(flow.ones(2, 8))
        assert held(net) == 0 and max(seen) <= size
        seen.clear()
        for layer in net:
            layer.register_full_backward_hook(lambda *_: seen.append(held(net)))
        net(flow.ones(2, 8, requires_grad=True)).sum().backward()
        assert held(net) == 0 and max(seen) <= size
        net.set_reshard_after_forward(False)
        y = net(flow.ones(2, 8))
        assert held(net) == 4 * size
        y.sum().backward()
        assert held(net) == 0
        net[0].set_modules_to_forward_prefetch([net[1]])
        net.set_reshard_after_forward(True)
        seen.clear()
        net(flow.ones(2, 8))
        assert seen[0] == size and held(net) == 0  # dropped by then is the first, and there the second
        with flow.no_grad():
            net(flow.ones(2, 8))
        assert held(net) == 0
        net[1].unshard()
        assert net[1].weight.is_local and net[1].weight.shape == (8, 8) and held(net) == size
        net[1].reshard()
        assert net[1].weight.is_global and held(net) == 0

    spawn_threads(2, run, deadline=60)


def test_gradients_wait_where_no_sync_is_asked_for() -> None:
    def run(waits: bool) -> Any:
        flow.manual_seed(0)
        net = sharded(Net())
        mine = flow.tensor(DATA[flow.env.get_rank() :: 2])
        net.set_requires_gradient_sync(not waits)
        net(mine[:3]).sum().backward()
        assert not waits or all(p.grad is None for p in net.parameters())
        net.set_requires_gradient_sync(True)
        net(mine[3:]).sum().backward()
        return [None if p.grad is None else p.grad.numpy().tolist() for p in net.parameters()]

    at_once, later = spawn_threads(2, run, False), spawn_threads(2, run, True)
    for a, b in zip(at_once[0], later[0], strict=True):
        assert (a is None) is (b is None)
        if a is not None:
            torch.testing.assert_close(torch.tensor(a), torch.tensor(b), rtol=1e-4, atol=1e-5)


def test_what_is_computed_again_is_gathered_again() -> None:
    def run(again: bool, reentrant: bool) -> Any:
        flow.manual_seed(0)
        net = sharded(Net())
        if again:
            for block in net.blocks:
                inner = block.forward
                block.forward = lambda x, f=inner: flow.utils.checkpoint.checkpoint(f, x, use_reentrant=reentrant)
        net(flow.tensor(DATA)).sum().backward()
        return [None if p.grad is None else p.grad.numpy().tolist() for p in net.parameters()]

    expected = spawn_threads(2, run, False, False)[0]
    for reentrant in (True, False):
        for a, b in zip(expected, spawn_threads(2, run, True, reentrant, deadline=60)[0], strict=True):
            torch.testing.assert_close(a and torch.tensor(a), b and torch.tensor(b), rtol=1e-4, atol=1e-5)


def test_states_go_to_other_layouts_and_back() -> None:
    def run() -> None:
        flow.manual_seed(0)
        net, x = sharded(Net()), flow.tensor(DATA)
        opt = flow.optim.AdamW(net.parameters(), lr=0.1)
        net(x).sum().backward()
        opt.step()
        place = flow.placement("cpu", [0, 1])
        plain = Net().to_global(placement=place, sbp=B)
        plain.load_state_dict(net.state_dict())
        other = flow.optim.AdamW(plain.parameters(), lr=0.1)
        other.load_state_dict(copy.deepcopy(opt.state_dict()))
        assert other.state_dict()["state"][0]["exp_avg"].sbp == (B,)
        expected = plain(x.to_global(placement=place, sbp=B)).numpy()
        torch.testing.assert_close(local_data(net(x), "test"), torch.tensor(expected), rtol=1e-4, atol=1e-5)
        again = sharded(Net())
        again(x)  # its root is whole; loading puts the parts in their places first
        again.load_state_dict(plain.state_dict())
        torch.testing.assert_close(local_data(again(x), "test"), torch.tensor(expected), rtol=1e-4, atol=1e-5)

    spawn_threads(2, run, deadline=60)


def test_what_cannot_be_sharded_says_why() -> None:
    def run() -> None:
        place = flow.placement("cpu", [0, 1])
        with pytest.raises(ArgumentError, match="takes a module"):
            fully_shard(flow.ones(2))  # type: ignore[type-var]
        with pytest.raises(ArgumentError, match="weight is global already"):
            fully_shard(nn.Linear(2, 2).to_global(placement=place, sbp=B))
        with pytest.raises(ArgumentError, match="takes a MixedPrecisionPolicy"):
            fully_shard(nn.Linear(2, 2), mp_policy=object())
        with pytest.raises(OptionError, match="in a layout of your own"):
            fully_shard(nn.Linear(2, 2), shard_placement_fn=lambda p: None)
        grid = flow.distributed.init_device_mesh("cpu", (2, 1, 1))
        with pytest.raises(ArgumentError, match=r"a mesh of one axis.*this one has 3"):
            fully_shard(nn.Linear(2, 2), mesh=grid)
        net = fully_shard(nn.Linear(2, 2), mesh=flow.distributed.init_device_mesh("cpu", (2,)))
        with pytest.raises(ArgumentError, match="was applied to this Linear before"):
            fully_shard(net)
        with pytest.raises(TraceError, match=r"enable_zero\(stage=3\)"):
            Calls(net)(flow.ones(1, 2))
        for twice in (copy.deepcopy, pickle.dumps):
            with pytest.raises(OptionError, match=r"copy it before fully_shard\(\)"):
                twice(net)
        tied = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
        tied[1].weight = tied[0].weight
        fully_shard(tied[0])
        with pytest.raises(ArgumentError, match=r"1\.weight is also a parameter of 0"):
            fully_shard(tied)

    spawn_threads(2, run, deadline=60)


@on(2)
def test_a_policy_says_the_dtypes() -> None:
    inner = MixedPrecisionPolicy(param_dtype=flow.bfloat16, reduce_dtype=flow.float32)
    outer = dataclasses.replace(inner, output_dtype=flow.float64)
    flow.manual_seed(0)
    net, seen = Net(), []
    whole = copy.deepcopy(net).to(flow.bfloat16)
    net.blocks[0].up.register_forward_pre_hook(lambda m, args: seen.append((args[0].dtype, m.weight.dtype)))
    for block in net.blocks:
        fully_shard(block, mp_policy=inner, offload_policy=CPUOffloadPolicy())
    fully_shard(net, mp_policy=outer)
    x = flow.tensor(DATA)
    y = net(x)
    y.sum().backward()
    assert seen == [(flow.bfloat16, flow.bfloat16)] and y.dtype is flow.float64
    whole(x.to(flow.bfloat16)).sum().backward()
    for (name, p), q in zip(net.named_parameters(), whole.parameters(), strict=True):
        assert p.dtype is flow.float32 and p.is_global
        if p.requires_grad:
            assert p.grad.dtype is flow.float32 and p.grad.sbp == p.sbp
            torch.testing.assert_close(
                torch.tensor(p.grad.numpy()), torch.tensor(q.grad.tolist()), rtol=0.1, atol=0.05, msg=name
            )


@pytest.mark.parametrize("again", [True, False])
def test_several_modules_are_gathered_together(again: bool) -> None:
    @on(2)
    def run() -> None:
        flow.manual_seed(0)
        net, rank = Net(), flow.env.get_rank()
        whole = copy.deepcopy(net)
        block, seen = net.blocks[1], []
        fully_shard([block.norm, block.up], reshard_after_forward=again)
        fully_shard([net.tied, net.head], reshard_after_forward=again)
        fully_shard(net)
        norm = block.norm.register_forward_hook(lambda m, args, y: seen.append(block.up.weight.is_local))
        block.register_forward_hook(lambda m, args, y: seen.append(block.up.weight.is_local))
        assert isinstance(block.norm, FSDPModule) and isinstance(block.up, FSDPModule)
        a, b = train(net, flow.tensor(DATA[rank::2]), "AdamW"), train(whole, flow.tensor(DATA), "AdamW")
        mean = flow.tensor(a)
        flow.comm.all_reduce(mean)
        torch.testing.assert_close([v / 2 for v in mean.tolist()], b, rtol=1e-4, atol=1e-5)
        assert seen == [True, not again] * 3  # whole from the first to the last of them
        norm.remove()
        for alone in (block.norm, whole.blocks[1].norm):  # the others stay away
            alone(flow.ones(1, 5)).sum().backward()
        with flow.no_grad():
            block.up.weight.mul_(2.0), whole.blocks[1].up.weight.mul_(2.0)
            y, z = (m.up(m.norm(flow.tensor(DATA))) for m in (block, whole.blocks[1]))
        torch.testing.assert_close(y.to_torch(), z.to_torch())
        with pytest.raises(ArgumentError, match="was applied to this LayerNorm before"):
            fully_shard([block.norm])

    run()


@on(4)
def test_the_gradients_of_a_stage_are_scattered_after_its_micro_batches() -> None:
    mesh = flow.distributed.init_device_mesh("cpu", (2, 2), mesh_dim_names=("pp", "dp"))
    stage, replica = mesh.get_local_rank("pp"), mesh.get_local_rank("dp")
    flow.manual_seed(0)
    whole = nn.Sequential(nn.Sequential(nn.Linear(5, 4), nn.Tanh()), nn.Sequential(nn.Linear(4, 5), nn.Tanh()))
    mine, x = copy.deepcopy(whole[stage]), flow.tensor(DATA)
    fully_shard(mine[0], mesh=mesh["dp"], reshard_after_forward=False)
    fully_shard(mine, mesh=mesh["dp"])
    nn.functional.mse_loss(whole(x), x).backward()
    group = mesh.get_group("pp")
    schedule = Schedule1F1B(
        PipelineStage(mine, stage, 2, torch.device("cpu"), group=group), 3, loss_fn=nn.functional.mse_loss
    )
    half = x[replica::2].contiguous()  # torch before 2.12 looks at strides
    schedule.step(*([] if stage else [half]), **({"target": half} if stage else {}))
    for p, q in zip(mine.parameters(), whole[stage].parameters(), strict=True):
        assert p.is_global and p.grad.sbp == p.sbp
        torch.testing.assert_close(p.grad.full_tensor().to_torch(), q.grad.to_torch())


@on(2)
def test_a_policy_leaves_complex_numbers_as_they_are() -> None:
    class Turned(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.up, self.phase = nn.Linear(5, 4), nn.Parameter(flow.complex(flow.rand(4), flow.rand(4)))

        def forward(self, x: Any, by: Any) -> Any:
            return (self.up(x) * (by * self.phase)).imag

    flow.manual_seed(0)
    net, by = Turned(), flow.complex(flow.rand(4), flow.rand(4))
    whole = copy.deepcopy(net)
    fully_shard(net, mp_policy=MixedPrecisionPolicy(param_dtype=flow.float64, reduce_dtype=flow.float64))
    for m in (net, whole):
        m(flow.tensor(DATA), by).square().sum().backward()
    for p, q in zip(net.parameters(), whole.parameters(), strict=True):
        assert p.dtype is q.dtype is p.grad.dtype
        torch.testing.assert_close(p.grad.full_tensor().to_torch(), q.grad.to_torch())


@on(2)
def test_shards_of_meta_parameters_are_initialized_later() -> None:
    with flow.device("meta"):
        net = Net()
    sharded(net)
    shards = {name: p for name, p in net.named_parameters()}
    assert all(p.is_global and not p.is_meta for p in shards.values()) and held(net) == 0
    net.to_empty(device="cpu")
    assert all(p is shards[name] and p.is_global for name, p in net.named_parameters())
    flow.manual_seed(0)
    whole = Net()
    for p, q in zip(net.parameters(), whole.parameters(), strict=True):
        with flow.no_grad():
            p.copy_(distribute_tensor(q, p.device_mesh, p.placements))
        assert p.full_tensor().tolist() == q.tolist()
    net.load_state_dict({n: p.detach().clone() for n, p in net.state_dict().items()}, assign=True)
    assert not any(p is shards[name] for name, p in net.named_parameters())
    rank = flow.env.get_rank()
    a = train(net, flow.tensor(DATA[rank::2]), "AdamW")
    b = train(whole, flow.tensor(DATA), "AdamW")
    mean = flow.tensor(a)
    flow.comm.all_reduce(mean)
    torch.testing.assert_close([v / 2 for v in mean.tolist()], b, rtol=1e-4, atol=1e-5)
    net.head.weight = nn.Parameter(flow.ones(1, 5))
    with pytest.raises(ArgumentError, match=r"head\.weight was replaced"):
        net(flow.tensor(DATA))


@on(4)
def test_parts_of_tensor_parallel_parameters_are_split() -> None:
    mesh = flow.distributed.init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    flow.manual_seed(0)
    net = nn.Sequential(nn.Linear(5, 8), nn.GELU(), nn.Linear(8, 3))
    whole = copy.deepcopy(net)
    parallelize_module(net, mesh["tp"], {"0": ColwiseParallel(), "2": RowwiseParallel()})
    fully_shard(net[2], mesh=mesh["dp"])
    fully_shard(net, mesh=mesh["dp"])
    assert net[0].weight.to_local().shape == (2, 5)
    assert net[2].weight.to_local().shape == (2 - mesh["dp"].get_local_rank(), 4)
    assert net[0].weight.placement.shape == (2, 2) and net[0].weight.sbp == (S(0), S(0))
    assert net[2].weight.sbp == (S(1), S(0)) and net[2].bias.sbp == (B, S(0))
    mine = flow.tensor(DATA).view(2, 6, 5)[mesh["dp"].get_local_rank()]
    losses = flow.tensor(train(net, mine, "AdamW", 1, True))
    flow.comm.all_reduce(losses)
    expected = train(whole, flow.tensor(DATA), "AdamW", 1, True)
    torch.testing.assert_close([v / 4 for v in losses.tolist()], expected, rtol=1e-4, atol=1e-5)
    for (name, p), q in zip(net.state_dict().items(), whole.parameters(), strict=True):
        torch.testing.assert_close(p.full_tensor().to_torch(), q.detach().to_torch(), rtol=1e-4, atol=1e-5, msg=name)
